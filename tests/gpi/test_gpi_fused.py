"""The fused kernels and the chunked mode give what the plain form gives, forward and backward."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpi.gpi_graphs import KINDS, flat_graphs, gradients, make_layer, outputs, random_graph
from scenegpi.gpi import GPILayer, complete_edges

close = {"atol": 1e-9, "rtol": 1e-7}


@settings(max_examples=40, deadline=None)
@given(
    graph=flat_graphs(),
    kind=st.sampled_from(KINDS),
    strict=st.booleans(),
    activation=st.sampled_from(["relu", "none"]),
    chunk=st.sampled_from([None, 1, 5]),
    flow=st.sampled_from(["source_to_target", "target_to_source"]),
)
def test_fused_and_chunked_equal_plain(graph, kind, strict, activation, chunk, flow):
    fused = make_layer(aggregation=kind, strict=strict, activation=activation, chunk_edges=chunk, flow=flow)
    plain = copy.deepcopy(fused)
    plain.fused, plain.chunk_edges = False, None
    slow_chunks = copy.deepcopy(fused)
    slow_chunks.fused = False
    expected, expected_gradients = outputs(plain, graph), gradients(plain, graph)
    for layer in (fused, slow_chunks):
        torch.testing.assert_close(outputs(layer, graph), expected, **close)
        torch.testing.assert_close(gradients(layer, graph), expected_gradients, **close)
        with torch.no_grad():
            torch.testing.assert_close(outputs(layer, graph), expected, **close)


def test_fused_equals_plain_in_single_precision_at_real_width():
    torch.manual_seed(0)
    layer = GPILayer(20, 12, 7, 5, hidden=128, aggregation="feature", gate=True, fused=True)
    edges = complete_edges([12, 3, 30])
    batch = torch.repeat_interleave(torch.tensor([12, 3, 30]))
    x, attr = torch.randn(45, 20), torch.randn(edges.shape[1], 12)
    results = []
    for fused, chunk in ((True, None), (True, 64), (False, None)):
        layer.fused, layer.chunk_edges = fused, chunk
        layer.zero_grad()
        out = layer(x, edges, attr, batch)
        (out.nodes.square().mean() + out.edges.square().mean()).backward()
        results.append([out.nodes, out.edges, layer.phi.weight.grad, layer.edge_rho.layers[0].weight.grad])
    for other in results[1:]:
        torch.testing.assert_close(results[0], other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["sum", "mean", "neighbour", "feature"])
@pytest.mark.parametrize("chunk", [None, 4])
def test_finite_differences(kind, chunk):
    graph = random_graph([3, 1, 4], 0.7, True, seed=4)
    layer = make_layer(aggregation=kind, chunk_edges=chunk, hidden=3)
    names = [name for name, _ in layer.named_parameters()]

    def run(x, edge_attr, *parameters):
        arguments = (x, graph.edge_index, edge_attr, graph.batch)
        classes = {"x_class": graph.x_class, "edge_class": graph.edge_class}
        out = torch.func.functional_call(layer, dict(zip(names, parameters, strict=True)), arguments, classes)
        return out.nodes, out.edges, out.node_gate, out.edge_gate

    inputs = [graph.x, graph.edge_attr, *layer.parameters()]
    inputs = [value.detach().clone().requires_grad_() for value in inputs]
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)


def test_the_form_is_chosen_by_the_work_it_saves():
    layer = GPILayer(100, 20, 5, 5, hidden=100)
    small, large = complete_edges([10]), complete_edges([30])
    assert layer.plan(torch.zeros(10, 100), small) is None
    assert layer.plan(torch.zeros(30, 100), large) is not None
    layer.fused = False
    assert layer.plan(torch.zeros(30, 100), large) is None
    layer.chunk_edges = 64
    assert layer.plan(torch.zeros(30, 100), large) is not None


def test_scores_of_node_i_cancel():
    # An affine attention network's part for z_i is constant within a neighbourhood: no effect, no gradient.
    graph = random_graph([4], 1.0, False, seed=9)
    layer = make_layer(aggregation="feature")
    before = layer(graph).nodes
    layer.beta.weight.data[:, : layer.beta.parts[0]] += 3.0
    torch.testing.assert_close(layer(graph).nodes, before)
    assert gradients(layer, graph)["beta.weight"][:, : layer.beta.parts[0]].abs().max() < 1e-12


def test_large_scores_stay_finite():
    graph = random_graph([4], 1.0, False, seed=9)
    layer = make_layer(aggregation="feature")
    layer.beta.weight.data *= 1e5
    assert all(value.isfinite().all() for value in outputs(layer, graph).values())
    assert all(value.isfinite().all() for value in gradients(layer, graph).values())


@pytest.mark.parametrize("chunk", [None, 5])
def test_dropout_in_the_fused_network(chunk):
    graph = random_graph([6, 5], 1.0, False, seed=6, words=False)
    layer = make_layer(words=False, dropout=0.4, chunk_edges=chunk)

    def draw(seed):
        torch.manual_seed(seed)
        return layer(graph).edges

    torch.testing.assert_close(draw(0), draw(0))
    assert not torch.allclose(draw(0), draw(1))
    # The mask of the backward pass is that of the forward pass: finite differences under one seed.
    direction, step = torch.randn_like(layer.edge_rho.layers[0].bias), 1e-6
    (slope,) = torch.autograd.grad(draw(2).sum(), layer.edge_rho.layers[0].bias)
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            layer.edge_rho.layers[0].bias += sign * step * direction
            values.append(draw(2).sum())
            layer.edge_rho.layers[0].bias -= sign * step * direction
    assert abs((values[0] - values[1]) / (2 * step) - slope @ direction) < 1e-5
    layer.eval()
    torch.testing.assert_close(draw(0), draw(1))


def test_dropout_keeps_the_mean():
    layer = GPILayer(2, 2, 1, 1, hidden=64, dropout=0.3, rho_hidden=(64,), aggregation="mean", fused=True)
    edges = complete_edges([40])
    x, attr = torch.ones(40, 2), torch.ones(edges.shape[1], 2)
    torch.manual_seed(1)
    layer.dropout = 0.0  # the hidden layers of rho only
    drawn = layer(x, edges, attr).edges
    layer.eval()
    error = drawn.std() / len(drawn) ** 0.5
    assert error > 0
    assert abs(drawn.mean() - layer(x, edges, attr).edges.mean()) < 4 * error


def test_kept_memory_does_not_grow_with_edges_when_chunked():
    layer = make_layer(words=False, aggregation="feature", chunk_edges=8)
    kept = {}
    for n in (4, 12):
        graph = random_graph([n], 1.0, False, seed=n, words=False)
        rows = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, rows=rows: rows.append(t.shape) or t, lambda t: t):
            layer(graph)
        # Inputs and outputs have one row an edge; hidden layers, 5 wide, must not be among what is kept.
        kept[n] = sum(shape == (n * (n - 1), 5) for shape in rows)
    assert kept == {4: 0, 12: 0}
