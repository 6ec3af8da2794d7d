r"""Boxes of the same thing: same label, overlapping by half. Annotators draw them, detectors too.

.. math:: D(i) = \{ j : \text{label}_j = \text{label}_i, \; \text{IoU}(i, j) \ge 1/2 \}

with pixels counted inclusively, as recall matches boxes. Of two duplicates the bigger one speaks first, whatever the
order in which they are listed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from scenegpi.features.batch import SceneBatch

ALL = slice(None)
IOU = 0.5
COLUMNS = 4
DUPLICATE_SCALE = 6.0


def duplicate_columns(batch: SceneBatch, labels: Tensor, rows: slice = ALL) -> Tensor:
    """Features of each pair, (E, 4), by labels (N,); of the pairs in `rows` only.

    Same label; IoU if so; duplicates; and for these 1 if the object is bigger, -1 if the subject is. The last two are
    rare and not standardised; they are multiplied by `DUPLICATE_SCALE`, so that they are learned as fast as the others.
    """
    found, iou, step = _compare(batch, labels, rows)
    same, twin = found.to(iou.dtype), DUPLICATE_SCALE * (found & (iou >= IOU))
    return torch.stack([same, same * iou, twin.to(iou.dtype), twin * step.sign()], 1).float()


def _compare(batch: SceneBatch, labels: Tensor, rows: slice = ALL) -> tuple[Tensor, Tensor, Tensor]:
    """Of each pair: same label (E,), IoU (E,), area of the object minus that of the subject (E,)."""
    i, j = batch.edge_index[:, rows]
    a, b = batch.boxes[i], batch.boxes[j]
    shared = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2]) + 1).clamp_min(0).prod(1)
    area_a, area_b = ((box[:, 2:] - box[:, :2] + 1).prod(1) for box in (a, b))
    return labels[i] == labels[j], shared / (area_a + area_b - shared), area_b - area_a
