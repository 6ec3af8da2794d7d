"""Distributions of a batch -> graphs: labels, and relations ranked by P(subject) P(object) P(predicate)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.features.batch import SceneBatch
from scenegpi.graph import SceneGraph
from scenegpi.prediction.evidence import Task
from scenegpi.prediction.options import PredictOptions


def decode(
    graphs: Sequence[SceneGraph],
    batch: SceneBatch,
    nodes: NDArray[np.float32],
    edges: NDArray[np.float32],
    task: Task,
    options: PredictOptions,
) -> Iterator[SceneGraph | None]:
    """The graphs of a batch with what the model says of them; None for one whose answer is not finite.

    nodes (N, C) and edges (E, 1 + P), column 0 "no relation". In PredCls labels stay as they were given; in SGCls
    `labels` are the most probable ones and `scores` their probabilities.
    """
    best = edges[:, 1:].argmax(axis=1).astype(np.int32)
    score = edges[np.arange(len(edges)), best + 1]
    sure = score > edges[:, 0]
    label = nodes.argmax(axis=1).astype(np.int32)
    label_score = nodes[np.arange(len(nodes)), label]
    finite = bool(np.isfinite(label_score).all() and np.isfinite(score).all())
    starts, edge_starts = batch.ptr.tolist(), batch.edge_ptr.tolist()
    pairs = batch.edge_index.numpy().T
    for g, graph in enumerate(graphs):
        at, on = slice(starts[g], starts[g + 1]), slice(edge_starts[g], edge_starts[g + 1])
        if not finite and not (np.isfinite(label_score[at]).all() and np.isfinite(score[on]).all()):
            yield None
            continue
        local = (pairs[on] - starts[g]).astype(np.int32)
        fields: dict[str, Any] = {"label_dist": None, "pairs": None, "pair_dist": None}
        if task == "sgcls":
            fields |= {"labels": label[at], "scores": label_score[at]}
        if options.distributions:
            fields |= {"label_dist": nodes[at], "pairs": local, "pair_dist": edges[on]}
        scores = fields.get("scores", graph.scores)
        ranked = score[on]
        if scores is not None:
            ranked = ranked * scores[local[:, 0]] * scores[local[:, 1]]
        kept = np.flatnonzero(sure[on]) if options.top is None else np.argsort(-ranked, kind="stable")[: options.top]
        kept = kept[np.argsort(-ranked[kept], kind="stable")]
        kept = kept[ranked[kept] >= options.min_relation]
        fields["relations"] = np.column_stack([local[kept], best[on][kept]])
        fields["relation_scores"] = score[on][kept]
        yield _with(graph, fields)


def _with(graph: SceneGraph, fields: dict[str, Any]) -> SceneGraph:
    """The graph with fields that are of the right kind already: a check of each would take longer than the model."""
    for value in fields.values():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return SceneGraph.trusted(**{name: getattr(graph, name) for name in graph.__slots__} | fields)
