"""Triplets that never occur in training, and predicate frequencies, from the training set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scenegpi.errors import MetricError
from scenegpi.graph import SceneGraph
from scenegpi.metrics.inputs import LABEL_LIMIT
from scenegpi.metrics.matching import triplet_code


@dataclass(frozen=True, eq=False)
class ZeroShot:
    """Zero-shot triplets: those listed, or all but those seen in training. Build it by one of the two class methods."""

    codes: NDArray[np.int64]
    seen: bool

    @classmethod
    def unseen(cls, triplets: ArrayLike) -> ZeroShot:
        """From (n, 3) rows of the zero-shot triplets: subject class, object class, predicate, counted from 0."""
        return cls(_codes(triplets), False)

    @classmethod
    def not_in(cls, triplets: ArrayLike) -> ZeroShot:
        """From (n, 3) rows of the triplets seen in training; all others are zero-shot."""
        return cls(_codes(triplets), True)

    @classmethod
    def from_training(cls, graphs: Iterable[SceneGraph]) -> ZeroShot:
        """All triplets that occur in no graph of `graphs`, the training set."""
        return cls.not_in(training_triplets(graphs))

    def holds(self, code: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(n,) whether each triplet is zero-shot."""
        return np.isin(code, self.codes, invert=self.seen)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ZeroShot):
            return NotImplemented
        return self.seen == other.seen and np.array_equal(self.codes, other.codes)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return f"all but {len(self.codes)} seen triplets" if self.seen else f"{len(self.codes)} listed triplets"


def training_triplets(graphs: Iterable[SceneGraph]) -> NDArray[np.int64]:
    """(n, 3) distinct (subject class, object class, predicate) of the relations of `graphs`."""
    found: set[tuple[int, int, int]] = set()
    for graph in graphs:
        labels, rows = graph.labels, graph.relations
        found.update(zip(labels[rows[:, 0]].tolist(), labels[rows[:, 1]].tolist(), rows[:, 2].tolist(), strict=True))
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 3)


def predicate_groups(counts: ArrayLike) -> dict[str, list[int]]:
    """Thirds of the predicates, "head", "body" and "tail", by their counts (P,) in training: 16 / 17 / 17 of 50."""
    order = np.argsort(-np.asarray(counts), kind="stable")
    third, two_thirds = len(order) // 3, len(order) * 2 // 3
    parts = {"head": order[:third], "body": order[third:two_thirds], "tail": order[two_thirds:]}
    return {name: sorted(part.tolist()) for name, part in parts.items()}


def _codes(triplets: ArrayLike) -> NDArray[np.int64]:
    rows = np.asarray(triplets, dtype=np.int64)
    if not rows.size:
        return np.zeros(0, dtype=np.int64)
    if rows.ndim != 2 or rows.shape[1] != 3 or rows.min() < 0 or rows.max() >= LABEL_LIMIT:
        raise MetricError("zero-shot triplets: expected (n, 3) rows of subject class, object class, predicate")
    return np.unique(triplet_code(rows[:, 0], rows[:, 1], rows[:, 2]))
