"""torch.compile, export, autocast, devices, state_dict: the layer as a citizen of PyTorch."""

import copy

import pytest
import torch

from gpi.graphs import make_layer, outputs, random_graph
from scenegpi.gpi import GPILayer, complete_edges, permutation_gap


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return GPILayer(3, 2, 4, 3, hidden=8, aggregation="feature", gate=True)


@pytest.fixture
def graph():
    edges = complete_edges([4, 3])
    return torch.randn(7, 3), edges, torch.randn(edges.shape[1], 2), torch.tensor([0] * 4 + [1] * 3)


def test_compile(layer, graph):
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    out, expected = compiled(*graph, num_graphs=2), layer(*graph)
    torch.testing.assert_close(out.nodes, expected.nodes)
    torch.testing.assert_close(out.edges, expected.edges)
    weights = [layer.phi.weight, layer.beta.weight, layer.edge_rho.layers[0].weight]
    found, wanted = (torch.autograd.grad(o.nodes.sum() + o.edges.sum(), weights) for o in (out, expected))
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def test_compile_to_machine_code(graph):
    layer = GPILayer(3, 2, 2, hidden=4, rho_hidden=(4,))
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(layer)(*graph[:3]).nodes, layer(*graph[:3]).nodes)


def test_export_with_any_number_of_nodes_and_edges(layer):
    edges = complete_edges([4])
    nodes, pairs = torch.export.Dim("nodes", min=2, max=1000), torch.export.Dim("pairs", min=2, max=10**6)
    shapes = {"x": {0: nodes}, "edge_index": {1: pairs}, "edge_attr": {0: pairs}}
    arguments = {"x": torch.randn(4, 3), "edge_index": edges, "edge_attr": torch.randn(12, 2)}
    program = torch.export.export(layer, (), arguments, dynamic_shapes=shapes)
    edges = complete_edges([6])
    other = {"x": torch.randn(6, 3), "edge_index": edges, "edge_attr": torch.randn(30, 2)}
    out, expected = program.module()(**other), layer(**other)
    torch.testing.assert_close(out.nodes, expected.nodes)
    torch.testing.assert_close(out.edges, expected.edges)


@pytest.mark.parametrize("kind", ["sum", "max", "feature"])
def test_autocast(kind):
    graph = random_graph([5, 1, 4], 1.0, False, seed=1)
    layer = make_layer(aggregation=kind).float()
    arguments = [graph.x.float(), graph.edge_index, graph.edge_attr.float(), graph.batch]
    words = {"x_class": graph.x_class, "edge_class": graph.edge_class}
    # Without oneDNN: its bfloat16 kernels crash on virtual machines that announce AMX but do not grant it.
    with torch.backends.mkldnn.flags(enabled=False), torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(*arguments, **words)
    assert out.edges.dtype == torch.bfloat16
    expected = layer(*arguments, **words)
    torch.testing.assert_close(out.edges.float(), expected.edges, atol=0.1, rtol=0.1)
    with torch.backends.mkldnn.flags(enabled=False):
        (out.edges.float().sum() + out.nodes.float().sum()).backward()
    assert all(p.grad.isfinite().all() for p in layer.edge_rho.parameters())


def test_double_is_double():
    graph = random_graph([6], 1.0, False, seed=1)
    assert all(value.dtype == torch.double for value in outputs(make_layer(), graph).values())
    assert permutation_gap(make_layer(), graph) < 1e-12


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_gpu(layer, graph):
    expected = layer(*graph)
    out = copy.deepcopy(layer).cuda()(*[value.cuda() for value in graph])
    torch.testing.assert_close(out.edges.cpu(), expected.edges, atol=1e-4, rtol=1e-4)


def test_state_dict_does_not_depend_on_chunks():
    whole, chunked = make_layer(aggregation="feature"), make_layer(aggregation="feature", chunk_edges=4)
    names = [
        "x_table",
        "edge_table",
        *(f"{name}.{part}" for name in ("phi", "beta", "alpha", "gamma") for part in ("weight", "bias")),
        *(f"{name}.layers.{k}.{part}" for name in ("rho", "edge_rho") for k in range(4) for part in ("weight", "bias")),
        *(f"{name}.{part}" for name in ("node_gate", "edge_gate") for part in ("weight", "bias")),
    ]
    assert list(whole.state_dict()) == list(chunked.state_dict()) == names
    for parameter in chunked.parameters():
        torch.nn.init.normal_(parameter)
    chunked.load_state_dict(whole.state_dict())
    graph = random_graph([3, 4], 1.0, False, seed=2)
    torch.testing.assert_close(outputs(whole, graph), outputs(chunked, graph))
