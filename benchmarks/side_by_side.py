"""A long command in parts: pieces of work side by side in processes, and the seconds that every part took.

Seconds of a core are those of all processes together. Where other programs use the machine too, they say what the
command costs; the seconds that passed do not.
"""

from __future__ import annotations

import io
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, redirect_stdout
from multiprocessing import get_context
from typing import Any, NamedTuple, Self


class Spent(NamedTuple):
    """Seconds that passed, and seconds of a core."""

    passed: float
    worked: float


class Parts:
    """The parts of one run. Processes start with the first piece of work; each has one thread.

    Args:
        jobs: how many processes; with 1 everything happens in this one.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs, self.spent, self._elsewhere = jobs, dict[str, Spent](), 0.0
        self._pool: ProcessPoolExecutor | None = None
        self._begun = Spent(time.perf_counter(), _worked())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What happens inside is that part; said when it is done."""
        started, worked, elsewhere = time.perf_counter(), _worked(), self._elsewhere
        self.spent[name] = Spent(0.0, 0.0)  # its place in the table is before that of its pieces
        yield
        elsewhere = self._elsewhere - elsewhere
        self._note(name, Spent(time.perf_counter() - started, _worked() - worked + elsewhere))

    def map(self, work: Callable[..., Any], pieces: Mapping[str, Sequence[Any]], say: bool = True) -> dict[str, Any]:
        """The results of `work(*arguments)` by name, in the order of the pieces; `say` notes the time of each.

        With several processes nothing is printed by the pieces: their lines would be mixed up.
        """
        if say:
            self.spent |= dict.fromkeys(pieces, Spent(0.0, 0.0))  # their order in the table is that of the pieces
        if self.jobs == 1:
            found = {}
            for name, arguments in pieces.items():
                found[name], spent = _timed(work, arguments)
                self._note(name, spent, say)
            return found
        if self._pool is None:
            os.environ["OMP_NUM_THREADS"] = "1"  # read by the processes when they start
            # fork would copy torch's threads in an unknown state; a started process is clean
            self._pool = ProcessPoolExecutor(self.jobs, get_context("spawn"))
        waiting = {self._pool.submit(_quietly, work, arguments): name for name, arguments in pieces.items()}
        found = dict.fromkeys(pieces)
        for future in as_completed(waiting):
            name = waiting[future]
            found[name], spent = future.result()
            self._elsewhere += spent.worked
            self._note(name, spent, say)
        return found

    def table(self) -> str:
        """Of all parts, once the processes have ended; the last row has what is in no part, as starting them."""
        rows = {**self.spent, "all": Spent(time.perf_counter() - self._begun.passed, _worked() - self._begun.worked)}
        lines = [f"| {name} | {passed:.0f} | {worked:.0f} |" for name, (passed, worked) in rows.items()]
        return "\n".join(["| part | seconds | of one core |", "|---|---:|---:|", *lines])

    def _note(self, name: str, spent: Spent, say: bool = True) -> None:
        if say:
            self.spent[name] = spent
            print(f"{name}: {spent.passed:.0f} s, {spent.worked:.0f} s of one core", flush=True)


def shares(many: Iterable[Any], count: int) -> list[list[Any]]:
    """Dealt out into so many parts, as even as can be."""
    every = list(many)
    return [every[k::count] for k in range(count)]


def _timed(work: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, Spent]:
    started, worked = time.perf_counter(), time.process_time()
    result = work(*arguments)
    return result, Spent(time.perf_counter() - started, time.process_time() - worked)


def _quietly(work: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Any, Spent]:
    with redirect_stdout(io.StringIO()):
        return _timed(work, arguments)


def _worked() -> float:
    """Seconds of a core of this process and of those that it has seen end."""
    ours = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in ours)
