"""The appendix: attention is Theorem 1 with phi extended by one entry, which alpha divides by.

phi = [e^beta z_ij, e^beta], s_i = sum_j phi, alpha = s_i[1:e] / s_i[e+1]  =  sum_j w_ij z_ij.
"""

import torch
from hypothesis import given, settings

from gpi.graphs import flat_graphs
from scenegpi.gpi import GPILayer
from scenegpi.gpi.segments import aggregate


class ExtendedPhi(torch.nn.Module):
    """[e^beta value, e^beta] from the same value and score networks."""

    def __init__(self, value: torch.nn.Module, beta: torch.nn.Module) -> None:
        super().__init__()
        self.value, self.beta = value, beta

    def forward(self, pair):
        power = self.beta(pair).exp()
        return torch.cat([power * self.value(pair), power], 1)


class DividingAlpha(torch.nn.Module):
    """s[:width] / s[width:], zero for an isolated node; reads [z_i, s_i] with a 3-d z_i."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width

    def forward(self, near):
        _, weighted, total = near.tensor_split([3, 3 + self.width], 1)
        return torch.where(total > 0, weighted / total.clamp_min(1e-300), 0.0)


def sum_form(attention: GPILayer, scores: int) -> GPILayer:
    """The same function with plain sums only, built from the attention layer's own networks."""
    width = 4
    return GPILayer(
        3,
        2,
        width,
        phi=ExtendedPhi(attention.phi, attention.beta),
        phi_dim=width + scores,
        alpha=DividingAlpha(width),
        alpha_dim=width,
        rho=torch.nn.Identity(),
        strict=True,
    )


def check(graph, kind, scores):
    torch.manual_seed(0)
    attention = GPILayer(3, 2, 1, hidden=4, aggregation=kind).double()
    arguments = (graph.x, graph.edge_index, graph.edge_attr, graph.batch)
    s = attention(*arguments).neighbourhood
    expected, _ = aggregate("sum", s, None, graph.batch, graph.num_graphs)
    # alpha's outputs, summed over the nodes: g of the sum form.
    torch.testing.assert_close(sum_form(attention, scores)(*arguments).graph, expected, atol=1e-9, rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(graph=flat_graphs())
def test_neighbour_attention_is_a_sum(graph):
    check(graph, "neighbour", 1)


@settings(max_examples=20, deadline=None)
@given(graph=flat_graphs())
def test_feature_attention_is_a_sum(graph):
    check(graph, "feature", 4)


@settings(max_examples=20, deadline=None)
@given(graph=flat_graphs(min_graphs=1))
def test_attention_over_nodes_is_a_sum(graph):
    # The same trick one level up: alpha = [e^gamma value, e^gamma], and rho divides.
    torch.manual_seed(0)
    layer = GPILayer(3, 2, 1, hidden=4, aggregation="sum", node_aggregation="feature").double()
    out = layer(graph.x, graph.edge_index, graph.edge_attr, graph.batch)
    near = torch.cat([graph.x, out.neighbourhood], 1)
    power = layer.gamma(near).exp()
    extended = torch.cat([power * layer.alpha(near), power], 1)
    total, _ = aggregate("sum", extended, None, graph.batch, graph.num_graphs)
    torch.testing.assert_close(total[:, :4] / total[:, 4:], out.graph)
