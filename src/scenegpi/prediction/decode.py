"""Distributions of a batch -> graphs: labels by the most probable one, relations by the rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.features.arrays import SceneArrays
from scenegpi.graph import SceneGraph
from scenegpi.models.relation_counts import RelationCounts
from scenegpi.prediction.model import Task
from scenegpi.prediction.options import PredictOptions
from scenegpi.prediction.rules import Candidates, chosen, most_specific
from scenegpi.words.kinds import broad_kinds, broader


def decode(
    graphs: Sequence[SceneGraph],
    scenes: SceneArrays,
    nodes: NDArray[np.float32],
    edges: NDArray[np.float32],
    task: Task,
    options: PredictOptions,
    counts: RelationCounts | None,
) -> Iterator[SceneGraph | None]:
    """The graphs of a batch with the model's labels and relations; None instead of a graph if they are not finite.

    nodes (N, C) and edges (E, 1 + P), column 0 "no relation". In PredCls labels stay as they were given; in SGCls
    `labels` are the most probable ones and `scores` their probabilities, times the chance that there is an object, if
    a graph has it (scores beside a `label_dist`). `counts` are those of the training relations.
    """
    if counts is not None:
        edges = counts.informative(edges, options.informative)
    starts, edge_starts = scenes.ptr.tolist(), scenes.edge_ptr.tolist()
    for g, graph in enumerate(graphs):
        at, on = slice(starts[g], starts[g + 1]), slice(edge_starts[g], edge_starts[g + 1])
        if not (np.isfinite(nodes[at]).all() and np.isfinite(edges[on]).all()):
            yield None
            continue
        pairs = (scenes.edge_index[:, on].T - starts[g]).astype(np.int32)
        found = task == "sgcls" and graph.label_dist is not None and graph.scores is not None
        fields: dict[str, Any] = {"label_dist": None, "pairs": None, "pair_dist": None}
        if options.distributions:
            fields |= {"label_dist": nodes[at], "pairs": pairs, "pair_dist": edges[on]}
        if task == "sgcls":
            labels, scores = named(nodes[at], graph, options.tidy)
            sure = graph.scores if found and graph.scores is not None else 1.0
            graph = graph.with_fields(labels=labels, scores=scores * sure)
        specific = counts if found and options.tidy else None
        shown = chosen(candidates(graph, pairs, edges[on], specific), options, counts, found)
        fields["relations"] = np.column_stack([shown.pairs, shown.predicates])
        fields["relation_scores"] = shown.chances
        yield graph.with_fields(**fields)


def named(dist: NDArray[np.float32], graph: SceneGraph, tidy: bool) -> tuple[NDArray[np.int32], NDArray[np.floating]]:
    """Labels (N,) and their probabilities from `dist` (N, C); tidy says "person" for an uncertain man or woman."""
    label = dist.argmax(axis=1)
    score = dist[np.arange(len(dist)), label]
    kinds = broad_kinds(graph.vocabulary) if tidy else None
    if kinds is not None:
        label, score = broader(dist, label, score, kinds)
    return label.astype(np.int32), score


def candidates(
    graph: SceneGraph, pairs: NDArray[np.int32], edges: NDArray[np.float32], counts: RelationCounts | None
) -> Candidates:
    """One predicate for each pair (E, 2): the most probable one, or with `counts` the most specific one beside it."""
    best = edges[:, 1:].argmax(axis=1).astype(np.int32) if counts is None else most_specific(edges, counts.shares)
    chances = edges[np.arange(len(edges)), best + 1]
    scores = chances
    if graph.scores is not None:
        scores = chances * graph.scores[pairs[:, 0]] * graph.scores[pairs[:, 1]]
    return Candidates(pairs, best, chances, edges[:, 0], scores, graph.labels, graph.boxes, graph.vocabulary)
