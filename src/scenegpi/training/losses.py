r"""Losses by name, all of one form: cross-entropy of labels, of related-or-not, and of the predicate if related.

.. math::
    L = \frac 1 G \sum_t \Big[ \sum_i c_i H(y_i)
      + \sum_{ij} b_{ij} H(\text{related}_{ij}) + \sum_{ij} a_{ij} H(r_{ij} \mid \text{related}) \Big]

over the steps t. Cross-entropy over 1 + P classes is the sum of the last two terms for a = b, so losses differ in
their weights only (q_ijr: share of predicate r in the rows of a pair, n_ij its rows, k_g the rows of its image):

=========  =================================================================================================
paper      a = b = 1 for related pairs, b = `negatives` (0.1) for others; c = `entities` (4)
released   the same, but all negatives of a batch together weigh `negatives` times all its positives, and all
           its entities `entities` times
balanced   the paper's, a times the mean over r of v_r, v_r = (1 - beta) / (1 - beta ** n_r), n_r the training count
metric     as recall counts: a = n_ij k_g ** -power, b the same, `negatives` k_g ** -power for others
coverage   the same with what a pair adds to the list, see `scenegpi.training.coverage`, in place of its own rows; b
           counts at most 3. For a baseline, which can't know what others say, it is the metric loss
=========  =================================================================================================

The coverage loss hedges: of two boxes drawn around one thing, which recall does not tell apart, one says the likeliest
predicate and the other the next. That finds more rows, and makes the answers for single pairs worse. It is here to be
measured, not to be used: no default and no shipped model has it.

b is multiplied by `related`. A ranking loss may be added, see `scenegpi.training.ranking`, an image's times
`ranking_weight` k_g ** -power. In several processes G and the totals of a batch are those of all processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from scenegpi.features.batch import SceneBatch
from scenegpi.models.baseline import SceneLogits
from scenegpi.training.config import LossConfig
from scenegpi.training.coverage import coverage_rows
from scenegpi.training.ranking import ranking_loss

_MOST_ROWS = 3.0
Total = Callable[[Tensor], Tensor]


class Weights(NamedTuple):
    """c (N,), b (E,), a (E,) and `images`, G of all processes divided by their number."""

    entity: Tensor
    related: Tensor
    predicate: Tensor
    images: Tensor


def scene_loss(
    out: SceneLogits,
    batch: SceneBatch,
    config: LossConfig,
    balance: Tensor | None = None,
    total: Total = lambda x: x,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The loss of each image, (G,), to be added up.

    `balance` (P,) are the v_r; `total` adds numbers over all processes and divides by how many there are.
    """
    target = batch.target_distribution().to(out.edges[-1].dtype)
    if config.targets == "drawn":
        classes = batch.target_classes(generator)
        target = torch.zeros_like(target).scatter_(1, classes[:, None], 1.0)
    weights = loss_weights(batch, config, target, balance, total)
    aims = [(target, weights)] * len(out.edges)
    if config.kind == "coverage" and len(aims) > 1:
        aims[1:] = [_coverage(batch, config, out.edges[0], weights)] * (len(aims) - 1)
    steps = list(zip(out.nodes, out.edges, strict=True))
    share = [1.0] * len(steps)
    if len(steps) > 1:
        first = config.first_stage if out.edges[0].requires_grad else 0.0  # a frozen baseline has nothing to learn
        share = [first] + [1.0 if config.steps == "every" else 0.0] * (len(steps) - 2) + [1.0]
    loss = target.new_zeros(batch.num_graphs)
    image = batch.batch[batch.edge_index[0]]
    for part, (nodes, edges), (target, weights) in zip(share, steps, aims, strict=True):
        if part:
            entity = cross_entropy(nodes, batch.labels, reduction="none") * weights.entity
            loss = loss.index_add(0, batch.batch, part * entity)
            loss = loss.index_add(0, image, part * _pairs(edges, target, weights, config.smoothing))
            if config.ranking != "none":
                ranked = ranking_loss(edges, batch, config.ranking) * _image_scale(batch, config).to(edges.dtype)
                loss = loss + part * config.ranking_weight * ranked
    return loss / weights.images


def loss_weights(
    batch: SceneBatch, config: LossConfig, target: Tensor, balance: Tensor | None, total: Total
) -> Weights:
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
    elif config.kind == "balanced":
        if balance is None:
            raise ValueError("the balanced loss needs the predicates' weights")
        a = target[:, 1:] @ balance.to(target.dtype)
    elif config.kind in ("metric", "coverage"):
        rows = torch.zeros_like(related).index_add_(0, batch.relation_edge, batch.relation_count.to(related.dtype))
        scale = _image_scale(batch, config)
        a = rows * scale[image]
        b = a + config.negatives * (1 - related) * scale[image]
        entity = entity * scale[batch.batch]
    return Weights(entity, b * config.related, a, images)


def _coverage(batch: SceneBatch, config: LossConfig, first: Tensor, plain: Weights) -> tuple[Tensor, Weights]:
    """Target (E, 1 + P) and weights by what each pair adds; first (E, 1 + P) are the baseline's logits."""
    rows = coverage_rows(batch, first[:, 1:].argmax(1)).to(first.dtype)
    held = rows.sum(1, keepdim=True)
    none = (held == 0).to(rows.dtype)
    scale = _image_scale(batch, config).to(rows.dtype)[batch.batch[batch.edge_index[0]]]
    related = (held.clamp_max(_MOST_ROWS) + config.negatives * none)[:, 0] * scale * config.related
    target = torch.cat([none, rows / held.clamp_min(1)], 1)
    return target, plain._replace(related=related, predicate=held[:, 0] * scale)


def _image_scale(batch: SceneBatch, config: LossConfig) -> Tensor:
    """(G,) k_g ** -power."""
    image = batch.batch[batch.edge_index[0, batch.relation_edge]]
    held = torch.zeros(batch.num_graphs, device=image.device).index_add_(0, image, batch.relation_count.float())
    return held.clamp_min(1).pow(-config.power)


def predicate_balance(counts: Tensor, beta: float) -> Tensor:
    """v_r by the effective number of samples (Cui et al. 2019), mean 1 over training rows: counts (P,) -> (P,)."""
    n = counts.double().clamp_min(1)
    v = (1 - beta) / (1 - beta**n)
    return (v * n.sum() / (v * n).sum()).float()


def _pairs(edges: Tensor, target: Tensor, weights: Weights, smoothing: float) -> Tensor:
    """(E,) weighted loss of the pairs of one step."""
    odds = edges[:, 1:].logsumexp(1) - edges[:, 0]
    loss = (softplus(odds) - odds * (1 - target[:, 0])) * weights.related
    chosen = weights.predicate.nonzero().flatten()
    logs = edges[chosen, 1:].log_softmax(1)
    wanted = target[chosen, 1:]
    if smoothing:
        wanted = wanted * (1 - smoothing) + smoothing / wanted.shape[1]
    return loss.index_add(0, chosen, -(wanted * logs).sum(1) * weights.predicate[chosen])
