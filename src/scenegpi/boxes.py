"""Overlap of boxes as the field's evaluators count it: pixels inclusively (+1), in float64; and suppression by it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MAX_CANDIDATES = 4096
"""Suppression considers at most this many boxes."""
BLOCK = 256


def box_iou(a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.float64]:
    """IoU of every box of `a` with every box of `b`: (N, 4), (M, 4) -> (N, M). Boxes are x1, y1, x2, y2."""
    return _iou(np.asarray(a, dtype=np.float64)[:, None, :], np.asarray(b, dtype=np.float64)[None, :, :])


def paired_iou(a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.float64]:
    """IoU of each box of `a` with the box of `b` in the same row: (N, 4), (N, 4) -> (N,)."""
    return _iou(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))


def suppress(
    boxes: NDArray[np.floating], scores: NDArray[np.floating] | None, groups: NDArray[np.integer], iou: float
) -> NDArray[np.int64]:
    """Non-maximum suppression: indices of the boxes that are kept, best first; boxes (N, 4), scores (N,), groups (N,).

    A box is dropped if a better one of its group (label) is kept and overlaps it by more than `iou`. Equal scores keep
    their order; without scores the first is the best. Only the best `MAX_CANDIDATES` boxes are considered, so time and
    memory are bounded.
    """
    weight = np.zeros(len(boxes)) if scores is None else np.asarray(scores, dtype=np.float64)
    order = np.argsort(-weight, kind="stable")[:MAX_CANDIDATES]
    group = np.asarray(groups)[order]
    by_group = np.argsort(group, kind="stable")  # the best of each group first
    stays = np.ones(len(order), dtype=bool)
    for rows in np.split(by_group, np.flatnonzero(np.diff(group[by_group])) + 1):
        stays[rows] = _unbeaten(boxes[order[rows]], iou)
    return order[stays]


def _unbeaten(boxes: NDArray[np.floating], iou: float) -> NDArray[np.bool_]:
    """Which of the boxes (N, 4), best first, overlap no earlier one that is kept; block by block, to save memory."""
    stays = np.ones(len(boxes), dtype=bool)
    for start in range(0, len(boxes), BLOCK):
        block = boxes[start : start + BLOCK]
        before = boxes[:start][stays[:start]]
        alive: NDArray[np.bool_] = np.logical_not((box_iou(block, before) > iou).any(axis=1))
        over = box_iou(block, block) > iou
        for i in np.flatnonzero(alive):
            if alive[i]:
                alive[i + 1 :] &= ~over[i, i + 1 :]
        stays[start : start + BLOCK] = alive
    return stays


def _iou(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore", invalid="ignore"):  # boxes near the largest float overlap nothing
        size = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]) + 1.0
        np.maximum(size, 0.0, out=size)
        inter = size[..., 0] * size[..., 1]
        iou: NDArray[np.float64] = inter / (_area(a) + _area(b) - inter)
    return iou


def _area(box: NDArray[np.float64]) -> NDArray[np.float64]:
    size = box[..., 2:] - box[..., :2] + 1.0
    area: NDArray[np.float64] = size[..., 0] * size[..., 1]
    return area
