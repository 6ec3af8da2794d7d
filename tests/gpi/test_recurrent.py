"""Recurrent: the forget gate's equation, shared weights, every step's output, invariance."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpi.graphs import flat_graphs, random_graph
from scenegpi.gpi import GPILayer, Recurrent, assert_invariant, complete_edges, recurrent

FEEDBACK = st.sampled_from([recurrent.LOG_PROBABILITIES, torch.sigmoid])


def make(steps=2, feedback=recurrent.LOG_PROBABILITIES, **options):
    torch.manual_seed(0)
    tables = {"x_table": torch.randn(3, 2), "edge_table": torch.randn(2, 2)}
    layer = GPILayer(3 + 1, 2 + 1, 3, 2, hidden=5, aggregation="feature", gate=True, **tables, **options)
    return Recurrent(layer.double(), steps, feedback)


def call(model, x, edge_index, edge_attr, batch, **_):
    """The graph's features as logits and, for the static part, their first column."""
    return model(x, edge_index, edge_attr, batch, node_static=x[:, :1], edge_static=edge_attr[:, :1])


@settings(max_examples=20, deadline=None)
@given(graph=flat_graphs(), feedback=FEEDBACK)
def test_invariant(graph, feedback):
    model = make(feedback=feedback)
    assert_invariant(lambda **tensors: call(model, **tensors), graph, trials=2, tolerance=1e-8)


def test_steps_by_hand():
    graph = random_graph([4, 3], 1.0, False, seed=0)
    model = make(steps=3)
    out = call(model, **graph.tensors())
    nodes, edges = graph.x, graph.edge_attr
    for t in range(3):
        step = model.layer(
            torch.cat([nodes.log_softmax(1), graph.x[:, :1]], 1),
            graph.edge_index,
            torch.cat([edges.log_softmax(1), graph.edge_attr[:, :1]], 1),
            graph.batch,
            x_class=nodes.argmax(1),
            edge_class=edges.argmax(1),
        )
        nodes, edges = step.nodes + step.node_gate * nodes, step.edges + step.edge_gate * edges
        torch.testing.assert_close(out.nodes[t], nodes)
        torch.testing.assert_close(out.edges[t], edges)
    assert len(out.nodes) == len(out.edges) == 3
    torch.testing.assert_close(out.last.graph, step.graph)


@settings(max_examples=20, deadline=None)
@given(graph=flat_graphs(), feedback=FEEDBACK, rows=st.integers(1, 9))
def test_features_read_in_pieces_are_the_features(graph, feedback, rows):
    model = make(feedback=feedback)
    whole = call(model, **graph.tensors())
    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        patch.setattr(recurrent, "_ROWS", rows)
        pieces = call(model, **graph.tensors())
    torch.testing.assert_close(pieces.nodes, whole.nodes)
    torch.testing.assert_close(pieces.edges, whole.edges)


def test_a_loss_on_every_step_reaches_the_shared_weights():
    graph = random_graph([4, 3], 1.0, False, seed=0)
    model = make()
    one, two = (
        torch.autograd.grad(out.nodes[t].sum() + out.edges[t].sum(), model.layer.phi.weight)[0]
        for t, out in ((t, call(model, **graph.tensors())) for t in range(2))
    )
    assert one.abs().max() > 0
    assert not torch.allclose(one, two)


def test_edges_stay_as_they_are_without_edge_labels():
    layer = GPILayer(3, 2, 3, hidden=4, gate=True)
    edges = complete_edges([3])
    attr = torch.randn(6, 2)
    out = Recurrent(layer, 2, torch.nn.functional.normalize)(torch.randn(3, 3), edges, attr)
    assert torch.equal(out.edges[-1], attr)


def test_wrong_use_is_said_plainly():
    with pytest.raises(ValueError, match="gate=True"):
        Recurrent(GPILayer(3, 2, 3, hidden=4))
    with pytest.raises(ValueError, match="steps"):
        make(steps=0)
    with pytest.raises(ValueError, match="feedback must be a function of logits, not 'softmax'"):
        make(feedback="softmax")
