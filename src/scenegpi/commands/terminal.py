"""What commands print: text from outside (paths, labels, cards) never styles or steers the terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from scenegpi.errors import printable

if TYPE_CHECKING:
    from rich.console import Console


def make_console(stderr: bool = False) -> Console:
    """A console that takes brackets and colons for what they are; styles come as `style=` or as Text."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def say(text: str, error: bool = False) -> None:
    """Prints lines, with everything escaped that a terminal would act on."""
    print("\n".join(map(printable, text.split("\n"))), file=sys.stderr if error else sys.stdout, flush=error)


def say_json(data: Any) -> None:
    """Prints values as JSON that reads back the same, whatever is in its strings."""
    from json import dumps

    text = dumps(data, indent=1, ensure_ascii=False)
    print("".join(c if c.isprintable() or c == "\n" else dumps(c)[1:-1] for c in text))


@contextmanager
def quiet() -> Iterator[None]:
    """Only errors of the library are logged inside; as a decorator (`@quiet()`), while the function runs.

    For commands that print at the end what was left out.
    """
    log = logging.getLogger("scenegpi")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
