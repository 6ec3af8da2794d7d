"""Suppression of boxes against its definition."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scenegpi import boxes as module
from scenegpi.boxes import MAX_CANDIDATES, box_iou, suppress


def random_boxes(rng, n, scale=100.0):
    corners = rng.uniform(0, scale, (n, 2, 2))
    return np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.floats(0.05, 0.95), st.sampled_from([3, 256]))
def test_suppression_is_that_of_the_definition(seed, n, iou, block):
    """What stays overlaps no better one that stays; what goes does; in one block or in many."""
    rng = np.random.default_rng(seed)
    boxes, scores, groups = random_boxes(rng, n), rng.uniform(size=n).round(1), rng.integers(0, 3, n)
    with patch.object(module, "BLOCK", block):
        kept = suppress(boxes, scores, groups, iou).tolist()
    overlap = box_iou(boxes, boxes) if n else np.zeros((0, 0))
    better = {
        i: [j for j in range(n) if (-scores[j], j) < (-scores[i], i) and groups[i] == groups[j]] for i in range(n)
    }
    for i in range(n):
        beaten = any(overlap[i, j] > iou for j in better[i] if j in kept)
        assert (i in kept) == (not beaten)
    assert [(-scores[i], i) for i in kept] == sorted((-scores[i], i) for i in kept)


def test_suppression_without_scores_keeps_the_first():
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 10.5], [50, 50, 60, 60]], float)
    assert suppress(boxes, None, np.zeros(3, int), 0.5).tolist() == [0, 2]
    assert suppress(boxes, None, np.array([0, 1, 0]), 0.5).tolist() == [0, 1, 2]


def test_suppression_is_bounded():
    boxes = np.tile([0.0, 0, 1, 1], (20_000, 1)) + np.arange(20_000)[:, None] * 3
    assert len(suppress(boxes, None, np.zeros(20_000, int), 0.5)) == MAX_CANDIDATES
    assert len(suppress(boxes, None, np.arange(20_000), 0.5)) == MAX_CANDIDATES
