"""Kept memory is used again, and only when nobody uses it any more."""

import gc

import pytest
import torch

from gpi.gpi_graphs import random_graph
from scenegpi.gpi import GPILayer, complete_edges, memory
from scenegpi.gpi.memory import BlockPool, large_empty


@pytest.fixture
def pool(monkeypatch):
    fresh = BlockPool(limit=100 * 2**20)
    monkeypatch.setattr(memory, "POOL", fresh)
    monkeypatch.setattr(memory, "_LARGE", 0)
    return fresh


def test_a_block_comes_back_when_its_last_tensor_is_gone(pool):
    like = torch.zeros(0)
    first = large_empty(1000, 10, like)
    where, part = first.data_ptr(), first[10:20]
    del first
    gc.collect()
    assert pool.free_bytes() == 0
    other = large_empty(1000, 10, like)
    assert other.data_ptr() != where
    del part
    gc.collect()
    assert pool.free_bytes() >= 40_000
    assert large_empty(1000, 10, like).data_ptr() == where


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_shape_and_type(pool, dtype):
    like = torch.zeros(1, dtype=dtype)
    for rows, width in ((7, 3), (0, 5), (4, 0)):
        tensor = large_empty(rows, width, like)
        assert (tensor.shape, tensor.dtype) == ((rows, width), dtype)
        tensor.fill_(1)


def test_the_limit_holds_and_ill_fitting_blocks_stay(pool):
    tensors = [large_empty(2**20, 5, torch.zeros(0)) for _ in range(8)]
    del tensors
    gc.collect()
    assert 0 < pool.free_bytes() <= pool.limit
    before = pool.free_bytes()
    small = large_empty(100, 5, torch.zeros(0))  # far smaller than any free block
    assert pool.free_bytes() == before
    del small
    pool.clear()
    assert pool.free_bytes() == 0


def test_gradients_do_not_change_when_memory_is_used_again(pool):
    torch.manual_seed(0)
    layer = GPILayer(3, 2, 4, 3, hidden=8, aggregation="feature", fused=True).double()
    graphs = [random_graph([5, 4], 1.0, False, seed=k, words=False) for k in range(2)]

    def grads(out, **options):
        return torch.autograd.grad(out.edges.square().sum(), list(layer.edge_rho.parameters()), **options)

    # Two graphs alive at once, one of them walked twice: nothing of it may have been handed out in between.
    one, two = layer(graphs[0]), layer(graphs[1])
    first = grads(one, retain_graph=True)
    grads(two)
    layer(graphs[1])
    again = grads(one)
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    layer.fused = False
    torch.testing.assert_close(first, grads(layer(graphs[0])))


def test_a_training_loop_needs_no_new_blocks(pool):
    layer = GPILayer(3, 2, 4, 3, hidden=64, aggregation="feature", fused=True)
    edges = complete_edges([10] * 4)
    x, attr = torch.randn(40, 3), torch.randn(edges.shape[1], 2)
    used = []
    for _ in range(3):
        out = layer(x, edges, attr)
        (out.nodes.sum() + out.edges.sum()).backward()
        used.append(pool.free_bytes())
    assert used[0] > 0
    assert used == [used[0]] * 3
