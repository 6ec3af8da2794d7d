r"""The baseline: no context, each box and each pair of boxes alone.

.. math::
    x_{ij} &= f(z_i, z_j, \text{geometry}_{ij}, \text{prior}_{ij}, u_i \odot v_j) \\
    P(\text{related}) &= \sigma(x_{ij0} + a\, \text{odds}_{ij}), \qquad
    P(r \mid \text{related}) = \text{softmax}_r(x_{ijr} + b \log q_{ij}(r))

z_i is the mean vector of the label distribution with the box and counts of the entity; u_i, v_j are low-rank label
vectors. The two factors are written as one vector of 1 + P logits, whose softmax is their product:
:math:`(0, \text{logit} + \log P(r \mid \text{related}))`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from scenegpi.features.batch import SceneBatch
from scenegpi.features.entities import clamped_log
from scenegpi.features.pairs import PAIR_WIDTH
from scenegpi.gpi.networks import MLP, Dense
from scenegpi.models.config import BaselineConfig
from scenegpi.models.inputs import ENTITY_WIDTH, LayoutInputs
from scenegpi.models.prior import STATISTICS, CountPrior

CHUNK = 1 << 15
"""Pairs that go through the network at once where no gradient is wanted."""


class SceneLogits(NamedTuple):
    """Logits after every step, first to last: `nodes[t]` (N, C), `edges[t]` (E, 1 + P), column 0 "no relation"."""

    nodes: list[Tensor]
    edges: list[Tensor]


class PairOutput(NamedTuple):
    """`logits` (E, 1 + P), `hidden` (E, h) the last hidden layer, `geometry` (E, PAIR_WIDTH)."""

    logits: Tensor
    hidden: Tensor
    geometry: Tensor


class Baseline(nn.Module):
    """Labels and boxes -> distributions of each box and each pair, C labels and P predicates."""

    def __init__(self, config: BaselineConfig, labels: int, predicates: int) -> None:
        super().__init__()
        self.config = config
        self.inputs = LayoutInputs()
        self.prior = None
        if config.prior != "none":
            self.prior = CountPrior(labels, 1 + predicates, config.prior, config.smoothing)
        self.label = nn.Parameter(torch.randn(labels, config.embedding) * 0.3)
        node = config.embedding + (ENTITY_WIDTH if config.entity else 0)
        edge = (PAIR_WIDTH if config.geometry else 0) + config.rank
        edge += 0 if self.prior is None else predicates + STATISTICS
        if config.rank:
            self.left = nn.Parameter(torch.randn(labels, config.rank) * 0.3)
            self.right = nn.Parameter(torch.randn(labels, config.rank) * 0.3)
        hidden = [config.hidden] * config.layers
        self.first = Dense([node, node, edge], config.hidden)
        self.rest = nn.ModuleList(Dense([config.hidden], config.hidden) for _ in hidden[1:])
        self.out = nn.Linear(config.hidden, 1 + predicates)
        self.trust = nn.Parameter(torch.ones(2))
        self.entity = MLP([node], hidden, labels, config.dropout) if config.refine_labels else None
        if self.entity is not None:
            nn.init.zeros_(self.entity.layers[-1].weight)
            nn.init.zeros_(self.entity.layers[-1].bias)

    def forward(self, batch: SceneBatch) -> SceneLogits:
        """One step: (N, C) and (E, 1 + P) logits."""
        nodes, pairs = self.stages(batch)
        return SceneLogits([nodes], [pairs.logits])

    def stages(self, batch: SceneBatch, hidden: bool = False) -> tuple[Tensor, PairOutput]:
        """Node logits (N, C), and what the pair network gives; `hidden` keeps its last layer."""
        dist = batch.label_dist.to(self.label.dtype)
        parts = [dist @ self.label]
        if self.config.entity:
            parts.append(self.inputs.entities(batch))
        z = self._drop(torch.cat(parts, 1), self.config.input_dropout)
        nodes = clamped_log(dist)
        if self.entity is not None:
            nodes = nodes + self.entity(z)
        return nodes, self._pairs(batch, dist, z, hidden)

    def _pairs(self, batch: SceneBatch, dist: Tensor, z: Tensor, hidden: bool) -> PairOutput:
        geometry = self.inputs.pairs(batch)
        parts = [geometry] if self.config.geometry else []
        prior = None
        if self.prior is not None:
            leave_out = self.training and self.config.leave_out
            prior = self.prior(batch, dist.argmax(1), leave_out)
            parts += [0.25 * prior.logits + 1, 0.5 * prior.related]
        parts = [self._drop(part, self.config.input_dropout) for part in parts]
        columns = self.first.columns()
        i, j = batch.edge_index
        by_subject, by_object = linear(z, columns[0], self.first.bias), linear(z, columns[1])
        ranks = (dist @ self.left, dist @ self.right) if self.config.rank else None
        step = len(i) if torch.is_grad_enabled() else CHUNK
        found: list[tuple[Tensor, Tensor]] = []
        for start in range(0, max(len(i), 1), max(step, 1)):
            rows = slice(start, start + step)
            own = [part[rows] for part in parts]
            if ranks is not None:
                own.append(ranks[0][i[rows]] * ranks[1][j[rows]])
            x = by_subject[i[rows]] + by_object[j[rows]]
            if own:
                x = x + linear(torch.cat(own, 1), columns[2])
            x = self._drop(x.relu(), self.config.dropout)
            for layer in self.rest:
                x = self._drop(layer(x), self.config.dropout)
            found.append((self.out(x), x if hidden else x[:, :0]))
        out, last = (torch.cat(side) for side in zip(*found, strict=True))
        related, predicate = out[:, :1], out[:, 1:]
        if prior is not None:
            related = related + self.trust[0] * prior.related[:, :1]
            predicate = predicate + self.trust[1] * prior.logits
        logits = torch.cat([torch.zeros_like(related), related + predicate.log_softmax(1)], 1)
        return PairOutput(logits, last, geometry)

    def _drop(self, x: Tensor, p: float) -> Tensor:
        return torch.dropout(x, p, True) if self.training and p else x
