r"""The one front end: the inputs that a system may read from a batch.

.. math:: x_i = [p_i E, \text{box}_i, \text{counts}_i], \qquad u_{ij} = [\text{geometry}_{ij}, \text{duplicates}_{ij}]

x_i stands for the features of a box in the original, u_ij for those of the union of two boxes; the frequency prior of
the two labels is read by `bias`. These are the inputs of the baseline, by the same settings.

A system on top of a frozen baseline reads what the GPI layer reads instead: the baseline's distributions, the box with
its counts, and the geometry. Its output is then added to the baseline's logits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from scenegpi.features.batch import SceneBatch
from scenegpi.features.entities import clamped_log
from scenegpi.gpi.dropout import dropout
from scenegpi.models.baseline import Baseline
from scenegpi.models.config import BaselineConfig
from scenegpi.models.layout_inputs import BOX_WIDTH, ENTITY_WIDTH, PAIR_INPUTS, LayoutInputs
from scenegpi.models.prior import PriorOutput, log_prior, make_prior
from scenegpi.models.sgp import reverse_edges, scaled_log

CHUNK = 1 << 15
"""Pairs that are worked on at once where no gradient is wanted."""
Bias = Literal["none", "counts", "trained"]


@dataclass(frozen=True)
class Reading:
    """The inputs read from a batch.

    `dist` (N, C) and `labels` (N,), the most probable; `certain` (N,), which labels are given; `nodes` (N, node_width);
    `pairs(rows)` (E, pair_width) of the pairs in `rows`, and `prior(rows)`. A system's output is added to
    `node_logits` (N, C), and on top of a baseline to `pair_logits` (E, 1 + P).
    """

    batch: SceneBatch
    dist: Tensor
    labels: Tensor
    certain: Tensor
    nodes: Tensor
    node_logits: Tensor
    pairs: Callable[[slice], Tensor]
    prior: Callable[[slice], PriorOutput | None]
    pair_logits: Tensor | None = None

    def chunks(self) -> list[slice]:
        """Rows of pairs to work on, one after the other; all at once for a gradient."""
        edges = self.batch.num_edges
        if torch.is_grad_enabled() or edges <= CHUNK:
            return [slice(None)]
        return [slice(k, k + CHUNK) for k in range(0, edges, CHUNK)]

    def over_pairs(self, part: Callable[[slice, Tensor, Tensor], Tensor]) -> Tensor:
        """(E, ...): `part(rows, i, j)` of the rows of each chunk, i and j their subjects and objects."""
        pieces = [part(rows, *self.batch.edge_index[:, rows]) for rows in self.chunks()]
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces)

    def best_labels(self, nodes: Tensor) -> Tensor:
        """Labels (N,): those given, else the most probable ones once nodes (N, C) are added."""
        return torch.where(self.certain, self.labels, (self.node_logits + nodes).argmax(1))


class Reader(nn.Module):
    """Labels and boxes as they are given; a system that reads pairs only needs no vectors of labels."""

    def __init__(self, config: BaselineConfig, labels: int, predicates: int, embed: bool = True) -> None:
        super().__init__()
        self.config = config
        self.inputs = LayoutInputs()
        self.prior = make_prior(config, labels, predicates)
        self.label = nn.Parameter(torch.randn(labels, config.embedding) * 0.3) if embed else None
        self.node_width, self.pair_width = ENTITY_WIDTH + (config.embedding if embed else 0), PAIR_INPUTS

    def forward(self, batch: SceneBatch) -> Reading:
        dist = batch.label_dist.to(self.inputs.entity.mean.dtype)
        labels = dist.argmax(1)
        box = self.inputs.entities(batch).to(dist.dtype)
        if not self.config.counts:
            box = torch.cat([box[:, :BOX_WIDTH], torch.zeros_like(box[:, BOX_WIDTH:])], 1)
        nodes = _thinned(self, box if self.label is None else torch.cat([dist @ self.label, box], 1))

        def pairs(rows: slice) -> Tensor:
            return _thinned(self, self.inputs.pairs(batch, labels, rows).to(dist.dtype))

        def prior(rows: slice) -> PriorOutput | None:
            return self.prior(batch, labels, self.training, rows)

        certain = dist.amax(1) == 1
        return Reading(batch, dist, labels, certain, nodes, clamped_log(dist), pairs, prior)


class BaselineReader(nn.Module):
    """The output of a frozen baseline, as the GPI layer reads it."""

    def __init__(self, config: BaselineConfig, labels: int, predicates: int) -> None:
        super().__init__()
        self.config = config
        self.baseline = Baseline(config, labels, predicates).requires_grad_(False)
        self.node_width, self.pair_width = labels + ENTITY_WIDTH, 2 * (1 + predicates) + PAIR_INPUTS

    def forward(self, batch: SceneBatch) -> Reading:
        self.baseline.eval()
        with torch.no_grad():
            stage = self.baseline.first_stage(batch, leave_out=self.training)
        dist = batch.label_dist.to(stage.nodes.dtype)
        back = reverse_edges(batch)
        logits, geometry = stage.pairs

        def pairs(rows: slice) -> Tensor:
            parts = [scaled_log(logits[rows]), scaled_log(logits[back[rows]]), geometry[rows]]
            return _thinned(self, torch.cat(parts, 1))

        nodes = _thinned(self, torch.cat([scaled_log(stage.nodes), stage.entity], 1))
        certain = dist.amax(1) == 1
        labels = torch.where(certain, dist.argmax(1), stage.nodes.argmax(1))
        return Reading(batch, dist, labels, certain, nodes, stage.nodes, pairs, lambda rows: None, logits)


def _thinned(reader: Reader | BaselineReader, rows: Tensor) -> Tensor:
    return dropout(rows, reader.config.input_dropout, reader.training)


class PairBias(nn.Module):
    """A bias of a pair's logits, by its two labels.

    "counts" are the prior's odds and predicates with a learned scale each; "trained" is a table of all pairs of labels
    that starts at the logarithm of the training shares.
    """

    def __init__(self, kind: Bias, labels: int, classes: int) -> None:
        super().__init__()
        self.kind, self.num_labels = kind, labels
        if kind == "counts":
            self.trust = nn.Parameter(torch.ones(2))
        elif kind == "trained":
            self.table = nn.Parameter(torch.zeros(labels * labels, classes))

    def set_counts(self, counts: Tensor) -> None:
        """counts (C, C, 1 + P), column 0 pairs without a relation."""
        if self.kind == "trained":
            self.table.data.copy_(log_prior(counts.flatten(0, 1).double()))

    def forward(self, reading: Reading, labels: Tensor, rows: slice, logits: Tensor) -> Tensor:
        """logits (E, 1 + P) of the pairs in `rows`; labels (N,) choose the table's row, not the counts."""
        if self.kind == "trained":
            i, j = labels[reading.batch.edge_index[:, rows]]
            return logits + self.table.index_select(0, i * self.num_labels + j)
        prior = reading.prior(rows) if self.kind == "counts" else None
        if prior is None:
            return logits
        related = self.trust[0] * prior.related[:, :1]
        predicates = (self.trust[1] * prior.logits).log_softmax(1)
        return logits + torch.cat([torch.zeros_like(related), related + predicates], 1)
