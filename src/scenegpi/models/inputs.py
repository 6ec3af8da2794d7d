r"""What a layout model reads of a batch: boxes, counts and pair geometry, standardised, and which boxes are duplicates.

.. math:: \hat x = (x - \mu) / \sigma

Mean and deviation are measured once on training images and kept with the model, so a prediction does not depend on
what else is in its batch.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from scenegpi.features.batch import SceneBatch
from scenegpi.features.entities import BOX_NAMES, EntityFeatures
from scenegpi.features.pairs import PAIR_WIDTH, pair_geometry
from scenegpi.models.duplicates import ALL, COLUMNS, duplicate_columns

ENTITY = EntityFeatures(distribution="none")
ENTITY_WIDTH = ENTITY.width(0)
BOX_WIDTH = len(BOX_NAMES)
PAIR_INPUTS = PAIR_WIDTH + COLUMNS
_MAX_DEVIATIONS = 6.0


class Standardise(nn.Module):
    """(M, d) -> (M, d), column by column, cut off at six deviations."""

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def measure(self, rows: Tensor) -> None:
        """Sets mean and scale from rows (M, d); a column that never changes is left as it is."""
        if len(rows) > 1:
            deviation = rows.double().std(0)
            constant = deviation < 1e-6
            self.mean.copy_(torch.where(constant, 0.0, rows.double().mean(0)))
            self.scale.copy_(torch.where(constant, 1.0, 1 / deviation))

    def forward(self, rows: Tensor) -> Tensor:
        return ((rows - self.mean) * self.scale).clamp(-_MAX_DEVIATIONS, _MAX_DEVIATIONS)


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
        """Standardises by these batches."""
        entities, pairs = [], []
        for batch in batches:
            entities.append(_entities(batch))
            pairs.append(_pairs(batch))
        self.entity.measure(torch.cat(entities))
        self.pair.measure(torch.cat(pairs))


def _entities(batch: SceneBatch) -> Tensor:
    return ENTITY(batch.boxes, batch.sizes, batch.label_dist, batch.batch, batch.ptr)


def _pairs(batch: SceneBatch, rows: slice = ALL) -> Tensor:
    return pair_geometry(batch.boxes, batch.sizes, batch.edge_index[:, rows], batch.batch)
