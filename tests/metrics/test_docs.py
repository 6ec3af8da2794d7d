"""The examples of docs/metrics.md run, and its picture can be drawn."""

from __future__ import annotations

import doctest
from pathlib import Path

from scenegpi.metrics import Protocol, state
from scenegpi.metrics.explain import explain
from scenegpi.paper.figures.matching import draw_matching, example

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_the_page_is_true():
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=OPTIONS)
    assert found.attempted > 15
    assert found.failed == 0


def test_the_docstring_is_true():
    assert doctest.testmod(state).failed == 0


def test_the_picture(tmp_path):
    assert draw_matching(*example(), tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert b"<svg" in draw_matching(*example(), tmp_path / "a.svg").read_bytes()


def test_explain_without_constraint_and_without_predictions():
    prediction, target = example()
    protocol = Protocol("sgdet", ks=(20,))
    assert len(explain(prediction, target, 4, protocol, constrained=False)) == 20
    empty = prediction.replace(pairs=None, pair_dist=None)
    assert explain(empty, target, 4, protocol) == []
