"""Triplets in the order of their scores, P(subject) P(object) P(predicate).

Equal scores keep the order of their pairs in the input, and within a pair the order of the predicates; chosen
lists of triplets keep their own order. The first `limit` triplets need no sort of all of them: a triplet among the best
`limit` belongs to one of the `limit` pairs whose best predicate ranks highest, since each of those pairs
has a triplet that is ranked before any triplet of the other pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import MetricError
from scenegpi.metrics.inputs import Prediction, first_row
from scenegpi.metrics.protocol import Protocol

NEVER = np.iinfo(np.int64).max
"""The rank of a triplet that is not in a ranking."""

SUM_TOLERANCE = 1e-3

Index = NDArray[np.integer]


class Triplets(NamedTuple):
    """T ranked triplets: subject, object (indices of boxes), predicate and score, each (T,), best first."""

    subject: Index
    object: Index
    predicate: Index
    score: NDArray[np.float64]


def top(scores: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """Indices of the k largest of `scores` (n,), largest first; equal ones in the order of their indices."""
    if len(scores) > 2 * k:
        cut = np.partition(scores, len(scores) - k)[len(scores) - k]
        above = np.flatnonzero(scores > cut)
        level = np.flatnonzero(scores == cut)[: k - len(above)]
        kept = np.sort(np.concatenate([above, level]))
        return kept[np.argsort(-scores[kept], kind="stable")]
    return np.argsort(-scores, kind="stable")[:k]


class PairDistributions:
    """Candidates given as a distribution over "no relation" and P predicates for each pair, (E, 1 + P).

    Args:
        found: the prediction.
        rows: (G, 3) ground-truth relations, to look their pairs up.
        limit: the number of triplets needed.
    """

    def __init__(self, found: Prediction, rows: Index, limit: int) -> None:
        if found.pairs is None or found.pair_dist is None:
            raise MetricError("pairs: missing")
        self.pairs, self.dist, self.limit = found.pairs, found.pair_dist, limit
        self.boxes, self.true_predicate = len(found.boxes), rows[:, 2]
        self.code = self._code(self.pairs)
        self.by_code = np.argsort(self.code)
        self._check()
        self.true_row = self._find(rows[:, :2])
        self.best = self.dist[:, 1:].argmax(axis=1)
        self.weight = _box_weight(found.scores, self.pairs)
        self.score = self.weight * self.dist[np.arange(len(self.pairs)), self.best + 1]
        self.order = top(self.score, limit)

    def _check(self) -> None:
        total = self.dist.sum(axis=1)
        if (row := first_row(~(np.abs(total - 1.0) <= SUM_TOLERANCE))) is not None:  # NaN too
            raise MetricError(f"pairs[{row}]: its distribution sums to {total[row]:.6g}, not to 1")
        if self.dist.min(initial=0.0) < 0.0:
            row = int(np.argwhere(self.dist < 0.0)[0, 0])
            raise MetricError(f"pairs[{row}]: its distribution has a negative probability")
        if (place := first_row(np.diff(self.code[self.by_code]) == 0)) is not None:
            row = int(self.by_code[place + 1])
            raise MetricError(
                f"pairs[{row}]: pair {self.pairs[row].tolist()} is duplicated; a pair has one distribution"
            )
        if (row := first_row(self.pairs[:, 0] == self.pairs[:, 1])) is not None:
            raise MetricError(f"pairs[{row}]: box {int(self.pairs[row, 0])} paired with itself")

    def ranked(self, per_pair: int | None) -> Triplets:
        """The best triplets, at most `per_pair` of a pair (None: all of them)."""
        if per_pair == 1:
            return self._rows(self.order)
        rows = np.sort(self.order)
        dist = self.dist[rows, 1:]
        scores = self.weight[rows, None] * dist
        if per_pair is not None and per_pair < dist.shape[1]:
            rest = np.argsort(-dist, axis=1, kind="stable")[:, per_pair:]
            np.put_along_axis(scores, rest, -1.0, axis=1)
        floor = self.score[rows].min() if len(rows) == self.limit else 0.0
        flat = scores.ravel()
        kept = np.flatnonzero(flat >= floor)
        kept = kept[top(flat[kept], self.limit)]
        row, predicate = np.divmod(kept, dist.shape[1])
        chosen = self.pairs[rows[row]]
        return Triplets(chosen[:, 0], chosen[:, 1], predicate, flat[kept])

    def ranked_on_true(self) -> Triplets:
        """The best predicate of each candidate that is a pair of the ground truth."""
        rows = self._true_rows()
        return self._rows(rows[top(self.score[rows], self.limit)])

    def place_in_pair(self) -> NDArray[np.int64]:
        """(G,) how many predicates of its pair are ranked before the true one; NEVER if the pair is not a candidate."""
        dist, predicate = self.dist[self.true_row, 1:], self.true_predicate
        mine = dist[np.arange(len(predicate)), predicate][:, None]
        before = (dist > mine) | ((dist == mine) & (np.arange(dist.shape[1]) < predicate[:, None]))
        return np.where(self.true_row >= 0, before.sum(axis=1), NEVER)

    def only_true(self) -> bool:
        """Whether every candidate is a pair of the ground truth, though other pairs of the boxes exist."""
        return len(self._true_rows()) == len(self.pairs) < self.boxes * (self.boxes - 1)

    def _true_rows(self) -> NDArray[np.intp]:
        chosen = np.zeros(len(self.pairs) + 1, dtype=bool)  # the last position takes the -1 of missing pairs
        chosen[self.true_row] = True
        return np.flatnonzero(chosen[:-1])

    def _rows(self, rows: NDArray[np.intp]) -> Triplets:
        chosen = self.pairs[rows]
        return Triplets(chosen[:, 0], chosen[:, 1], self.best[rows], self.score[rows])

    def _code(self, pairs: Index) -> NDArray[np.int64]:
        code: NDArray[np.int64] = pairs[:, 0].astype(np.int64) * self.boxes + pairs[:, 1]
        return code

    def _find(self, pairs: Index) -> NDArray[np.intp]:
        code = self._code(pairs)
        place = np.minimum(np.searchsorted(self.code, code, sorter=self.by_code), len(self.code) - 1)
        rows = self.by_code[place]
        return np.where(self.code[rows] == code, rows, -1)


class TripletList:
    """Candidates given as a chosen list of triplets, (R, 3) with a score each; a triplet listed twice counts once.

    The arguments are those of PairDistributions; the protocol says whether a pair may have several predicates.
    """

    def __init__(self, found: Prediction, rows: Index, limit: int, protocol: Protocol) -> None:
        self.limit, self.true = limit, rows
        relations = found.relations.astype(np.int64)
        score = _box_weight(found.scores, relations)
        if found.relation_scores is not None:
            _check_probability(found.relation_scores, "relation_scores")
            score = score * found.relation_scores
        if (row := first_row(relations[:, 0] == relations[:, 1])) is not None:
            raise MetricError(f"relations[{row}]: box {int(relations[row, 0])} related to itself")
        order = np.argsort(-score, kind="stable")
        relations, score = relations[order], score[order]
        first = np.sort(np.unique(relations, axis=0, return_index=True)[1])
        self.relations, self.score = relations[first], score[first]
        self.number = _number_in_group(self.relations[:, 0] * len(found.boxes) + self.relations[:, 1])
        several = first_row(self.number > 0)
        if protocol.constraint != "none" and protocol.several == "refuse" and several is not None:
            s, o, _ = self.relations[several].tolist()
            raise MetricError(
                f"relations: several predicates for the pair ({s}, {o}); the graph constraint allows one "
                '(constraint="none" scores all of them, several="best" takes the best)'
            )

    def ranked(self, per_pair: int | None) -> Triplets:
        """The best triplets, at most `per_pair` of a pair (None: all of them)."""
        return self._rows(np.flatnonzero(self.number < (NEVER if per_pair is None else per_pair)))

    def ranked_on_true(self) -> Triplets:
        """The best predicate of each listed pair that is a pair of the ground truth."""
        wanted = (self.relations[:, None, :2] == self.true[None, :, :2]).all(axis=2).any(axis=1)
        return self._rows(np.flatnonzero(wanted & (self.number == 0)))

    def place_in_pair(self) -> NDArray[np.int64]:
        """(G,) how many predicates of its pair are ranked before the true one; NEVER where that is not listed."""
        same = (self.relations[:, None, :] == self.true[None, :, :]).all(axis=2)
        return np.where(same.any(axis=0), self.number[same.argmax(axis=0)], NEVER)

    def only_true(self) -> bool:
        """A chosen list does not tell which pairs it was chosen from."""
        return False

    def _rows(self, rows: NDArray[np.intp]) -> Triplets:
        rows = rows[: self.limit]
        chosen = self.relations[rows]
        return Triplets(chosen[:, 0], chosen[:, 1], chosen[:, 2], self.score[rows])


def candidates(found: Prediction, rows: Index, limit: int, protocol: Protocol) -> PairDistributions | TripletList:
    """The candidates of a prediction that has some: its pair distributions, or else its list of triplets."""
    if found.scores is not None:
        _check_probability(found.scores, "scores")
    if found.pairs is not None and len(found.pairs):
        return PairDistributions(found, rows, limit)
    return TripletList(found, rows, limit, protocol)


def _box_weight(scores: NDArray[np.floating] | None, rows: Index) -> NDArray[np.float64]:
    if scores is None:
        return np.ones(len(rows))
    scores = scores.astype(np.float64)
    product: NDArray[np.float64] = scores[rows[:, 0]] * scores[rows[:, 1]]
    return product


def _check_probability(values: NDArray[np.floating], field: str) -> None:
    if (row := first_row(~((values >= 0.0) & (values <= 1.0 + SUM_TOLERANCE)))) is not None:
        raise MetricError(f"{field}[{row}]: {values[row]:.6g} is not a probability")


def _number_in_group(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n,) how many equal entries of `group` come before each entry."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    number = np.arange(len(group)) - np.repeat(starts, np.diff(np.append(starts, len(group))))
    result = np.empty(len(group), dtype=np.int64)
    result[order] = number
    return result
