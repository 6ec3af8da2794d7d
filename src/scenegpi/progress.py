"""One way to show how far a long job is: a bar on a terminal, elsewhere a plain line now and then.

with progress("images", total) as advance:
    for image in images:
        ...
        advance()
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

SECONDS = 10.0
"""Seconds between two lines where there is no terminal; a shorter job prints none."""


@contextmanager
def progress(what: str, total: int | None = None, shown: bool = True) -> Iterator[Callable[..., None]]:
    """Gives `advance(n=1)`, to be called after each n items. Everything is written to stderr.

    `what` names the things that are counted, `total` of them or None if unknown; `shown=False` shows nothing.
    """
    if shown and sys.stderr.isatty():
        with _bar(what, total) as advance:
            yield advance
        return
    done, last = 0, time.monotonic()

    def count(n: int = 1) -> None:
        nonlocal done, last
        done += n
        now = time.monotonic()
        if shown and now - last >= SECONDS:
            last = now
            print(f"{what}: {done:,}" + (f" of {total:,}" if total else ""), file=sys.stderr, flush=True)

    yield count


def watched(items: Iterable[Item], what: str, total: int | None = None, shown: bool = True) -> Iterator[Item]:
    """The items as they come, counted."""
    with progress(what, total, shown) as advance:
        for item in items:
            yield item
            advance()


@contextmanager
def _bar(what: str, total: int | None) -> Iterator[Callable[..., None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def advance(n: int = 1) -> None:
            bar.advance(task, n)

        yield advance
