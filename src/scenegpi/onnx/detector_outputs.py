"""Which detector is in an ONNX file: told by the names and shapes of what it gives for a grey picture.

| output | of | picture |
|---|---|---|
| `labels`, `boxes`, `scores`; a second input `orig_target_sizes` | RT-DETR, D-FINE, DEIM | stretched, RGB from 0 to 1 |
| (1, cells, 5 + C), offsets from a grid, or decoded | YOLOX | in the corner, BGR from 0 to 255 |
| (1, 3 cells, 5 + C), centre and size | YOLOv5, YOLOv7 | centred, RGB from 0 to 1 |
| (1, cells, 5 + C), centre and size, no objectness | YOLOv6 | centred, RGB from 0 to 1 |
| (1, 4 + C, cells), centre and size | YOLOv8, v9, 11, 12 | centred, RGB from 0 to 1 |
| (1, K, 6), corners, score, label | YOLOv10, YOLO26, exports with NMS | centred, RGB from 0 to 1 |
| (K, 7), image, corners, label, score | YOLOv7 with NMS | centred, RGB from 0 to 1 |

"Cells" are those of the strides 8, 16, 32 (or 64 as well) over the input; C is the number of labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Outputs = Mapping[str, Array]
STRIDES = ((8, 16, 32), (8, 16, 32, 64))
NAMED = ("boxes", "labels", "scores")
RAW_OFFSET = 16
"""In cells: offsets from a grid are nearer to it than this, centres in pixels are mostly farther from 0."""


class Candidates(NamedTuple):
    """Boxes (K, 4) x1, y1, x2, y2 in pixels of the input, labels (K,), scores (K,)."""

    boxes: Array
    labels: Array
    scores: Array


@dataclass(frozen=True)
class Layout:
    """How a picture is laid into the input, and how the outputs are read.

    Args:
        name: what is said of it.
        read: outputs -> candidates.
        classes: how many labels it has, where the outputs tell.
        fit: "stretched", or scaled evenly and "centred" or in the "corner", the rest grey.
        pixels: what the input holds.
        iou: overlap above which the worse of two boxes of one label is dropped; 1 where the file does that itself.
    """

    name: str
    read: Callable[[Outputs], Candidates]
    classes: int | None = None
    fit: Literal["stretched", "centred", "corner"] = "centred"
    pixels: Literal["rgb", "bgr255"] = "rgb"
    iou: float = 1.0


def recognized(found: Outputs, width: int, height: int) -> Layout | None:
    """The layout of what a file gave for a grey picture of this size; None for any other."""
    if set(NAMED) <= set(found):
        boxes, labels, scores = (found[name] for name in NAMED)
        if boxes.ndim == 3 and boxes.shape[::2] == (1, 4) and labels.shape == scores.shape == boxes.shape[:2]:
            return Layout("DETR", lambda out: Candidates(*(out[name][0] for name in NAMED)), fit="stretched")
        return None
    if len(found) != 1:
        return None
    (values,) = found.values()
    if values.ndim == 2 and values.shape[1] == 7:
        return Layout("YOLO with NMS", lambda out: _columns(_only(out), 1, 5, 6))
    if values.ndim != 3 or len(values) != 1 or not np.issubdtype(values.dtype, np.floating):
        return None
    _, rows, columns = values.shape
    for strides in STRIDES:
        cells = sum(-(-width // s) * -(-height // s) for s in strides)
        if columns == cells and rows > 4:
            return Layout("YOLO", lambda out: _centred(_only(out)[0].T, objectness=False), rows - 4, iou=0.6)
        if rows == 3 * cells and columns > 5:
            return Layout("YOLO", lambda out: _centred(_only(out)[0]), columns - 5, iou=0.6)
        if rows == cells and columns > 5:
            return _of_cells(values[0], strides, width, height)
    if columns == 6:
        return Layout("YOLO with NMS", lambda out: _columns(_only(out)[0], 0, 5, 4))
    return None


def _of_cells(rows: Array, strides: tuple[int, ...], width: int, height: int) -> Layout:
    """One row per cell: YOLOX with or without its decoding, or YOLOv6, whose objectness is always 1."""
    classes = rows.shape[1] - 5
    if float(np.median(np.abs(rows[:, :2]))) > RAW_OFFSET:
        if (rows[:, 4] == 1).all():
            return Layout("YOLO", lambda out: _centred(_only(out)[0]), classes, iou=0.6)
        return Layout("YOLOX", lambda out: _centred(_only(out)[0]), classes, "corner", "bgr255", 0.6)
    corner, step = _grid(strides, width, height)

    def read(out: Outputs) -> Candidates:
        raw = _only(out)[0]
        size = np.exp(np.minimum(raw[:, 2:4], 20)) * step
        return _centred(np.concatenate([(raw[:, :2] + corner) * step, size, raw[:, 4:]], 1))

    return Layout("YOLOX", read, classes, "corner", "bgr255", 0.6)


def _grid(strides: tuple[int, ...], width: int, height: int) -> tuple[Array, Array]:
    """Column and row of each cell (cells, 2), and its stride (cells, 1), level by level."""
    corners, steps = [], []
    for stride in strides:
        y, x = np.mgrid[: -(-height // stride), : -(-width // stride)]
        corners.append(np.stack([x, y], -1).reshape(-1, 2))
        steps.append(np.full((x.size, 1), stride))
    return np.concatenate(corners).astype(np.float32), np.concatenate(steps).astype(np.float32)


def _centred(rows: Array, objectness: bool = True) -> Candidates:
    """Rows of centre, size, (objectness,) score of each label."""
    scores = rows[:, 4:5] * rows[:, 5:] if objectness else rows[:, 4:]
    labels = scores.argmax(axis=1)
    half = rows[:, 2:4] / 2
    boxes = np.concatenate([rows[:, :2] - half, rows[:, :2] + half], axis=1)
    return Candidates(boxes, labels, scores[np.arange(len(scores)), labels])


def _columns(rows: Array, box: int, label: int, score: int) -> Candidates:
    return Candidates(rows[:, box : box + 4], rows[:, label], rows[:, score])


def _only(out: Outputs) -> Array:
    return next(iter(out.values()))
