r"""Boxes that stand for the same thing: same label, overlapping by half. Annotators draw them, detectors too.

.. math:: D(i) = \{ j : \text{label}_j = \text{label}_i, \; \text{IoU}(i, j) \ge 1/2 \}

with pixels counted inclusively, as recall matches boxes. What a pair says is then said for all pairs of D(i) x D(j). An
entity is *covered* if D(i) has a strictly bigger one: which of the two speaks first does not depend on their order, and
whether an entity is covered is known only from its neighbours.
"""

from __future__ import annotations

import torch
from torch import Tensor

from scenegpi.features.batch import SceneBatch

ALL = slice(None)
IOU = 0.5
COLUMNS = 4
LOUD = 6.0


def duplicate_columns(batch: SceneBatch, labels: Tensor, rows: slice = ALL) -> Tensor:
    """Features of each pair, (E, 4), by labels (N,); of the pairs in `rows` only.

    Same label; IoU if so; duplicates; and for these 1 if the object is bigger, -1 if the subject is. The last two are
    rare and not standardised; they are multiplied by `LOUD`, so that they are learned as fast as the others.
    """
    same, iou, step = _compare(batch, labels, rows)
    twin = same & (iou >= IOU)
    return torch.stack([same, same * iou, LOUD * twin, LOUD * twin * step.sign()], 1).float()


def covered(batch: SceneBatch, labels: Tensor) -> Tensor:
    """(N,) which entities have a strictly bigger duplicate; labels (N,)."""
    same, iou, step = _compare(batch, labels)
    out = torch.zeros(len(labels), dtype=torch.bool, device=labels.device)
    out[batch.edge_index[0][same & (iou >= IOU) & (step > 0)]] = True
    return out


def twins(batch: SceneBatch, labels: Tensor) -> tuple[Tensor, Tensor]:
    """D of each entity, itself included, one after the other: members (M,) and first places (N + 1,); labels (N,)."""
    same, iou, _ = _compare(batch, labels)
    i, j = batch.edge_index[:, same & (iou >= IOU)]
    own = torch.arange(len(labels), device=labels.device)
    holder, member = torch.cat([own, i]), torch.cat([own, j])
    order = torch.argsort(holder, stable=True)
    counts = torch.bincount(holder, minlength=len(labels))
    return member[order], torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _compare(batch: SceneBatch, labels: Tensor, rows: slice = ALL) -> tuple[Tensor, Tensor, Tensor]:
    """Of each pair: same label (E,), IoU (E,), area of the object minus that of the subject (E,)."""
    i, j = batch.edge_index[:, rows]
    a, b = batch.boxes[i], batch.boxes[j]
    shared = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2]) + 1).clamp_min(0).prod(1)
    area_a, area_b = ((box[:, 2:] - box[:, :2] + 1).prod(1) for box in (a, b))
    return labels[i] == labels[j], shared / (area_a + area_b - shared), area_b - area_a
