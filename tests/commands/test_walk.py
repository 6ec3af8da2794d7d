"""The walk of one photo, as CONTRIBUTING tells it: the files that it names are entered, in the order of its steps."""

from __future__ import annotations

import re
import sys
from inspect import CO_OPTIMIZED
from pathlib import Path

import matplotlib

import scenegpi
from commands.predict_cases import fine
from conftest import ROOT

SOURCE = Path(scenegpi.__file__).parent
PHOTO = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"


def steps() -> list[list[str]]:
    """The files that each step names."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## The walk")[2].partition("## Rules")[0]
    return [re.findall(r"`([\w/]+\.py)`", step) for step in re.split(r"^\d+\. ", text, flags=re.M)[1:]]


def entered(*words: object) -> list[str]:
    """The files whose functions `scenegpi predict` calls, in the order of their first calls."""
    found: dict[str, None] = {}

    def called(frame, event, _):
        if event == "call" and frame.f_code.co_flags & CO_OPTIMIZED:  # the body of a class or a module is none
            found.setdefault(frame.f_code.co_filename)

    sys.setprofile(called)
    try:
        fine(*words)
    finally:
        sys.setprofile(None)
    return [str(Path(file).relative_to(SOURCE)) for file in found if file.startswith(str(SOURCE))]


def test_a_photo_walks_as_contributing_says(tmp_path):
    order = entered(PHOTO, "--detector", "finder", "--out", tmp_path / "out")
    walk = steps()
    assert len(walk) == 10
    assert {file for step in walk for file in step} <= set(order)
    # Every step enters a file that no step before it has entered.
    last = [max(map(order.index, step)) for step in walk]
    assert last == sorted(set(last))
