"""Decoding without repeats: against plain loops, and what it must never change."""

from __future__ import annotations

import numpy as np
import pytest

from models.model_cases import VOCABULARY, random_graphs, small_model
from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Protocol, scene_graph_recall
from scenegpi.models.decode import duplicates, without_repeats
from scenegpi.models.predict import predict_dataset


def doubled(seed, n=5):
    """Boxes of which some stand twice, a little moved."""
    rng = np.random.default_rng(seed)
    graph = random_graphs((n,), seed, dist=False)[0]
    again = rng.integers(0, n, 3)
    boxes = np.concatenate([graph.boxes, graph.boxes[again] + rng.uniform(0, 0.2, (3, 4))])
    labels = np.concatenate([graph.labels, graph.labels[again]])
    pairs = np.argwhere(~np.eye(n + 3, dtype=bool))
    dist = rng.dirichlet(np.ones(1 + len(VOCABULARY.predicates)), len(pairs))
    return SceneGraph(boxes, labels, VOCABULARY, pairs=pairs, pair_dist=dist)


def by_loops(graph):
    """One choice after the other over all pairs of the image."""
    same, q = duplicates(graph), graph.pair_dist[:, 1:].copy()
    pairs = graph.pairs.tolist()
    near = [[k for k, (a, b) in enumerate(pairs) if same[s, a] and same[o, b]] for s, o in pairs]
    chosen = {}
    while len(chosen) < len(pairs):
        gain, e, r = max(
            (sum(q[k, r] for k in near[e]), -e, -r)
            for e in range(len(pairs))
            if e not in chosen
            for r in range(q.shape[1])
        )
        e, r = -e, -r
        chosen[e] = (r, gain)
        for k in near[e]:
            q[k, r] = 0
    return [chosen[e] for e in range(len(pairs))]


@pytest.mark.parametrize("seed", range(5))
def test_against_loops(seed):
    graph = doubled(seed)
    expected = by_loops(graph)
    found = without_repeats(graph)
    assert found.relations[:, 2].tolist() == [r for r, _ in expected]
    gains = np.array([gain for _, gain in expected])
    assert np.allclose(found.relation_scores, gains / max(gains.max(), 1))


def test_without_duplicates_the_best_predicate_stays():
    graph = doubled(0)
    alone = graph.replace(labels=np.arange(len(graph)) % 5).subset(np.arange(5))
    assert duplicates(alone).sum() == 5
    found = without_repeats(alone)
    assert np.array_equal(found.relations[:, 2], alone.pair_dist[:, 1:].argmax(1))
    assert np.allclose(found.relation_scores, alone.pair_dist[:, 1:].max(1))


def test_two_boxes_on_one_object_name_two_predicates():
    boxes = [[0, 0, 50, 50], [0, 0, 50, 51], [60, 0, 99, 50]]
    dist = np.array([[0.1, 0.5, 0.3, 0.1]] * 6)
    graph = SceneGraph(boxes, [0, 0, 1], VOCABULARY, pairs=np.argwhere(~np.eye(3, dtype=bool)), pair_dist=dist)
    rows = {(s, o): p for s, o, p in without_repeats(graph).relations.tolist()}
    assert {rows[0, 2], rows[1, 2]} == {0, 1}


def test_a_list_that_an_evaluator_takes():
    graphs = random_graphs((4, 0, 1, 6))
    found = list(predict_dataset(small_model("baseline"), graphs, "predcls", "no-repeats"))
    assert [len(g.relations) for g in found] == [12, 0, 0, 30]
    assert 0 <= scene_graph_recall(found, graphs, Protocol()).figures["R@50"] <= 1
    with pytest.raises(GraphError, match="decode"):
        predict_dataset(small_model("baseline"), graphs, "predcls", "greedy")
    with pytest.raises(GraphError, match="pair distributions"):
        without_repeats(found[0])
