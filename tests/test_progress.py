"""Progress: a bar on a terminal, a line now and then elsewhere, nothing where nobody asked."""

from __future__ import annotations

import io
import sys

import pytest

from scenegpi import progress as room
from scenegpi.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch):
    """Each look at the clock is three seconds later."""
    now = iter(range(0, 3000, 3))
    monkeypatch.setattr(room.time, "monotonic", lambda: next(now))


def test_a_line_every_few_seconds(clock, capsys):
    with progress("images", 1200) as advance:
        for _ in range(12):
            advance(100)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [f"images: {done:,} of 1,200" for done in (400, 800, 1200)]


def test_the_total_need_not_be_known(clock, capsys):
    with progress("images") as advance:
        for _ in range(4):
            advance()
    assert capsys.readouterr().err == "images: 4\n"


def test_nothing_where_nobody_asked(clock, capsys, monkeypatch):
    for screen in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", screen)
        with progress("images", 3, shown=False) as advance:
            for _ in range(8):
                advance()
        assert screen.getvalue() == ""


def test_a_bar_on_a_terminal(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress("drawing", 3) as advance:
        advance(2)
    assert "drawing" in screen.getvalue()
    assert "2/3" in screen.getvalue()
