"""GPILayer: the equation, invariance, batches, directions, degenerate graphs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpi.graphs import KINDS, collate, flat_graphs, make_layer, outputs, random_graph
from scenegpi.gpi import MLP, Dense, FlatGraph, GPILayer, assert_invariant, complete_edges


@settings(max_examples=25, deadline=None)
@given(
    graph=flat_graphs(),
    kind=st.sampled_from(KINDS),
    strict=st.booleans(),
    flow=st.sampled_from(["source_to_target", "target_to_source"]),
    chunk=st.sampled_from([None, 3]),
)
def test_invariant(graph, kind, strict, flow, chunk):
    layer = make_layer(aggregation=kind, strict=strict, flow=flow, chunk_edges=chunk)
    assert_invariant(layer, graph, trials=3, tolerance=1e-9)


@settings(max_examples=25, deadline=None)
@given(graph=flat_graphs(min_graphs=1), kind=st.sampled_from(KINDS))
def test_flat_batch_equals_loop_over_graphs(graph, kind):
    layer = make_layer(aggregation=kind)
    whole = outputs(layer, graph)
    parts = []
    for k in range(graph.num_graphs):
        inside = graph.batch[graph.edge_index[0]] == k
        node = graph.batch == k
        parts.append(
            layer(
                graph.x[node],
                graph.edge_index[:, inside] - int((graph.batch < k).sum()),
                graph.edge_attr[inside],
                x_class=graph.x_class[node],
                edge_class=graph.edge_class[inside],
            )
        )
        for name in ("edges", "edge_gate"):
            torch.testing.assert_close(whole[name][inside], getattr(parts[-1], name), atol=1e-9, rtol=0)
    for name in ("nodes", "graph", "neighbourhood", "node_gate"):
        torch.testing.assert_close(whole[name], torch.cat([getattr(p, name) for p in parts]), atol=1e-9, rtol=0)


@pytest.mark.parametrize("strict", [False, True])
def test_equation_node_by_node(strict):
    graph = random_graph([4, 3], 0.7, True, seed=3, words=False)
    layer = make_layer(words=False, strict=strict)
    out = layer(graph)
    z, pairs = graph.x, {(int(i), int(j)): graph.edge_attr[k] for k, (j, i) in enumerate(graph.edge_index.T)}
    s = [
        sum((layer.phi(torch.cat([z[i], e, z[j]])) for (a, j), e in pairs.items() if a == i), torch.zeros(5).double())
        for i in range(7)
    ]
    g = [sum(layer.alpha(torch.cat([z[i], s[i]])) for i in nodes) for nodes in (range(4), range(4, 7))]
    for k in range(7):
        parts = [z[k], g[k // 4]] if strict else [z[k], s[k], g[k // 4]]
        torch.testing.assert_close(out.nodes[k], layer.rho(torch.cat(parts)))
    for edge, (j, i) in enumerate(graph.edge_index.T.tolist()):
        near = [] if strict else [s[i], s[j]]
        parts = torch.cat([z[i], z[j], *near, pairs[i, j], g[i // 4]])
        torch.testing.assert_close(out.edges[edge], layer.edge_rho(parts))
        torch.testing.assert_close(out.edge_gate[edge], torch.sigmoid(layer.edge_gate(parts)))


def test_only_the_default_form_sees_the_own_neighbourhood():
    # Nodes 0 and 2 have equal features; only node 0 has a neighbour.
    x = torch.tensor([[1.0, 2.0], [0.5, 0.1], [1.0, 2.0]])
    edges, attr = torch.tensor([[1], [0]]), torch.ones(1, 1)
    torch.manual_seed(0)
    strict = GPILayer(2, 1, 3, hidden=8, strict=True)(x, edges, attr).nodes
    default = GPILayer(2, 1, 3, hidden=8)(x, edges, attr).nodes
    assert torch.equal(strict[0], strict[2])
    assert not torch.allclose(default[0], default[2])


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_direction(flow):
    # One edge 0 -> 1: PyG's default flow lets node 1, the target, aggregate.
    layer = make_layer(words=False, flow=flow)
    x, attr = torch.randn(2, 3).double(), torch.randn(1, 2).double()
    s = layer(x, torch.tensor([[0], [1]]), attr).neighbourhood
    i, j = (1, 0) if flow == "source_to_target" else (0, 1)
    torch.testing.assert_close(s[i], layer.phi(torch.cat([x[i], attr[0], x[j]])))
    assert s[j].abs().max() == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", [None, 4])
def test_degenerate_graphs(kind, chunk):
    layer = make_layer(words=False, aggregation=kind, chunk_edges=chunk)
    nothing = torch.zeros(0, 3).double()
    no_edges, no_attr = torch.zeros(2, 0, dtype=torch.long), torch.zeros(0, 2).double()
    empty = layer(nothing, no_edges, no_attr, torch.zeros(0, dtype=torch.long))
    assert (empty.nodes.shape, empty.edges.shape, empty.graph.shape) == ((0, 4), (0, 3), (0, 5))
    assert layer(nothing, no_edges, no_attr).graph.abs().max() == 0
    one = layer(torch.randn(1, 3).double(), no_edges, no_attr)
    assert one.nodes.isfinite().all()
    assert one.neighbourhood.abs().max() == 0
    isolated = layer(torch.randn(4, 3).double(), torch.tensor([[0], [2]]), torch.randn(1, 2).double())
    assert all(value.isfinite().all() for value in isolated if value is not None)
    trailing = layer(torch.randn(2, 3).double(), no_edges, no_attr, torch.tensor([0, 2]), num_graphs=5)
    assert trailing.graph.shape == (5, 5)
    assert trailing.graph[[1, 3, 4]].abs().max() == 0
    (empty.nodes.sum() + one.nodes.sum() + isolated.edges.sum()).backward()


def test_edge_features_are_optional():
    edges = complete_edges([3])
    out = GPILayer(2, 0, 1, hidden=4)(torch.randn(3, 2), edges)
    assert out.nodes.shape == (3, 1)
    assert out.edges is None


@pytest.mark.parametrize("kind", ["neighbour", "feature"])
@pytest.mark.parametrize("chunk", [None, 3])
def test_attention_weights(kind, chunk):
    graph = random_graph([5, 1, 4], 0.6, True, seed=2)
    layer = make_layer(aggregation=kind, chunk_edges=chunk)
    out, plain = layer(graph, return_attention=True), layer(graph)
    width = 1 if kind == "neighbour" else 5
    assert out.edge_attention.shape == (graph.edge_index.shape[1], width)
    target = graph.edge_index[1]
    total = torch.zeros(10, width).double().index_add_(0, target, out.edge_attention)
    torch.testing.assert_close(total[target.unique()], torch.ones(len(target.unique()), width).double())
    total = torch.zeros(3, width).double().index_add_(0, graph.batch, out.node_attention)
    torch.testing.assert_close(total, torch.ones(3, width).double())
    torch.testing.assert_close(out.nodes, plain.nodes)
    assert plain.edge_attention is None


class Squares(torch.nn.Module):
    """A network that is not affine in its parts."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width, self.scale = width, torch.nn.Parameter(torch.ones(()))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.scale * inputs[:, :1].square() * torch.arange(1, self.width + 1)


@pytest.mark.parametrize("name", ["phi", "alpha", "rho", "edge_rho", "beta", "gamma"])
@pytest.mark.parametrize("chunk", [None, 4])
def test_any_network_can_be_replaced(name, chunk):
    graph = random_graph([4, 3], 0.8, True, seed=7)
    width = {"rho": 4, "edge_rho": 3}.get(name, 5)
    layer = make_layer(aggregation="feature", chunk_edges=chunk, **{name: Squares(width)})
    assert_invariant(layer, graph, trials=2, tolerance=1e-9)
    assert getattr(layer, name).scale.grad is None
    out = layer(graph)
    (out.nodes.sum() + out.edges.sum()).backward()
    assert getattr(layer, name).scale.grad.abs() > 0
    whole = make_layer(aggregation="feature", **{name: Squares(width)})
    torch.testing.assert_close(out.edges, whole(graph).edges)


def test_node_and_edge_levels_can_differ():
    graph = random_graph([4, 2], 1.0, False, seed=1)
    layer = make_layer(aggregation="neighbour", node_aggregation="max", alpha_dim=6, phi_dim=7)
    out = layer(graph)
    assert (out.neighbourhood.shape[1], out.graph.shape[1]) == (7, 6)
    z = torch.cat([graph.x, layer.x_table[graph.x_class]], 1)
    alpha = layer.alpha(torch.cat([z, out.neighbourhood], 1))
    torch.testing.assert_close(out.graph[0], alpha[:4].amax(0))


def test_pyg_objects_are_accepted():
    data = pytest.importorskip("torch_geometric.data")
    graphs = [random_graph([n], 0.7, False, seed=n, words=False) for n in (3, 1, 4)]
    items = [data.Data(x=g.x, edge_index=g.edge_index, edge_attr=g.edge_attr) for g in graphs]
    layer = make_layer(words=False)
    ours = layer(collate(graphs))
    theirs = layer(data.Batch.from_data_list(items))
    torch.testing.assert_close(ours.nodes, theirs.nodes)
    torch.testing.assert_close(ours.edges, theirs.edges)
    torch.testing.assert_close(layer(items[0]).nodes, ours.nodes[:3])
    assert_invariant(layer, data.Batch.from_data_list(items), tolerance=1e-9)


def test_wrong_use_is_said_plainly():
    layer = make_layer()
    graph = random_graph([3], 1.0, False, seed=0)
    with pytest.raises(ValueError, match="x_class"):
        layer(graph.x, graph.edge_index, graph.edge_attr)
    with pytest.raises(TypeError, match="edge_index is missing"):
        layer(graph.x)
    with pytest.raises(TypeError, match="no tensors x and edge_index"):
        layer(object())
    with pytest.raises(ValueError, match="feature"):
        make_layer(aggregation="median")
    with pytest.raises(ValueError, match="flow"):
        make_layer(flow="sideways")
    with pytest.raises(ValueError, match="activation"):
        Dense([2], 2, "tanh")
    with pytest.raises(ValueError, match="names node 9"):
        FlatGraph(torch.zeros(3, 1), torch.tensor([[0], [9]]))


def test_default_sizes_are_the_papers():
    layer = GPILayer(464, 351, 150, 51, aggregation="feature")
    assert tuple(layer.phi.weight.shape) == (500, 464 * 2 + 351)
    assert isinstance(layer.rho, MLP)
    assert [tuple(part.weight.shape) for part in layer.edge_rho.layers] == [
        (500, 464 * 2 + 500 * 2 + 351 + 500),
        (500, 500),
        (500, 500),
        (51, 500),
    ]


def test_word_tables_equal_their_vectors_written_out():
    # More and fewer nodes than classes: the table is folded into the weight, or not.
    for size in (2, 9):
        graph = random_graph([size], 1.0, False, seed=size)
        tables = make_layer(aggregation="feature")
        words = torch.cat([graph.x, tables.x_table[graph.x_class]], 1)
        pairs = torch.cat([graph.edge_attr, tables.edge_table[graph.edge_class]], 1)
        dense = GPILayer(5, 5, 4, 3, hidden=5, gate=True, aggregation="feature").double()
        dense.load_state_dict({name: value for name, value in tables.state_dict().items() if "table" not in name})
        torch.testing.assert_close(dense(words, graph.edge_index, pairs).edges, tables(graph).edges)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("x", lambda t: t[:, :2], r"x must be \(N, 4\), not \(3, 2\)"),
        ("edge_attr", lambda t: t[:, :1], r"edge_attr must be \(E, 3\), not \(6, 1\)"),
        ("edge_index", lambda t: t.T, r"edge_index must be \(2, E\), not \(6, 2\)"),
    ],
)
def test_a_wrong_width_is_named(name, change, message):
    given = {"x": torch.zeros(3, 4), "edge_index": complete_edges([3]), "edge_attr": torch.zeros(6, 3)}
    given[name] = change(given[name])
    with pytest.raises(ValueError, match=message):
        GPILayer(4, 3, 2, 2, hidden=5)(**given)


@pytest.mark.parametrize("chunk", [None, 4])
def test_second_derivatives(chunk):
    torch.manual_seed(0)
    smooth = {"phi": Dense((2, 2, 2), 3, "none"), "alpha": Dense((2, 3), 3, "none")}
    layer = GPILayer(2, 2, 2, 2, hidden=3, aggregation="feature", chunk_edges=chunk, **smooth).double()
    x, edges = torch.randn(3, 2, dtype=torch.double), torch.randn(6, 2, dtype=torch.double)

    def total(x, edges):
        out = layer(x, complete_edges([3]), edges)
        return (out.nodes**2).sum() + (out.edges**2).sum()

    assert torch.autograd.gradgradcheck(total, (x.requires_grad_(), edges.requires_grad_()), atol=1e-4)
