r"""The inputs of a layout model: boxes, counts and pair geometry, standardised; and duplicate boxes.

Duplicate boxes have the same label and overlap by half. Both annotators and detectors produce them:

.. math:: D(i) = \{ j : \text{label}_j = \text{label}_i, \; \text{IoU}(i, j) \ge 1/2 \}

with pixels counted inclusively, as recall matches boxes. Of two duplicates the bigger one comes first, whatever the
order in which they are listed.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from scenegpi.features.batch import SceneBatch
from scenegpi.features.entities import BOX_NAMES, COUNT_NAMES, entity_features
from scenegpi.features.geometry import PAIR_WIDTH, pair_geometry
from scenegpi.features.standardise import Standardise

ALL = slice(None)
IOU = 0.5
COLUMNS = 4
DUPLICATE_SCALE = 6.0
BOX_WIDTH = len(BOX_NAMES)
ENTITY_WIDTH = BOX_WIDTH + len(COUNT_NAMES)
PAIR_INPUTS = PAIR_WIDTH + COLUMNS


class LayoutInputs(nn.Module):
    """Box and counts of each entity (N, 13); geometry and duplicates of each pair (E, PAIR_INPUTS)."""

    def __init__(self) -> None:
        super().__init__()
        self.entity = Standardise(ENTITY_WIDTH)
        self.pair = Standardise(PAIR_WIDTH)

    def entities(self, batch: SceneBatch) -> Tensor:
        """(N, ENTITY_WIDTH)"""
        return self.entity(_entities(batch))

    def pairs(self, batch: SceneBatch, labels: Tensor, rows: slice = ALL) -> Tensor:
        """(E, PAIR_INPUTS) of the pairs in `rows`, the columns about duplicates last; labels (N,) the most probable."""
        return torch.cat([self.pair(_pairs(batch, rows)), duplicate_columns(batch, labels, rows)], 1)

    def measure(self, batches: Iterable[SceneBatch]) -> None:
        """Measures the standardisation on these batches."""
        entities, pairs = [], []
        for batch in batches:
            entities.append(_entities(batch))
            pairs.append(_pairs(batch))
        self.entity.measure(torch.cat(entities))
        self.pair.measure(torch.cat(pairs))


def _entities(batch: SceneBatch) -> Tensor:
    return entity_features(batch.boxes, batch.sizes, batch.label_dist, batch.batch, batch.ptr)


def _pairs(batch: SceneBatch, rows: slice = ALL) -> Tensor:
    return pair_geometry(batch.boxes, batch.sizes, batch.edge_index[:, rows], batch.batch)


def duplicate_columns(batch: SceneBatch, labels: Tensor, rows: slice = ALL) -> Tensor:
    """Features of each pair, (E, 4), by labels (N,); of the pairs in `rows` only.

    Same label; IoU if so; duplicates; and for these 1 if the object is bigger, -1 if the subject is. The last two are
    rare and not standardised; they are multiplied by `DUPLICATE_SCALE`, so that they are learned as fast as the others.
    """
    i, j = batch.edge_index[:, rows]
    a, b = batch.boxes[i], batch.boxes[j]
    shared = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2]) + 1).clamp_min(0).prod(1)
    area_a, area_b = ((box[:, 2:] - box[:, :2] + 1).prod(1) for box in (a, b))
    found, iou = labels[i] == labels[j], shared / (area_a + area_b - shared)
    same, twin = found.to(iou.dtype), DUPLICATE_SCALE * (found & (iou >= IOU))
    return torch.stack([same, same * iou, twin.to(iou.dtype), twin * (area_b - area_a).sign()], 1).float()
