"""FREQ: counts against a loop, the file, and the known figures on real data."""

from pathlib import Path

import numpy as np
import pytest
import torch

from scenegpi.data import open_dataset
from scenegpi.errors import GraphError
from scenegpi.features.batch import SceneBatch
from scenegpi.features.pairs import overlapping
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Protocol, scene_graph_recall
from scenegpi.models.freq import EPSILON, FrequencyPrior
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


def apart(a, b):
    return min(a[2], b[2]) <= max(a[0], b[0]) or min(a[3], b[3]) <= max(a[1], b[1])


def counts_by_loop(graphs, overlap):
    counts = np.zeros((3, 3, 3), dtype=int)
    for graph in graphs:
        rows = [(i, j, p) for i, j, p in graph.relations.tolist() if i != j]
        for i, j, p in rows:
            counts[graph.labels[i], graph.labels[j], p + 1] += 1
        related = {(i, j) for i, j, _ in rows}
        for i in range(len(graph)):
            for j in range(len(graph)):
                far = overlap and apart(graph.boxes[i], graph.boxes[j])
                if i != j and (i, j) not in related and not far:
                    counts[graph.labels[i], graph.labels[j], 0] += 1
    return counts


@pytest.mark.parametrize("overlap", [False, True])
def test_counts_against_a_loop_over_pairs(overlap, monkeypatch):
    graphs = random_graphs(30)
    prior = FrequencyPrior.fit(iter(graphs), overlap)
    assert np.array_equal(prior.counts, counts_by_loop(graphs, overlap))
    monkeypatch.setattr("scenegpi.models.freq._FLUSH", 10)
    assert np.array_equal(FrequencyPrior.fit(graphs, overlap).counts, prior.counts)


def test_logits_are_the_formula():
    prior = FrequencyPrior.fit(random_graphs(30))
    smoothed = prior.counts + np.array([1, 0, 0])
    want = np.log(smoothed / smoothed.sum(2, keepdims=True) + EPSILON)
    subjects, objects = torch.tensor([0, 1, 2, 2]), torch.tensor([1, 1, 0, 2])
    found = prior.logits(subjects, objects)
    torch.testing.assert_close(found, torch.from_numpy(want[subjects, objects]).float())


@pytest.mark.parametrize("overlap", [False, True])
def test_prior_of_a_batch_is_that_of_its_pairs(overlap):
    graphs = random_graphs(20)
    prior = FrequencyPrior.fit(graphs, overlap)
    batch = SceneBatch.of([prior.predict(graph) for graph in graphs])
    both = overlapping(*batch.boxes[batch.edge_index]) if overlap else torch.ones(batch.num_edges, dtype=torch.bool)
    found = prior.logits(*batch.labels[batch.edge_index], both).softmax(1)
    torch.testing.assert_close(found[both], batch.pair_dist[both])
    assert bool((found[~both, 0] > 0.99).all())


def test_predictions_move_with_the_entities():
    prior = FrequencyPrior.fit(random_graphs(30), overlap=True)
    for graph in random_graphs(10, seed=1):
        order = np.random.default_rng(2).permutation(len(graph))
        here, there = prior.predict(graph), prior.predict(graph.permute(order))
        rows = {tuple(pair): dist for pair, dist in zip(here.pairs.tolist(), here.pair_dist.tolist(), strict=True)}
        for (i, j), dist in zip(there.pairs.tolist(), there.pair_dist.tolist(), strict=True):
            assert rows.pop((int(order[i]), int(order[j]))) == dist
        assert not rows


def test_freq_predicts_all_pairs_and_overlap_only_those_that_touch():
    graph = SceneGraph([[0, 0, 10, 10], [5, 5, 20, 20], [50, 50, 60, 60]], [0, 1, 2], VOCABULARY, [[0, 1, 0]])
    found = FrequencyPrior.fit([graph]).predict(graph)
    assert len(found.pairs) == 6
    assert not len(found.relations)
    np.testing.assert_allclose(found.pair_dist.sum(1), 1, rtol=1e-6)
    prior = FrequencyPrior.fit([graph], overlap=True)
    assert prior.predict(graph).pairs.tolist() == [[0, 1], [1, 0]]
    one = torch.tensor([0])
    far = prior.logits(one, one + 1, torch.tensor([False]))
    torch.testing.assert_close(far.exp(), torch.tensor([[1 + EPSILON, EPSILON, EPSILON]]))
    with pytest.raises(ValueError, match="overlap"):
        prior.logits(one, one)


def test_most_probable_labels_stand_in_for_given_ones():
    graph = SceneGraph([[0, 0, 9, 9], [2, 2, 8, 8]], [0, 1], VOCABULARY, [[0, 1, 0]])
    prior = FrequencyPrior.fit([graph])
    guessed = graph.replace(labels=[2, 2], label_dist=[[0.8, 0.1, 0.1], [0.2, 0.5, 0.3]])
    found = prior.predict(guessed)
    assert found.labels.tolist() == [0, 1]
    assert found.scores.tolist() == [0.8, 0.5]
    assert np.array_equal(found.pair_dist, prior.predict(graph).pair_dist)


def test_nothing_to_count_and_mixed_vocabularies_are_refused():
    with pytest.raises(GraphError, match="at least one"):
        FrequencyPrior.fit([])
    other = SceneGraph([[0, 0, 1, 1]], [0], Vocabulary(["x"], ["y"]))
    with pytest.raises(GraphError, match="share"):
        FrequencyPrior.fit([*random_graphs(2), other])
    with pytest.raises(GraphError, match="differs"):
        FrequencyPrior.fit(random_graphs(2)).predict(other)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("data", "split", "want", "tolerance"),
    [("vg150_allboxes", None, (49.9, 58.7, 62.0), 0.35), ("vg150", "test", (57.8, 62.9, 64.3), 0.15)],
)
def test_known_figures(shared_data: Path, data, split, want, tolerance):
    """PredCls, constrained, R@20/50/100. Pairs of equal labels tie and their order is free, hence the tolerance."""
    prior = FrequencyPrior.fit(open_dataset(shared_data / "vg150", split="train", validation=1291))
    targets = open_dataset(shared_data / data, split=split)
    figures = scene_graph_recall(list(map(prior.predict, targets)), targets, Protocol(task="predcls")).figures
    assert [100 * figures[f"R@{k}"] for k in (20, 50, 100)] == pytest.approx(want, abs=tolerance)
