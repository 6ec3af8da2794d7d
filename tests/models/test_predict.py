"""From boxes and labels to a graph: what is filled in, what is chosen, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from models.model_cases import VOCABULARY, random_graphs, small_model
from scenegpi.errors import GraphError
from scenegpi.metrics import Protocol, scene_graph_recall
from scenegpi.models.predict import predict, predict_dataset, predict_graphs

BOXES = [[0, 0, 50, 90], [10, 60, 90, 99], [5, 5, 20, 20]]


def test_names_and_numbers_are_the_same_labels():
    model = small_model("gpi-feature-attention")
    a = predict(model, BOXES, ["man", "dog", "hat"], width=100, height=100)
    b = predict(model, BOXES, [1, 0, 3], width=100, height=100)
    assert a == b
    assert a.names == ["man", "dog", "hat"]
    assert a.pairs.shape == (6, 2)
    assert np.allclose(a.pair_dist.sum(1), 1, atol=1e-5)
    assert np.allclose(a.label_dist.sum(1), 1, atol=1e-5)


def test_distributions_give_labels_with_scores():
    dist = np.full((3, len(VOCABULARY.objects)), 0.05)
    dist[:, 2] = 0.8
    graph = predict(small_model("baseline"), BOXES, label_dist=dist)
    assert np.array_equal(graph.labels, graph.label_dist.argmax(1))
    assert np.allclose(graph.scores, graph.label_dist.max(1))


def test_relations_are_the_likely_ones_or_the_best():
    model = small_model("gpi-no-attention")
    graph = random_graphs((6,), dist=False)[0]
    likely = next(predict_graphs(model, [graph]))
    rows = {tuple(p): row for p, row in zip(likely.pairs.tolist(), likely.pair_dist, strict=True)}
    assert {(s, o) for s, o, _ in likely.relations.tolist()} == {p for p, row in rows.items() if row[1:].max() > row[0]}
    for (s, o, p), score in zip(likely.relations.tolist(), likely.relation_scores, strict=True):
        assert rows[s, o][p + 1] == score == rows[s, o][1:].max()
    best = next(predict_graphs(model, [graph], top=4))
    assert len(best.relations) == 4
    assert best.relation_scores.min() >= np.sort([row[1:].max() for row in rows.values()])[-4]


@pytest.mark.parametrize("n", [0, 1])
def test_images_without_pairs(n):
    graph = random_graphs((n,))[0]
    for task in ("predcls", "sgcls"):
        found = next(predict_graphs(small_model("gpi-linguistic"), [graph], task))
        assert len(found) == n
        assert found.pairs.shape == (0, 2)
        assert len(found.relations) == 0


@pytest.mark.parametrize("task", ["predcls", "sgcls"])
def test_a_data_set_is_predicted_in_its_order_and_scored(task):
    graphs = random_graphs((4, 2, 7, 0, 5))
    found = list(predict_dataset(small_model("gpi-neighbour-attention"), graphs, task, pairs=30))
    assert [graph.image_id for graph in found] == [graph.image_id for graph in graphs]
    figures = scene_graph_recall(found, graphs, Protocol(task=task)).figures
    assert 0 <= figures["R@50"] <= 1


def test_predicting_leaves_the_model_as_it_was():
    model = small_model("baseline").train()
    next(predict_graphs(model, random_graphs((3,))))
    assert model.training


def test_what_can_not_be_understood_is_refused_in_one_line():
    model = small_model("baseline")
    for arguments, message in (
        ({"labels": ["man", "unicorn", "hat"]}, r"labels\[1\]: 'unicorn'"),
        ({"labels": [0, 1]}, "labels"),
        ({"labels": [0, 1, 99]}, "labels"),
        ({}, "give either"),
        ({"label_dist": np.ones(3)}, "label_dist"),
    ):
        with pytest.raises(GraphError, match=message) as caught:
            predict(model, BOXES, **arguments)
        assert "\n" not in str(caught.value)
    with pytest.raises(GraphError, match="neither predcls nor sgcls"):
        list(predict_graphs(model, [], "sgdet"))
