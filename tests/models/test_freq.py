"""FREQ, a baseline without a network: counts against a loop, the formula, and the known figures on real data."""

from pathlib import Path

import numpy as np
import pytest

from models.model_cases import predict_graphs
from scenegpi.data import open_dataset
from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Protocol, scene_graph_recall
from scenegpi.models import BaselineConfig, ModelConfig, SceneModel, build_model, prepare_model
from scenegpi.models.prior import EPSILON, relation_table
from scenegpi.vocabulary import Vocabulary

VOCABULARY = Vocabulary(["a", "b", "c"], ["on", "near"])


def random_graphs(number: int, seed: int = 0) -> list[SceneGraph]:
    rng = np.random.default_rng(seed)
    graphs = []
    for n in rng.integers(0, 7, number).tolist():
        low = rng.uniform(0, 80, (n, 2))
        boxes = np.concatenate([low, low + rng.uniform(0, 40, (n, 2))], 1)
        rows = np.stack([rng.integers(0, n, n), rng.integers(0, n, n), rng.integers(0, 2, n)], 1) if n else ()
        graphs.append(SceneGraph(boxes, rng.integers(0, 3, n), VOCABULARY, rows))
    return graphs


def counts_by_loop(graphs):
    counts = np.zeros((3, 3, 3), dtype=int)
    for graph in graphs:
        rows = [(i, j, p) for i, j, p in graph.relations.tolist() if i != j]
        for i, j, p in rows:
            counts[graph.labels[i], graph.labels[j], p + 1] += 1
        related = {(i, j) for i, j, _ in rows}
        for i in range(len(graph)):
            for j in range(len(graph)):
                if i != j and (i, j) not in related:
                    counts[graph.labels[i], graph.labels[j], 0] += 1
    return counts


def freq(graphs) -> SceneModel:
    model = build_model(ModelConfig(BaselineConfig(layers=0, prior="freq", refine_labels=False)), graphs[0].vocabulary)
    prepare_model(model, graphs)
    return model.eval()


def test_counts_against_a_loop_over_pairs():
    graphs = random_graphs(30)
    assert np.array_equal(relation_table(iter(graphs)), counts_by_loop(graphs))


@pytest.mark.parametrize("task", ["predcls", "sgcls"])
def test_predictions_are_the_formula_for_the_most_probable_labels(task):
    graphs = random_graphs(30)
    smoothed = relation_table(graphs) + np.array([1, 0, 0])
    share = smoothed / smoothed.sum(2, keepdims=True) + EPSILON
    for graph in predict_graphs(freq(graphs), random_graphs(10, seed=1), task):
        subjects, objects = graph.labels[graph.pairs].T
        want = share[subjects, objects] / share[subjects, objects].sum(1, keepdims=True)
        np.testing.assert_allclose(graph.pair_dist, want, atol=1e-6)
        assert len(graph.pairs) == len(graph) * (len(graph) - 1)


def test_nothing_to_count_and_mixed_vocabularies_are_refused():
    with pytest.raises(GraphError, match="at least one"):
        relation_table([])
    other = SceneGraph([[0, 0, 1, 1]], [0], Vocabulary(["x"], ["y"]))
    with pytest.raises(GraphError, match="share"):
        relation_table([*random_graphs(2), other])


@pytest.mark.shared
def test_known_figures(shared_data: Path):
    """PredCls, constrained, R@20/50/100. Pairs of equal labels tie and their order is free, hence the tolerance."""
    model = freq(open_dataset(shared_data / "vg150", split="train", validation=1291))
    targets = open_dataset(shared_data / "vg150_allboxes")
    figures = scene_graph_recall(list(predict_graphs(model, targets)), targets, Protocol(task="predcls")).figures
    assert [100 * figures[f"R@{k}"] for k in (20, 50, 100)] == pytest.approx((49.9, 58.7, 62.0), abs=0.35)
