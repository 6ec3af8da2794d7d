"""The proof of necessity runs: phi, alpha, rho from a hash give back any invariant black box, and no other."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpi.black_boxes import greedy_colouring
from gpi.graphs import collate
from gpi.inference_models import INVARIANT, model
from scenegpi.gpi import HashConstruction, apply_black_box, complete_edges, permutation_gap
from scenegpi.gpi.proof import feature_hash


@pytest.mark.parametrize("name", INVARIANT)
@settings(max_examples=10, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    density=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 2**31),
)
def test_gives_back_the_black_box(name, sizes, density, seed):
    batch = collate([model(n, density, seed + n) for n in sizes])
    expected = apply_black_box(INVARIANT[name], **batch.tensors())
    found = HashConstruction(INVARIANT[name])(**batch.tensors())
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)
    assert permutation_gap(HashConstruction(INVARIANT[name]), batch, trials=2) < 1e-9


def test_scalar_edge_features_and_no_edge_features():
    def weighted_degree(nodes, pairs, edges):
        return pairs.sum((1, 2)) + edges.sum(1)

    edges = complete_edges([4])[:, [0, 3, 5, 9]]
    x = torch.randn(4, 1).double()
    for attr in (torch.randn(4, 1).double(), None):
        found = HashConstruction(weighted_degree)(x, edges, attr)
        torch.testing.assert_close(found, apply_black_box(weighted_degree, x, edges, attr))


def test_an_edge_of_feature_zero_is_still_an_edge():
    x, edges = torch.randn(3, 2), torch.tensor([[0, 1], [1, 2]])
    found = HashConstruction(lambda nodes, pairs, edges: edges.sum(1))(x, edges, torch.zeros(2, 1))
    assert found.tolist() == [0, 1, 1]


def test_a_black_box_that_is_not_invariant_fails():
    graph = model(6, 0.4, seed=0)
    found = HashConstruction(greedy_colouring)(**graph.tensors())
    assert not torch.equal(found, apply_black_box(greedy_colouring, **graph.tensors()))
    # What comes out instead is invariant: the construction can be nothing else.
    assert permutation_gap(HashConstruction(greedy_colouring), graph) == 0


def test_a_fixed_number_of_buckets():
    graph = model(4, 1.0, seed=5)
    box = INVARIANT["exact"]
    expected = apply_black_box(box, **graph.tensors())
    large = next(size for size in range(30, 99) if len(feature_hash(graph.x, size).unique()) == 4)
    torch.testing.assert_close(HashConstruction(box, buckets=large)(**graph.tensors()), expected)
    with pytest.raises(ValueError, match="not perfect with 3 buckets"):
        HashConstruction(box, buckets=3)(**graph.tensors())


def test_equal_nodes_are_an_error():
    with pytest.raises(ValueError, match="equal features"):
        HashConstruction(INVARIANT["exact"])(torch.ones(2, 2), complete_edges([2]), torch.ones(2, 4))


def test_the_hash_reads_one_row_at_a_time():
    z = torch.randn(20, 3)
    order = torch.randperm(20)
    assert torch.equal(feature_hash(z, 97)[order], feature_hash(z[order], 97))
    assert torch.equal(feature_hash(z[:5], 97), feature_hash(z, 97)[:5])
    assert torch.equal(feature_hash(torch.zeros(1, 1), 97), feature_hash(-torch.zeros(1, 1), 97))
    counts = torch.bincount(feature_hash(torch.randn(20_000, 2), 50), minlength=50)
    assert counts.min() > 300


def test_nothing_in_nothing_out():
    assert len(HashConstruction(INVARIANT["exact"])(torch.zeros(0, 2), torch.zeros(2, 0, dtype=torch.long))) == 0
