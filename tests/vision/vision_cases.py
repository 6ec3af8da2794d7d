"""Pictures whose boxes are named by their colour, and a backbone that needs no package."""

from __future__ import annotations

import numpy as np
import pytest

from scenegpi import SceneGraph, Vocabulary
from scenegpi.errors import DataError
from scenegpi.vision import BoxFeatureConfig, HeadConfig, VisionConfig
from scenegpi.vision.efficientnet import packaged_network

COLOURS = {"red": (210, 40, 40), "green": (40, 200, 60), "blue": (40, 60, 220), "white": (235, 235, 235)}
VOCABULARY = Vocabulary(list(COLOURS), ["near"], "colours")
TINY_FEATURES = BoxFeatureConfig(backbone="photo", photo_size=64, mirror=False, surroundings=0.0)
"""The photo network with random weights."""
TINY_EYES = VisionConfig(
    BoxFeatureConfig(backbone="photo", photo_size=64, roi_bins=3), HeadConfig(hidden=8), second_look=True
)
"""All that it has: finder, second look, mirror image."""
PACKAGED = VisionConfig(BoxFeatureConfig(photo_size=64), HeadConfig(hidden=8))
"""It names boxes and finds none."""


def colour_scene(seed: int, boxes: int = 6, width: int = 160, height: int = 120):
    """A noisy picture with coloured boxes that do not cover each other much, and its graph."""
    rng = np.random.default_rng(seed)
    photo = rng.integers(60, 150, (height, width, 3)).astype(np.uint8)
    labels = rng.integers(0, len(COLOURS), boxes)
    cells = rng.permutation(12)[:boxes]
    found = []
    for cell, label in zip(cells, labels, strict=True):
        x, y = 40 * (cell % 4) + rng.integers(0, 10), 40 * (cell // 4) + rng.integers(0, 10)
        box = [x, y, x + rng.integers(15, 30), y + rng.integers(15, 30)]
        patch = photo[box[1] : box[3], box[0] : box[2]]
        patch[:] = (np.array(list(COLOURS.values()))[label] + rng.normal(0, 15, patch.shape)).clip(0, 255)
        found.append(box)
    graph = SceneGraph(np.array(found).reshape(-1, 4), labels, VOCABULARY, width=width, height=height)
    return photo, graph


def package_missing() -> str:
    """Why the packaged backbone cannot be used, or nothing."""
    try:
        packaged_network()
    except DataError as error:
        return str(error)
    return ""


needs_package = pytest.mark.skipif(bool(package_missing()), reason=package_missing() or "-")
