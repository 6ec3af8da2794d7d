r"""FREQ and FREQ + overlap: the predicate from the two labels alone (Zellers et al., Neural Motifs).

.. math::
    p(r \mid a, b) = \frac{n_{abr}}{\sum_{r'} n_{abr'}}, \qquad n_{ab0} = 1 + \#\{\text{ordered pairs of labels } a, b
    \text{ without a relation}\}, \qquad \text{logits} = \log(p + \epsilon), \; \epsilon = 10^{-3}

n_abr counts every training row, repeats included. The softmax of the logits, (p + eps) / (1 + (1 + P) eps), is what the
model predicts: an unseen pair of labels is almost surely unrelated, with all predicates equally likely.

FREQ + overlap believes that boxes without a common area are not related: "no relation" is counted over overlapping
pairs only, and a pair that does not overlap is not predicted at all (as a feature its prior is "no relation"). Related
training pairs count whether they overlap or not, as in Neural Motifs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scenegpi.errors import GraphError
from scenegpi.features.pairs import overlapping
from scenegpi.graph import SceneGraph
from scenegpi.models.prior import EPSILON, log_prior
from scenegpi.pairs import complete_pairs, edge_numbers
from scenegpi.vocabulary import Vocabulary

MOST_CELLS = 1 << 28
_FLUSH = 1 << 20


class FrequencyPrior:
    """Counts of predicates for each ordered pair of labels.

    Args:
        vocabulary: C labels, P predicates.
        counts: (C, C, 1 + P) training counts n_abr before the + 1; column 0 is "no relation".
        overlap: FREQ + overlap.
    """

    def __init__(self, vocabulary: Vocabulary, counts: NDArray[np.int64], overlap: bool = False) -> None:
        labels, classes = len(vocabulary.objects), 1 + len(vocabulary.predicates)
        if counts.shape != (labels, labels, classes):
            raise GraphError(f"counts: shape {counts.shape}, expected {(labels, labels, classes)}")
        if counts.size and counts.min() < 0:
            raise GraphError("counts: a negative number")
        self.vocabulary, self.counts, self.overlap = vocabulary, counts, overlap
        self._logits = log_prior(torch.from_numpy(counts).view(-1, classes).double()).float()

    @classmethod
    def fit(cls, graphs: Iterable[SceneGraph], overlap: bool = False) -> FrequencyPrior:
        """Counts over training graphs, which may be a stream; rows with subject == object are no pairs."""
        total: NDArray[np.int64] | None = None
        vocabulary: Vocabulary | None = None
        waiting: list[NDArray[np.int64]] = []
        held = 0
        for graph in graphs:
            if vocabulary is None or total is None:
                vocabulary = graph.vocabulary
                total = np.zeros(_cells(vocabulary), dtype=np.int64)
            elif graph.vocabulary is not vocabulary and graph.vocabulary != vocabulary:
                raise GraphError("vocabulary: the training graphs must share one")
            waiting.append(_cells_of(graph, overlap))
            held += len(waiting[-1])
            if held > _FLUSH:
                total += np.bincount(np.concatenate(waiting), minlength=len(total))
                waiting, held = [], 0
        if vocabulary is None or total is None:
            raise GraphError("FREQ needs at least one training graph")
        if waiting:
            total += np.bincount(np.concatenate(waiting), minlength=len(total))
        labels = len(vocabulary.objects)
        return cls(vocabulary, total.reshape(labels, labels, -1), overlap)

    @property
    def name(self) -> str:
        return "FREQ + overlap" if self.overlap else "FREQ"

    def logits(self, subjects: Tensor, objects: Tensor, overlaps: Tensor | None = None) -> Tensor:
        """log(p + eps) for each pair of labels: subjects, objects (E,) -> (E, 1 + P), on their device.

        With FREQ + overlap, `overlaps` (E,) says which pairs have boxes with a common area; the others get the
        prior of certainly "no relation".
        """
        if self._logits.device != subjects.device:
            self._logits = self._logits.to(subjects.device)
        found = self._logits[subjects * len(self.vocabulary.objects) + objects]
        if not self.overlap:
            return found
        if overlaps is None:
            raise ValueError("FREQ + overlap needs to know which pairs overlap")
        apart = found.new_full((found.shape[1],), EPSILON)
        apart[0] += 1
        return torch.where(overlaps[:, None], found, apart.log())

    def predict(self, graph: SceneGraph) -> SceneGraph:
        """The graph with `pairs` and `pair_dist` by its labels, or by its most probable labels (SGCls).

        Given relations are left out. A graph with `label_dist` gets the most probable labels and their scores.
        """
        if graph.vocabulary != self.vocabulary:
            raise GraphError("vocabulary: differs from the one that was counted")
        labels, scores = graph.labels, graph.scores
        if graph.label_dist is not None:
            labels, scores = graph.label_dist.argmax(axis=1), graph.label_dist.max(axis=1)
        pairs = complete_pairs(np.array([len(graph)]))
        if self.overlap:
            pairs = pairs[:, _overlaps(graph, pairs)]
        subjects, objects = torch.from_numpy(labels[pairs].astype(np.int64))
        dist = self.logits(subjects, objects, torch.ones_like(subjects, dtype=torch.bool)).softmax(1)
        return graph.replace(
            labels=labels,
            scores=scores,
            pairs=pairs.T,
            pair_dist=dist.numpy(),
            relations=np.zeros((0, 3), dtype=np.int32),
            relation_scores=None,
        )


def _cells(vocabulary: Vocabulary) -> int:
    cells = len(vocabulary.objects) ** 2 * (1 + len(vocabulary.predicates))
    if cells > MOST_CELLS:
        raise GraphError(f"vocabulary: {cells:,} combinations of labels and predicates, more than {MOST_CELLS:,}")
    return cells


def _cells_of(graph: SceneGraph, overlap: bool) -> NDArray[np.int64]:
    """The cells (a C + b)(1 + P) + r that an image adds one to: its relation rows, and its pairs without any."""
    labels = graph.labels.astype(np.int64)
    width, classes = len(graph.vocabulary.objects), 1 + len(graph.vocabulary.predicates)
    related = graph.relations[graph.relations[:, 0] != graph.relations[:, 1]]
    pairs = complete_pairs(np.array([len(graph)]))
    free = _overlaps(graph, pairs) if overlap else np.ones(pairs.shape[1], dtype=bool)
    free[edge_numbers(related, len(graph))] = False
    none = labels[pairs[:, free]]
    positive = (labels[related[:, 0]] * width + labels[related[:, 1]]) * classes + related[:, 2] + 1
    return np.concatenate([positive, (none[0] * width + none[1]) * classes])


def _overlaps(graph: SceneGraph, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
    subjects, objects = torch.from_numpy(graph.boxes[pairs])
    return np.asarray(overlapping(subjects, objects).numpy())
