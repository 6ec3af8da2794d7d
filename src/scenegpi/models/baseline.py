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
from scenegpi.gpi.dropout import dropout
from scenegpi.gpi.networks import MLP, Dense
from scenegpi.models.config import BaselineConfig
from scenegpi.models.layout_inputs import BOX_WIDTH, ENTITY_WIDTH, PAIR_INPUTS, LayoutInputs
from scenegpi.models.prior import STATISTICS, PriorOutput, make_prior
from scenegpi.models.scene_network import SceneLogits, SceneNetwork

CHUNK = 1 << 15
"""Number of pairs processed at once if no gradient is needed."""


class PairOutput(NamedTuple):
    """`logits` (E, 1 + P) and `geometry` (E, PAIR_INPUTS)."""

    logits: Tensor
    geometry: Tensor


class FirstStage(NamedTuple):
    """`nodes` (N, C) logits, the output for the `pairs`, and the `entity` inputs (N, ENTITY_WIDTH), standardised."""

    nodes: Tensor
    pairs: PairOutput
    entity: Tensor


class Baseline(SceneNetwork):
    """Labels and boxes -> distributions of each box and each pair, C labels and P predicates."""

    def __init__(self, config: BaselineConfig, labels: int, predicates: int) -> None:
        super().__init__()
        self.config = config
        self.inputs = LayoutInputs()
        self.prior = make_prior(config, labels, predicates)
        self.label = nn.Parameter(torch.randn(labels, config.embedding) * 0.3)
        node = config.embedding + ENTITY_WIDTH
        self.network = PairNetwork(config, labels, predicates, node) if config.layers else None
        self.entity = None
        if config.refine_labels:
            self.entity = MLP([node], [config.hidden] * max(config.layers, 1), labels, config.dropout)
            end_in_zero(self.entity)

    @property
    def front(self) -> Baseline:
        return self

    @property
    def first_stage_network(self) -> Baseline:
        return self

    def forward(self, batch: SceneBatch) -> SceneLogits:
        """One step: (N, C) and (E, 1 + P) logits."""
        stage = self.first_stage(batch)
        return SceneLogits([stage.nodes], [stage.pairs.logits])

    def first_stage(self, batch: SceneBatch, leave_out: bool | None = None) -> FirstStage:
        """The output for boxes and pairs, and the further inputs of a context.

        `leave_out`: subtract the images' own relations from the counts of the prior; by default while the model
        trains.
        """
        dist = batch.label_dist.to(self.label.dtype)
        box = entity = self.inputs.entities(batch)
        if not self.config.counts:
            box = torch.cat([box[:, :BOX_WIDTH], torch.zeros_like(box[:, BOX_WIDTH:])], 1)
        z = dropout(torch.cat([dist @ self.label, box], 1), self.config.input_dropout, self.training)
        nodes = clamped_log(dist)
        if self.entity is not None:
            nodes = nodes + self.entity(z)
        counted = self.training if leave_out is None else leave_out
        if counted or torch.is_grad_enabled() or batch.num_edges <= CHUNK:
            return FirstStage(nodes, self._pairs(batch, slice(None), dist, z, counted), entity)
        # Written in place: joining a list of pieces would hold them twice.
        first = self._pairs(batch, slice(CHUNK), dist, z, counted)
        found = PairOutput(*(side.new_empty(batch.num_edges, side.shape[1]) for side in first))
        for k in range(0, batch.num_edges, CHUNK):
            rows = slice(k, k + CHUNK)
            pieces = self._pairs(batch, rows, dist, z, counted) if k else first
            for whole, piece in zip(found, pieces, strict=True):
                whole[rows] = piece
        return FirstStage(nodes, found, entity)

    def _pairs(self, batch: SceneBatch, rows: slice, dist: Tensor, z: Tensor, counted: bool) -> PairOutput:
        """The output for the pairs in `rows`; dist (N, C), z (N, d)."""
        labels = dist.argmax(1)
        geometry = self.inputs.pairs(batch, labels, rows)
        prior = self.prior(batch, labels, counted, rows)
        related, predicate = prior.related[:, :1], prior.logits
        if self.network is not None:
            related, predicate = self.network(batch.edge_index[:, rows], dist, z, geometry, prior)
        logits = torch.cat([torch.zeros_like(related), related + predicate.log_softmax(1)], 1)
        return PairOutput(logits, geometry)


class PairNetwork(nn.Module):
    """The network f over pairs; parts that depend on one box are computed once per box."""

    def __init__(self, config: BaselineConfig, labels: int, predicates: int, node: int) -> None:
        super().__init__()
        self.config = config
        edge = PAIR_INPUTS + config.rank + predicates + STATISTICS
        if config.rank:
            self.left = nn.Parameter(torch.randn(labels, config.rank) * 0.3)
            self.right = nn.Parameter(torch.randn(labels, config.rank) * 0.3)
        self.first = Dense([node, node, edge], config.hidden)
        self.rest = nn.ModuleList(Dense([config.hidden], config.hidden) for _ in range(config.layers - 1))
        self.out = nn.Linear(config.hidden, 1 + predicates)
        self.trust = nn.Parameter(torch.ones(2))

    def forward(
        self, edge_index: Tensor, dist: Tensor, z: Tensor, geometry: Tensor, prior: PriorOutput
    ) -> tuple[Tensor, Tensor]:
        """Log-odds (E, 1) and predicates (E, P); dist (N, C), z (N, d), geometry (E, PAIR_INPUTS)."""
        i, j = edge_index
        p, training = self.config.dropout, self.training
        known = (geometry, 0.25 * prior.logits + 1, 0.5 * prior.related)
        read = [dropout(part, self.config.input_dropout, training) for part in known]
        if self.config.rank:
            left, right = dist @ self.left, dist @ self.right
            read.append(left.index_select(0, i) * right.index_select(0, j))
        own, other, pair = self.first.columns()
        # In place: allocating memory of this size costs more than the sums.
        x = linear(z, own, self.first.bias).index_select(0, i)
        x += linear(z, other).index_select(0, j)
        x = dropout(x.addmm_(torch.cat(read, 1), pair.t()).relu_(), p, training)
        for layer in self.rest:
            x = dropout(layer(x), p, training)
        out = self.out(x)
        return out[:, :1] + self.trust[0] * prior.related[:, :1], out[:, 1:] + self.trust[1] * prior.logits


def end_in_zero(network: nn.Module) -> None:
    """Sets the last layer of an MLP to zero, so that at first it corrects nothing."""
    last = network.layers[-1] if isinstance(network, MLP) else None
    if isinstance(last, Dense):
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
