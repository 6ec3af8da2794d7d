"""For commands that print at the end what was left out: the library's own warnings about it are silenced."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Only errors of the library are logged inside; as a decorator (`@quiet()`), while the function runs."""
    log = logging.getLogger("scenegpi")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
