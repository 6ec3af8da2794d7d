"""What a layout model reads of a batch: boxes, counts and pair geometry, standardised; which boxes are duplicates."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from scenegpi.features.batch import SceneBatch
from scenegpi.features.entities import BOX_NAMES, EntityFeatures
from scenegpi.features.pairs import PAIR_WIDTH, pair_geometry
from scenegpi.features.standardise import Standardise
from scenegpi.models.duplicates import ALL, COLUMNS, duplicate_columns

ENTITY = EntityFeatures(distribution="none")
ENTITY_WIDTH = ENTITY.width(0)
BOX_WIDTH = len(BOX_NAMES)
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
