"""Overlap of boxes as the field's evaluators count it: pixels inclusively (+1), in float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def box_iou(a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.float64]:
    """IoU of every box of `a` with every box of `b`: (N, 4), (M, 4) -> (N, M). Boxes are x1, y1, x2, y2."""
    return _iou(np.asarray(a, dtype=np.float64)[:, None, :], np.asarray(b, dtype=np.float64)[None, :, :])


def paired_iou(a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.float64]:
    """IoU of each box of `a` with the box of `b` in the same row: (N, 4), (N, 4) -> (N,)."""
    return _iou(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))


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
