"""The principle of the look-alikes: in the look that a family shares, the label leaves no trace in the picture."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
import pytest
from PIL import Image

from scenegpi.paper.rendered.brush import Brush, Frame
from scenegpi.paper.rendered.drawing import FAMILIES
from scenegpi.paper.rendered.sheet import CELL, TALL, family_sheet, scene_sheet


def portrait(family, label, shared, seed):
    """The thing alone, cut at its edges and brought to one size: what a classifier of boxes sees."""
    drawing = TALL[family](Random(seed), label, shared)
    extent = drawing.extent
    scale = 240 / (extent.top - extent.bottom)
    brush = Brush(Frame(-extent.left * scale + 2, extent.top * scale + 2, scale), extent, (1500, 1500))
    drawing.paint(brush)
    alone = brush.finish()
    white = Image.new("RGB", alone.size, "white")
    white.paste(alone, (0, 0), alone)
    return np.asarray(white.crop(alone.getbbox()).resize((48, 48), Image.Resampling.BOX)).astype(float)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_shared_look_does_not_tell_the_member(family):
    for seed in range(4):
        looks = [portrait(family, label, True, seed) for label in FAMILIES[family]]
        for a, b in combinations(looks, 2):
            assert np.abs(a - b).mean() < 8


@pytest.mark.parametrize("family", FAMILIES)
def test_the_own_look_does(family):
    for seed in range(4):
        looks = [portrait(family, label, False, seed) for label in FAMILIES[family]]
        for a, b in combinations(looks, 2):
            assert np.abs(a - b).mean() > 10


def test_no_thing_is_in_two_families():
    members = [label for labels in FAMILIES.values() for label in labels]
    assert len(members) == len(set(members))


def test_sheets():
    assert scene_sheet(0, [0, 1], columns=2).size == (2 * CELL[0] + 8, CELL[1])
    assert len(np.unique(np.asarray(family_sheet().reduce(8)).reshape(-1, 3), axis=0)) > 100
