"""Distributions of a batch -> graphs: labels, and relations ranked by P(subject) P(object) P(predicate)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.features.arrays import SceneArrays
from scenegpi.graph import SceneGraph
from scenegpi.models.relation_counts import RelationCounts
from scenegpi.pairs import repeats
from scenegpi.prediction.model import Task
from scenegpi.prediction.options import FOUND_RELATION, GIVEN_RELATION, LAST_RELATION, PredictOptions
from scenegpi.words.kinds import broader, kinds_of

CONSIDERED = 512
"""Relations of an image, the best ones, among which repeats are looked for."""


def decode(
    graphs: Sequence[SceneGraph],
    scenes: SceneArrays,
    nodes: NDArray[np.float32],
    edges: NDArray[np.float32],
    task: Task,
    options: PredictOptions,
    counts: RelationCounts | None,
) -> Iterator[SceneGraph | None]:
    """The graphs of a batch with what the model says of them; None for one whose answer is not finite.

    nodes (N, C) and edges (E, 1 + P), column 0 "no relation". In PredCls labels stay as they were given; in SGCls
    `labels` are the most probable ones and `scores` their probabilities, times the chance that there is something
    where a graph brings it (scores beside a `label_dist`). `counts` are those of the training relations.
    """
    if counts is not None:
        edges = counts.informative(edges, options.informative)
    best = edges[:, 1:].argmax(axis=1).astype(np.int32)
    score = edges[np.arange(len(edges)), best + 1]
    sure = score > edges[:, 0]
    label = nodes.argmax(axis=1)
    label_score = nodes[np.arange(len(nodes)), label]
    kinds = kinds_of(graphs[0].vocabulary) if options.tidy and graphs else None
    if kinds is not None:
        label, label_score = broader(nodes, label, label_score, *kinds)
    label = label.astype(np.int32)
    finite = bool(np.isfinite(label_score).all() and np.isfinite(score).all())
    starts, edge_starts = scenes.ptr.tolist(), scenes.edge_ptr.tolist()
    pairs = scenes.edge_index.T
    for g, graph in enumerate(graphs):
        at, on = slice(starts[g], starts[g + 1]), slice(edge_starts[g], edge_starts[g + 1])
        if not finite and not (np.isfinite(label_score[at]).all() and np.isfinite(score[on]).all()):
            yield None
            continue
        local = (pairs[on] - starts[g]).astype(np.int32)
        fields: dict[str, Any] = {"label_dist": None, "pairs": None, "pair_dist": None}
        found = task == "sgcls" and graph.label_dist is not None and graph.scores is not None
        least = last = options.min_relation
        if least is None or last is None:
            least, last = (FOUND_RELATION, LAST_RELATION) if found else (GIVEN_RELATION, GIVEN_RELATION)
        if task == "sgcls":
            fields |= {"labels": label[at], "scores": label_score[at] * (graph.scores if found else 1.0)}
        if options.distributions:
            fields |= {"label_dist": nodes[at], "pairs": local, "pair_dist": edges[on]}
        scores = fields.get("scores", graph.scores)
        ranked = score[on]
        if scores is not None:
            ranked = ranked * scores[local[:, 0]] * scores[local[:, 1]]
        kept = np.flatnonzero(sure[on] if options.top is None else ranked >= last)
        kept = kept[np.argsort(-ranked[kept], kind="stable")]
        if options.tidy:
            labels = fields.get("labels", graph.labels)
            kept = _tidy(kept, local, best[on], labels, counts)
            if found:
                kept = _without_repeats(kept, local, best[on], labels, graph.boxes)
        if options.top is not None:
            good = int((ranked[kept] >= least).sum())
            kept = kept[: min(max(good, 1), options.top)]
        fields["relations"] = np.column_stack([local[kept], best[on][kept]])
        fields["relation_scores"] = score[on][kept]
        yield graph.with_fields(**fields)


def _tidy(
    kept: NDArray[np.int64],
    pairs: NDArray[np.int32],
    best: NDArray[np.int32],
    labels: NDArray[np.integer],
    counts: RelationCounts | None,
) -> NDArray[np.int64]:
    """The relations at `kept`, best first, without absurd ones, and one direction of each pair."""
    if counts is not None:
        ends = labels[pairs[kept]]
        kept = kept[~counts.absurd(ends[:, 0], ends[:, 1], best[kept])]
    return kept[~second_directions(pairs[kept])]


def _without_repeats(
    kept: NDArray[np.int64],
    pairs: NDArray[np.int32],
    best: NDArray[np.int32],
    labels: NDArray[np.integer],
    boxes: NDArray[np.float64],
) -> NDArray[np.int64]:
    """The relations at `kept`, best first; of boxes that show one thing twice only the better one is related."""
    some = kept[:CONSIDERED]
    ends = pairs[some]
    again = repeats(ends[:, 0], ends[:, 1], best[some], np.arange(len(some)), labels, boxes)
    return np.concatenate([some[~again], kept[CONSIDERED:]])


def second_directions(pairs: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(R,) relations from i to j, best first, after a better one from j to i: what they say is mostly the same."""
    seen: set[tuple[int, int]] = set()
    out = np.zeros(len(pairs), dtype=bool)
    for k, (i, j) in enumerate(pairs.tolist()):
        out[k] = (j, i) in seen
        seen.add((i, j))
    return out
