"""The black boxes themselves: right by exact enumeration, and invariant."""

import networkx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpi.black_boxes import (
    belief_propagation,
    exact_marginals,
    greedy_colouring,
    log_partition,
    mean_field,
    same_set_neighbours,
)
from gpi.inference_models import CLASSES, INVARIANT, dense, model, tree
from scenegpi.gpi import FlatGraph, apply_black_box, dense_graph, permutation_gap
from scenegpi.gpi.proof import shortest_paths


@pytest.mark.parametrize("name", INVARIANT)
@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 6), density=st.sampled_from([0.0, 0.5, 1.0]), seed=st.integers(0, 2**31))
def test_invariant(name, n, density, seed):
    graph = model(n, density, seed)
    gap = permutation_gap(lambda **tensors: apply_black_box(INVARIANT[name], **tensors), graph, trials=3)
    assert gap < 1e-9


def test_greedy_colouring_is_a_colouring_but_not_invariant():
    graph = model(6, 0.4, seed=0)
    colour = greedy_colouring(*dense(graph))
    assert (colour[graph.edge_index[0]] != colour[graph.edge_index[1]]).all()
    assert permutation_gap(lambda **tensors: apply_black_box(greedy_colouring, **tensors), graph) >= 1


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 7), seed=st.integers(0, 2**31))
def test_belief_propagation_is_exact_on_trees(n, seed):
    graph = dense(tree(n, seed))
    torch.testing.assert_close(belief_propagation(*graph), exact_marginals(*graph))


def test_belief_propagation_is_near_on_loops():
    graph = dense(model(6, 0.5, seed=1, scale=0.2))
    torch.testing.assert_close(belief_propagation(*graph), exact_marginals(*graph), atol=0.01, rtol=0)


def test_exact_marginals_of_two_nodes_by_hand():
    scores = torch.tensor([[0.3, -0.1], [0.0, 0.7]]).double()
    table = torch.tensor([[1.0, -2.0], [0.5, 0.25]]).double()
    graph = dense_graph(scores, torch.tensor([[1], [0]]), table.reshape(1, 4))  # from j = 1 to i = 0
    joint = (scores[0].unsqueeze(1) + scores[1] + table).exp()
    expected = torch.stack([joint.sum(1), joint.sum(0)]) / joint.sum()
    torch.testing.assert_close(exact_marginals(*graph), expected)
    torch.testing.assert_close(log_partition(*graph), joint.sum().log())


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 6), seed=st.integers(0, 2**31))
def test_mean_field_is_a_fixed_point_and_a_lower_bound(n, seed):
    graph = model(n, 0.6, seed, scale=0.3)
    nodes, pairs, edges = dense(graph)
    q = mean_field(nodes, pairs, edges, iterations=300)
    theta = (pairs * edges.unsqueeze(2)).reshape(n, n, CLASSES, CLASSES)
    field = torch.einsum("ijab,jb->ia", theta, q) + torch.einsum("jiba,jb->ia", theta, q)
    torch.testing.assert_close(q, torch.softmax(nodes + field, 1), atol=1e-6, rtol=0)
    energy = (q * nodes).sum() + torch.einsum("ia,ijab,jb->", q, theta, q)
    assert energy - (q * q.log()).sum() <= log_partition(nodes, pairs, edges) + 1e-9


def test_mean_field_is_exact_without_interactions_and_near_with_weak_ones():
    graph = dense(model(5, 1.0, seed=3, scale=0.0))
    torch.testing.assert_close(mean_field(*graph), exact_marginals(*graph))
    graph = dense(model(5, 1.0, seed=3, scale=0.1))
    torch.testing.assert_close(mean_field(*graph), exact_marginals(*graph), atol=0.02, rtol=0)


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 7), density=st.sampled_from([0.2, 0.6, 1.0]), seed=st.integers(0, 2**31))
def test_shortest_paths_equal_dijkstra(n, density, seed):
    graph = model(n, density, seed)
    graph = FlatGraph(graph.x, graph.edge_index, graph.edge_attr.abs())
    network = networkx.DiGraph()
    network.add_nodes_from(range(n))
    for (j, i), length in zip(graph.edge_index.T.tolist(), graph.edge_attr[:, 0].tolist(), strict=True):
        network.add_edge(j, i, weight=length)
    marked = set((graph.x[:, 0] > 0).nonzero().flatten().tolist())
    distance = networkx.multi_source_dijkstra_path_length(network, marked) if marked else {}
    expected = [distance.get(k, torch.inf) for k in range(n)]
    torch.testing.assert_close(shortest_paths(*dense(graph)), torch.tensor(expected).double())


def test_negative_lengths_are_an_error():
    graph = model(3, 1.0, seed=0)
    with pytest.raises(ValueError, match="negative"):
        shortest_paths(*dense(graph))


def test_same_set_neighbours_by_hand():
    nodes = torch.tensor([[1.0, 0], [1, 0], [0, 1], [1, 0]])
    edges = torch.zeros(4, 4, dtype=torch.bool)
    for i, j in ((0, 1), (0, 2), (0, 3), (1, 0), (2, 3)):
        edges[i, j] = True
    labels = same_set_neighbours(nodes, edges.unsqueeze(2).float(), edges, sets=2)
    assert labels.tolist() == [2, 1, 0, 0]
