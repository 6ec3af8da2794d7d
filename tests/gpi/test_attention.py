"""The weights that are read off a layer are the ones it used."""

import pytest
import torch

from scenegpi.gpi import FlatGraph, GPILayer, Recurrent, complete_edges, recorded_attention, segment_sum


def case(kind):
    torch.manual_seed(1)
    index = complete_edges([5, 3, 1])
    batch = torch.tensor([0] * 5 + [1] * 3 + [2])
    x, edges = torch.randn(9, 4), torch.randn(index.shape[1], 3)
    layer = GPILayer(4, 3, 2, 2, hidden=6, aggregation=kind, flow="target_to_source")
    return layer, x, index, edges, batch


@pytest.mark.parametrize("kind", ["neighbour", "feature"])
def test_the_weights_give_the_layers_own_sums(kind):
    layer, x, index, edges, batch = case(kind)
    usual = layer(x, index, edges, batch)  # as it runs without anybody looking
    with recorded_attention(layer) as calls:
        watched = layer(x, index, edges, batch)
    (call,) = calls
    i, j = index
    phi = layer.phi(torch.cat([x[i], edges, x[j]], 1))
    s = segment_sum(call.edge_attention * phi, i, 9)
    torch.testing.assert_close(s, usual.neighbourhood, atol=1e-5, rtol=1e-5)
    alpha = layer.alpha(torch.cat([x, s], 1))
    torch.testing.assert_close(segment_sum(call.node_attention * alpha, batch, 3), usual.graph, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(watched.nodes, usual.nodes, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(segment_sum(call.edge_attention.mean(1), i, 9)[:8], torch.ones(8))
    torch.testing.assert_close(segment_sum(call.node_attention.mean(1), batch, 3), torch.ones(3))


def test_every_step_is_recorded_and_hooks_are_gone_afterwards():
    layer = GPILayer(2, 2, 2, 2, hidden=4, aggregation="neighbour", gate=True)
    model, index = Recurrent(layer, steps=3), complete_edges([4])
    with recorded_attention(model) as calls:
        model(torch.randn(4, 2), index, torch.randn(12, 2))
    assert len(calls) == 3
    assert layer(torch.randn(4, 2), index, torch.randn(12, 2)).edge_attention is None
    assert len(calls) == 3
    with pytest.raises(RuntimeError), recorded_attention(model):
        raise RuntimeError
    assert not layer._forward_hooks
    assert not layer._forward_pre_hooks


def test_a_graph_object_is_one_call():
    layer, x, index, edges, batch = case("neighbour")
    with recorded_attention(layer) as calls:
        layer(FlatGraph(x, index, edges, batch))
    assert len(calls) == 1
