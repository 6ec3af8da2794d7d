"""permutation_gap and assert_invariant find what is not invariant, and say where."""

import pytest
import torch

from gpi.graphs import random_graph
from scenegpi.gpi import FlatGraph, assert_invariant, complete_edges, permutation_gap


def degree(x, edge_index, **_):
    return torch.zeros(len(x)).index_add_(0, edge_index[1], torch.ones(edge_index.shape[1]))


@pytest.fixture
def graph():
    return random_graph([4, 1, 3], 0.7, True, seed=0)


def test_invariant_models_have_no_gap(graph):
    assert permutation_gap(degree, graph) == 0
    assert_invariant(
        lambda x, edge_index, edge_attr, **_: {"node": x, "edge": edge_attr, "graph": torch.ones(3)}, graph
    )


def test_position_is_found(graph):
    def positions(x, **_):
        return x + torch.arange(len(x)).unsqueeze(1)

    assert permutation_gap(positions, graph) >= 1
    with pytest.raises(
        AssertionError, match=r"node level.*node \d, feature 0.*becomes.*nodes are listed as \["
    ) as error:
        assert_invariant(positions, graph)
    # The message names a node that moved.
    text = str(error.value)
    order = [int(k) for k in text.split("listed as [")[1].split("]")[0].split(", ")]
    moved = int(text.split(" at node ")[1].split(",")[0])
    assert order.index(moved) != moved


def test_order_of_edges_is_found(graph):
    def running_total(edge_attr, **_):
        return {"scores": edge_attr.cumsum(0)}

    with pytest.raises(AssertionError, match=r"output scores \(edge level\).*edge \d+ \(\d -> \d\)"):
        assert_invariant(running_total, graph)


def test_graph_level_output_must_not_move(graph):
    def first_node(x, batch, **_):
        return [x[(batch == k).nonzero()[0, 0]] for k in range(3)]

    with pytest.raises(AssertionError, match=r"graph level|node level"):
        assert_invariant(lambda **tensors: torch.stack(first_node(**tensors)), graph)


def test_nodes_stay_in_their_graph(graph):
    assert permutation_gap(lambda x, batch, **_: batch, graph) == 0


def test_names_decide_where_counts_do_not():
    ring = FlatGraph(torch.randn(4, 2), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), torch.randn(4, 1))
    assert permutation_gap(lambda x, edge_index, edge_attr: {"edge_copy": edge_attr, "node_copy": x}, ring) == 0
    assert permutation_gap(lambda x, edge_index, edge_attr: {"node_copy": edge_attr}, ring) > 0


def test_nan_and_infinity():
    graph = FlatGraph(torch.randn(3, 1), complete_edges([3]))
    constant = torch.tensor([torch.nan, torch.inf, torch.inf])
    assert permutation_gap(lambda x, edge_index: torch.full((3,), torch.nan), graph) == 0
    assert permutation_gap(lambda x, edge_index: constant, graph) == torch.inf
    with pytest.raises(AssertionError, match="inf"):
        assert_invariant(lambda x, edge_index: constant, graph)


def test_outputs_without_rows_are_an_error(graph):
    with pytest.raises(ValueError, match="neither nodes, edges nor graphs"):
        permutation_gap(lambda **_: torch.zeros(1000, 2), graph)
    assert permutation_gap(lambda x, **_: x.sum(), graph) < 1e-12


def test_shapes_that_change_are_found(graph):
    calls = []

    def growing(x, **_):
        calls.append(1)
        return x if len(calls) == 1 else x[:, :1]

    assert permutation_gap(growing, graph) == torch.inf
