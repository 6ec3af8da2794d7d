"""How far a long job is: a bar on a terminal; elsewhere a plain line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY = 10.0
"""Seconds between two plain lines."""


@contextmanager
def progress(what: str, total: int | None = None, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Counts: inside, call the function with how many more are done. On stderr, which pipes leave alone."""
    if not shown:
        yield lambda count: None
        return
    if not sys.stderr.isatty():
        yield _lines(what, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


def _lines(what: str, total: int | None) -> Callable[[int], None]:
    done, last = 0, time.monotonic()

    def advance(count: int) -> None:
        nonlocal done, last
        done += count
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            print(f"{what}: {done:,}{'' if total is None else f' of {total:,}'}", file=sys.stderr, flush=True)

    return advance
