"""Names in pictures: numbers where they are needed, lengths, and fonts for letters of all scripts."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenegpi.viz import text
from scenegpi.viz.text import numbered, runs, shortened, text_sizes, width

NAMES = st.lists(st.sampled_from(["phone", "man", "a very long name that nobody would ever want to read", "straße"]))


@given(NAMES)
def test_only_names_that_occur_more_than_once_are_numbered_from_one(names):
    shown, count = numbered(names), Counter(names)
    assert len(set(shown)) == len(names)
    for name in count:
        mine = [s for s, n in zip(shown, names, strict=True) if n == name]
        short = shortened(name)
        assert mine == ([short] if count[name] == 1 else [f"{short} {k + 1}" for k in range(count[name])])


def test_labels_are_shown_as_people_say_them():
    assert numbered(["short", "pant", "jean", "men", "person"]) == ["shorts", "pants", "jeans", "people", "person"]
    assert numbered(["men", "people"]) == ["people 1", "people 2"]  # two boxes are never called the same


def test_different_names_that_look_the_same_when_shortened_are_told_apart():
    names = ["the same start " + middle + " and the same end" for middle in ("one", "two")]
    assert numbered(names, 20) == ["the same s…same end 1", "the same s…same end 2"]


@given(st.text(max_size=60), st.integers(5, 40))
def test_shortened_text_fits_and_is_one_printable_line(name, most):
    short = shortened(name, most)
    assert len(short) <= most
    assert short.isprintable()


@given(st.text(st.sampled_from("abc ß中の✓किताب\U0001f600é…"), max_size=12), st.booleans())
def test_pieces_make_up_the_text(words, bold):
    pieces = runs(words, bold)
    assert "".join(piece for piece, _ in pieces) == words
    assert all(a != b for (_, a), (_, b) in pairwise(pieces))
    assert width(words + "m", bold) > width(words, bold)


def test_a_letter_that_one_font_lacks_is_set_in_one_that_has_it(monkeypatch):
    monkeypatch.setattr(text, "_has", lambda file, letter: (letter == "中") == file.endswith("other.ttc"))
    monkeypatch.setattr(text, "_other_fonts", lambda: ("/fonts/other.ttc",))
    text._font_of.cache_clear()
    try:
        found = runs("a中ßb", bold=False)
    finally:
        text._font_of.cache_clear()
    assert [piece for piece, _ in found] == ["a", "中", "ßb"]
    assert [file.rpartition("/")[2] for _, file in found] == ["DejaVuSans.ttf", "other.ttc", "DejaVuSans.ttf"]


@pytest.mark.parametrize(("letter", "there"), [("é", True), ("✓", True), ("中", False), ("\U0001f9ff", False)])
def test_what_letters_the_own_font_has(letter, there):
    assert text._has(text._own_font(False), letter) == there


def test_bold_and_large_text_takes_more_room():
    plain, bold = text_sizes(["window"], 10)[0], text_sizes(["window"], 10, bold=True)[0]
    assert bold[0] > plain[0]
    assert text_sizes(["window"], 20)[0, 0] - 0.12 == pytest.approx(2 * (plain[0] - 0.12))
    assert text_sizes([], 10).shape == (0, 2)
