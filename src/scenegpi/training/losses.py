r"""Losses by name, all of one form: cross-entropy of labels, of related-or-not, and of the predicate if related.

.. math::
    L = \frac 1 G \sum_t \Big[ \sum_i c_i H(y_i)
      + \sum_{ij} b_{ij} H(\text{related}_{ij}) + \sum_{ij} a_{ij} H(r_{ij} \mid \text{related}) \Big]

over the steps t of the recurrence; a model without context has one. Cross-entropy over 1 + P classes is the sum of the
last two terms for a = b, so losses differ only in their weights (n_ij: the rows of a pair, k_g the rows of its image):

=========  =================================================================================================
paper      a = b = 1 for related pairs, b = `negatives` (0.1) for others; c = `entities` (4)
released   the same, but all negatives of a batch together weigh `negatives` times all its positives, and all
           its entities `entities` times
metric     as recall counts: a = n_ij / sqrt(k_g), b the same, `negatives` / sqrt(k_g) for others
=========  =================================================================================================

In several processes G and the totals of a batch are those of all processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from scenegpi.features.batch import SceneBatch
from scenegpi.models.scene_network import SceneLogits
from scenegpi.training.config import LossConfig

Total = Callable[[Tensor], Tensor]


class Weights(NamedTuple):
    """c (N,), b (E,), a (E,) and `images`, G of all processes divided by their number."""

    entity: Tensor
    related: Tensor
    predicate: Tensor
    images: Tensor


def scene_loss(out: SceneLogits, batch: SceneBatch, config: LossConfig, total: Total = lambda x: x) -> Tensor:
    """The loss of each image, (G,), to be added up.

    `total` averages numbers over all processes.
    """
    target = batch.target_distribution().to(out.edges[-1].dtype)
    weights = loss_weights(batch, config, target, total)
    loss = target.new_zeros(batch.num_graphs)
    image = batch.batch[batch.edge_index[0]]
    steps = list(zip(out.nodes, out.edges, strict=True))
    for nodes, edges in steps[len(steps) > 1 :]:  # the first step is the baseline's, which is frozen
        loss = loss.index_add(0, batch.batch, cross_entropy(nodes, batch.labels, reduction="none") * weights.entity)
        loss = loss.index_add(0, image, _pairs(edges, target, weights))
    return loss / weights.images


def loss_weights(batch: SceneBatch, config: LossConfig, target: Tensor, total: Total) -> Weights:
    """The weights of a batch; target (E, 1 + P)."""
    related = 1 - target[:, 0]
    image = batch.batch[batch.edge_index[0]]
    counts = torch.stack([related.sum(), (1 - related).sum(), related.new_tensor(float(len(batch.labels)))])
    images = related.new_tensor([float(batch.num_graphs)])
    positives, negatives, entities, images = total(torch.cat([counts, images]))
    entity = target.new_full((len(batch.labels),), config.entities)
    b = related + config.negatives * (1 - related)
    a = related
    if config.kind == "released":
        a = related * images / positives.clamp_min(1)
        b = a + (1 - related) * config.negatives * images / negatives.clamp_min(1)
        entity = entity * images / entities.clamp_min(1)
    elif config.kind == "metric":
        rows = torch.zeros_like(related).index_add_(0, batch.relation_edge, batch.relation_count.to(related.dtype))
        held = rows.new_zeros(batch.num_graphs).index_add_(0, image, rows)
        scale = held.clamp_min(1).rsqrt()
        a = rows * scale[image]
        b = a + config.negatives * (1 - related) * scale[image]
        entity = entity * scale[batch.batch]
    return Weights(entity, b, a, images)


def _pairs(edges: Tensor, target: Tensor, weights: Weights) -> Tensor:
    """(E,) weighted loss of the pairs of one step."""
    odds = edges[:, 1:].logsumexp(1) - edges[:, 0]
    loss = (softplus(odds) - odds * (1 - target[:, 0])) * weights.related
    chosen = weights.predicate.nonzero().flatten()
    logs = edges[chosen, 1:].log_softmax(1)
    return loss.index_add(0, chosen, -(target[chosen, 1:] * logs).sum(1) * weights.predicate[chosen])
