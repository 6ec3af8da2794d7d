"""The task: labels by brute force, the relabelling of graphs, the ceiling of the strict form."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scenegpi.paper.labelling.graphs import Graphs, Task, best_order_blind_accuracy, stream_seed
from scenegpi.paper.labelling.models import GPI
from scenegpi.paper.labelling.training import accuracy

tasks = st.builds(Task, nodes=st.integers(1, 8), sets=st.integers(1, 6), edge_probability=st.floats(0, 1))
seeds = st.integers(0, 2**32)


@given(task=tasks, seed=seeds)
@settings(max_examples=60, deadline=None)
def test_labels_are_counts_of_neighbours_in_the_same_set(task: Task, seed: int) -> None:
    graphs = task.sample(3, seed)
    n = task.nodes
    for b in range(3):
        for i in range(n):
            expected = 0
            for j in range(n):
                edge = bool(graphs.adjacency[b, i, j])
                assert edge == bool(graphs.adjacency[b, j, i])
                assert not (edge and i == j)
                expected += edge and bool(graphs.sets[b, i] == graphs.sets[b, j])
            assert int(graphs.labels[b, i]) == expected


@given(task=tasks, seed=seeds)
@settings(max_examples=30, deadline=None)
def test_relabelling_moves_sets_edges_and_labels_together(task: Task, seed: int) -> None:
    graphs = task.sample(2, seed)
    order = torch.randperm(task.nodes, generator=torch.Generator().manual_seed(seed))
    moved = graphs.relabel(order)
    for k, i in enumerate(order.tolist()):
        assert torch.equal(moved.sets[:, k], graphs.sets[:, i])
        for m, j in enumerate(order.tolist()):
            assert torch.equal(moved.adjacency[:, k, m], graphs.adjacency[:, i, j])
    same_set = moved.sets[:, :, None] == moved.sets[:, None, :]
    assert torch.equal(moved.labels, (moved.adjacency & same_set).sum(2))


@given(task=tasks, seed=seeds)
@settings(max_examples=30, deadline=None)
def test_features_are_one_hot_sets_and_the_edges_of_each_node(task: Task, seed: int) -> None:
    graphs = task.sample(2, seed)
    z, pairs = graphs.node_features(task.sets, torch.float64), graphs.pair_features(torch.float64)
    assert torch.equal(z.argmax(2), graphs.sets)
    assert torch.equal(z.sum(2), torch.ones(2, task.nodes, dtype=torch.float64))
    for i in range(task.nodes):
        partners = [j for j in range(task.nodes) if j != i]
        assert torch.equal(pairs[:, i], graphs.adjacency[:, i, partners].double())


def test_a_seed_gives_the_same_graphs_and_purposes_give_others() -> None:
    task = Task()
    first, again = task.sample(20, 5), task.sample(20, 5)
    assert torch.equal(first.adjacency, again.adjacency)
    assert torch.equal(first.sets, again.sets)
    drawn = {stream_seed(purpose, seed) for purpose in ("training samples", "test graphs") for seed in range(50)}
    assert len(drawn) == 100


def test_edges_and_sets_have_the_stated_probabilities() -> None:
    graphs = Task(nodes=10, sets=5, edge_probability=0.3).sample(2000, 1)
    assert float(graphs.pair_features(torch.float64).mean()) == pytest.approx(0.3, abs=0.01)
    assert torch.bincount(graphs.sets.flatten()).double().div(20_000).tolist() == pytest.approx([0.2] * 5, abs=0.015)


@pytest.mark.parametrize("wrong", [{"nodes": 0}, {"sets": 0}, {"edge_probability": 1.1}])
def test_impossible_tasks_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="nodes >= 1"):
        Task(**wrong)  # type: ignore[arg-type]


@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_ceiling_is_the_best_over_all_ways_to_label_by_set(seed: int) -> None:
    graphs = Task(nodes=5, sets=2).sample(1, seed)
    best = 0.0
    for choice in itertools.product(range(5), repeat=2):
        labels = torch.tensor(choice)[graphs.sets]
        best = max(best, float((labels == graphs.labels).double().mean()))
    assert best_order_blind_accuracy(graphs) == pytest.approx(best)


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_strict_form_labels_a_set_alike_and_so_stays_below_the_ceiling(seed: int) -> None:
    torch.manual_seed(seed)
    graphs: Graphs = Task(nodes=6, sets=3).sample(8, seed)
    model = GPI(3, 6, hidden=16, strict=True).double()
    scores = model(graphs).detach()
    same = graphs.sets[:, :, None] == graphs.sets[:, None, :]
    difference = (scores[:, :, None] - scores[:, None, :]).abs().amax(3)
    assert float(difference[same].max()) < 1e-9
    assert accuracy(scores, graphs) <= best_order_blind_accuracy(graphs) + 1e-6
