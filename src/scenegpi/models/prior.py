r"""The frequency prior as an input: counts of training relations for two labels.

With n_abr the counts of predicate r for labels a, b (n_ab0: 1 + pairs without a relation), the plain prior is FREQ,
:math:`\log(n_{abr} / n_{ab} + \epsilon)`: an unseen pair of labels is almost surely unrelated, with all predicates
equally likely. The back-off trusts small counts less:

.. math::
    q(r \mid a, b) = \frac{n_{abr} + k\, b(r)}{\sum_{r' \ge 1} n_{abr'} + k}, \qquad
    b(r) \propto \frac{q(r \mid a, \cdot)\, q(r \mid \cdot, b)}{q(r)}, \qquad r \ge 1

A model that is trained on the counted images finds its own targets in the prior, and trusts it too much. So in
training, an image's own relations are subtracted from its counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from scenegpi.errors import GraphError
from scenegpi.features.batch import SceneBatch
from scenegpi.features.entities import clamped_log
from scenegpi.graph import SceneGraph
from scenegpi.models.config import BaselineConfig

ALL = slice(None)
EPSILON = 1e-3
SMOOTHING = 3.0
"""k: the weight of the back-off, in counts."""
STATISTICS = 3
_MARGIN = 10.0
_ODDS = 2.0


class PriorOutput(NamedTuple):
    """`logits` (E, P) of the predicates of related pairs; `related` (E, 3): log-odds of a relation, and two counts."""

    logits: Tensor
    related: Tensor


class CountPrior(nn.Module):
    """Reads counts for the most probable labels of each pair.

    Buffers: `counts` (C, C, 1 + P), whole numbers, and its sums `by_subject` and `by_object` (C, 1 + P).
    """

    counts: Tensor
    by_subject: Tensor
    by_object: Tensor

    def __init__(self, labels: int, classes: int, kind: Literal["backoff", "freq"]) -> None:
        super().__init__()
        self.kind, self.labels = kind, labels
        self.register_buffer("counts", torch.zeros(labels, labels, classes, dtype=torch.int32))
        self.register_buffer("by_subject", torch.zeros(labels, classes))
        self.register_buffer("by_object", torch.zeros(labels, classes))

    def set_counts(self, counts: Tensor) -> None:
        """counts (C, C, 1 + P), as `relation_table` makes them."""
        self.counts.copy_(counts)
        self.by_subject.copy_(counts.sum(1))
        self.by_object.copy_(counts.sum(0))

    def forward(self, batch: SceneBatch, labels: Tensor, leave_out: bool, rows: slice = ALL) -> PriorOutput:
        """labels (N,) the most probable ones -> the prior of the edges in `rows`; of all if some is left out."""
        subjects, objects = labels[batch.edge_index[:, rows]]
        cells = subjects * self.labels + objects
        counts = self.counts.flatten(0, 1).index_select(0, cells).float()
        own = own_counts(batch, cells, self.labels**2, counts.shape[1]) if leave_out else None
        counts = _without(counts, own)
        if self.kind == "freq":
            logits = log_prior(counts)
            odds = logits[:, 1:].logsumexp(1) - logits[:, 0]
            return PriorOutput(logits[:, 1:], _statistics(odds, counts))
        subject, object_ = (
            _without(part.index_select(0, at), own)
            for part, at in ((self.by_subject, subjects), (self.by_object, objects))
        )
        every = self.by_subject.sum(0)
        share = (every[1:] + EPSILON) / (every[1:] + EPSILON).sum()
        backoff = _alone(subject, share) * _alone(object_, share) / share
        backoff = backoff / backoff.sum(1, keepdim=True)
        related = counts[:, 1:].sum(1)
        q = (counts[:, 1:] + SMOOTHING * backoff) / (related + SMOOTHING)[:, None]
        usual = (every[1:].sum() + 1) / (every.sum() + 2)
        rate = (subject[:, 1:].sum(1) + 1) / (subject.sum(1) + 1 / usual)
        rate = (related + _ODDS * rate) / (counts.sum(1) + _ODDS)
        return PriorOutput((q + EPSILON).log(), _statistics(torch.logit(rate, 1e-4), counts))


class GivenPrior(nn.Module):
    """Uses the pair distributions of the graphs."""

    def forward(self, batch: SceneBatch, labels: Tensor, leave_out: bool, rows: slice = ALL) -> PriorOutput:
        """As `CountPrior`; labels are not used, and the counts are 0."""
        if batch.pair_dist is None:
            raise GraphError("pair_dist: this model needs another system's distributions, which the graphs lack")
        logs = clamped_log(batch.pair_dist[rows].to(torch.get_default_dtype()))
        odds = logs[:, 1:].logsumexp(1) - logs[:, 0]
        return PriorOutput(logs[:, 1:].log_softmax(1), _statistics(odds, torch.zeros_like(logs)))


def own_counts(batch: SceneBatch, cells: Tensor, num_cells: int, classes: int) -> Tensor:
    """What an edge's image adds to the counts of its labels: cells (E,), the two labels as one number -> (E, 1 + P)."""
    image = batch.batch[batch.edge_index[0]]
    found, group = torch.unique(image * num_cells + cells, return_inverse=True)
    own = torch.zeros(len(found), classes, device=cells.device)
    free = torch.ones(len(cells), device=cells.device)
    free[batch.relation_edge] = 0
    own[:, 0].index_add_(0, group, free)
    rows = (group[batch.relation_edge], batch.relation_class)
    own.index_put_(rows, batch.relation_count.to(own.dtype), accumulate=True)
    return own[group]


def relation_table(graphs: Iterable[SceneGraph]) -> NDArray[np.int64]:
    """(C, C, 1 + P) numbers of training rows by labels of subject and object and by predicate, repeats included.

    Column 0 counts ordered pairs without a relation. The graphs may be a stream; rows with subject == object are not
    pairs.
    """
    table: NDArray[np.int64] | None = None
    for graph in graphs:
        if table is None:
            vocabulary = graph.vocabulary
            table = np.zeros((len(vocabulary.objects),) * 2 + (1 + len(vocabulary.predicates),), dtype=np.int64)
        elif graph.vocabulary is not vocabulary and graph.vocabulary != vocabulary:
            raise GraphError("vocabulary: the training graphs must share one")
        subject, object_, predicate = graph.relations[graph.relations[:, 0] != graph.relations[:, 1]].T
        free = ~np.eye(len(graph), dtype=bool)
        free[subject, object_] = False
        np.add.at(table, (graph.labels[subject], graph.labels[object_], 1 + predicate), 1)
        np.add.at(table, (*graph.labels[np.stack(free.nonzero())], 0), 1)
    if table is None:
        raise GraphError("counting needs at least one training graph")
    return table


def make_prior(config: BaselineConfig, labels: int, predicates: int) -> CountPrior | GivenPrior:
    """The prior of a model: counts of the training images, or one given with each batch."""
    return GivenPrior() if config.prior == "given" else CountPrior(labels, 1 + predicates, config.prior)


def log_prior(counts: Tensor) -> Tensor:
    """FREQ: counts (M, 1 + P) before the + 1 -> log(p + eps)."""
    smoothed = torch.cat([counts[:, :1] + 1, counts[:, 1:]], 1)
    return (smoothed / smoothed.sum(1, keepdim=True) + EPSILON).log()


def _without(counts: Tensor, own: Tensor | None) -> Tensor:
    return counts if own is None else (counts - own).clamp_min(0)


def _alone(side: Tensor, share: Tensor) -> Tensor:
    """q(r | one label): side (E, 1 + P) counts -> (E, P)."""
    return (side[:, 1:] + _MARGIN * share) / (side[:, 1:].sum(1, keepdim=True) + _MARGIN)


def _statistics(odds: Tensor, counts: Tensor) -> Tensor:
    return torch.stack([odds, counts[:, 1:].sum(1).log1p() / 3, counts[:, 0].log1p() / 3], 1)
