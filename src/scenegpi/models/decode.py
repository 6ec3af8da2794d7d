r"""A list of triplets that does not say the same thing twice.

Two boxes on one object, of the same label and overlapping by half, make two pairs that any evaluator takes for the same
relation. Naming its best predicate for both wastes one: the second had better name another predicate. Greedily, with
D(e) the pairs that may stand for the same relation as e (itself included), every step takes

.. math:: (e, r) = \arg\max_{e, r} \sum_{e' \in D(e)} q_{e'r}, \quad \text{then } q_{e'r} = 0 \text{ for } e' \in D(e)

among pairs that have no predicate yet: the expected number of true relations that the list names, one predicate a pair.
It knows how recall matches boxes, so figures that rest on it are to be shown beside those without it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scenegpi.boxes import box_iou
from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph

IOU = 0.5
LARGEST = 4096
"""Pairs of one bundle that are weighed against each other; a larger bundle keeps the best predicate of each pair."""


def without_repeats(graph: SceneGraph, iou: float = IOU) -> SceneGraph:
    """The predicted graph with `relations` chosen greedily, one for each pair, and no `pair_dist`.

    `relation_scores` are the expected gains, divided by the largest where that is above 1: their order is what
    counts.
    """
    if graph.pairs is None or graph.pair_dist is None:
        raise GraphError("pairs: only a graph with pair distributions can be decoded")
    pairs, q = graph.pairs.astype(np.int64), graph.pair_dist[:, 1:].astype(np.float64)
    same = duplicates(graph, iou)
    chosen = q.argmax(axis=1) if q.size else np.zeros(len(q), dtype=np.int64)
    gain = q.max(axis=1, initial=0.0)
    group = _groups(same)
    bundle = group[pairs[:, 0]] * len(graph) + group[pairs[:, 1]]
    order = np.argsort(bundle, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(bundle[order])) + 1):
        if 1 < len(rows) <= LARGEST:
            s, o = pairs[rows].T
            together = same[np.ix_(s, s)] & same[np.ix_(o, o)]
            chosen[rows], gain[rows] = _greedy(together, q[rows])
    return graph.replace(
        relations=np.column_stack([pairs, chosen]),
        relation_scores=gain / max(gain.max(initial=0.0), 1.0),
        pairs=None,
        pair_dist=None,
    )


def duplicates(graph: SceneGraph, iou: float = IOU) -> NDArray[np.bool_]:
    """(N, N) boxes of one label that overlap enough to be taken for each other; every box for itself."""
    same = (box_iou(graph.boxes, graph.boxes) >= iou) & (graph.labels[:, None] == graph.labels)
    np.fill_diagonal(same, True)
    return np.asarray(same)


def _greedy(together: NDArray[np.bool_], q: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """together (m, m), q (m, P) -> predicate and gain of each pair, (m,) each."""
    left = q.copy()
    weight = together.astype(np.float64)
    gains = weight @ left
    chosen, gain = np.zeros(len(q), dtype=np.int64), np.zeros(len(q))
    open_ = np.ones(len(q), dtype=bool)
    best = gains.max(axis=1)
    for _ in range(len(q)):
        e = int(np.argmax(np.where(open_, best, -1.0)))
        r = int(gains[e].argmax())
        chosen[e], gain[e], open_[e] = r, gains[e, r], False
        left[together[e], r] = 0.0
        gains[:, r] = weight @ left[:, r]
        best = gains.max(axis=1)
    return chosen, gain


def _groups(same: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(N,) a number for each bundle of boxes that are linked by `same`, directly or through others."""
    number = np.arange(len(same))
    while len(same):
        lower = np.where(same, number[None, :], len(same)).min(axis=1)
        if np.array_equal(lower, number):
            break
        number = lower
    return number
