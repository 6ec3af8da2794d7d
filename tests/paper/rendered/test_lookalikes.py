"""The principle of the look-alikes: in the look that a family shares, the label leaves no trace in the picture."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest
from PIL import Image

from rendered_pictures import CELL, family_sheet, portrait, scene_sheet
from scenegpi.paper.rendered.things import DRAW, FAMILIES


def look(label, shared, seed):
    """The thing alone, brought to one size: what a classifier of boxes sees."""
    alone = portrait(DRAW[label](Random(seed), label, shared))
    white = Image.new("RGB", alone.size, "white")
    white.paste(alone, (0, 0), alone)
    return np.asarray(white.resize((48, 48), Image.Resampling.BOX)).astype(float)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_shared_look_does_not_tell_the_member(family):
    for seed in range(4):
        looks = [look(label, True, seed) for label in FAMILIES[family][1]]
        for a, b in combinations(looks, 2):
            assert np.abs(a - b).mean() < 8


@pytest.mark.parametrize("family", FAMILIES)
def test_the_own_look_does(family):
    for seed in range(4):
        looks = [look(label, False, seed) for label in FAMILIES[family][1]]
        for a, b in combinations(looks, 2):
            assert np.abs(a - b).mean() > 10


def test_no_thing_is_in_two_families():
    members = [label for _, labels in FAMILIES.values() for label in labels]
    assert len(members) == len(set(members))


def test_sheets():
    assert scene_sheet(0, [0, 1], columns=2).size == (2 * CELL[0] + 8, CELL[1])
    assert len(np.unique(np.asarray(family_sheet().reduce(8)).reshape(-1, 3), axis=0)) > 100
