"""The default networks on edges, with every product of a node made once a node: what feeds the fused kernels."""

import torch
from torch import Tensor

from scenegpi.gpi.aggregate import Aggregation
from scenegpi.gpi.features import Features
from scenegpi.gpi.fused_aggregate import AggregateOptions, FusedAggregate
from scenegpi.gpi.fused_rho import FusedRho, RhoOptions
from scenegpi.gpi.networks import MLP, Dense
from scenegpi.gpi.plan import EdgePlan

__all__ = ["fused_edge_labels", "fused_neighbourhood"]


def fused_neighbourhood(
    phi: Dense, beta: Dense | None, kind: Aggregation, z: Features, edges: Features, plan: EdgePlan, recompute: bool
) -> Tensor:
    """s ``(N, h)`` for every kind but max; ``edges`` in the plan's order, z and s in the caller's."""
    w_i, w_edge, w_j = phi.columns()
    weight, table = edges.split(w_edge)
    p = plan.nodes_in(z.times(w_i) + phi.bias)
    inputs = [edges.dense, edges.classes, p, z.times(w_j), weight, table]
    if beta is None:
        inputs += [None] * 3
    else:
        _, w_edge, w_j = beta.columns()
        inputs += [z.times(w_j), *edges.split(w_edge)]
    options = AggregateOptions(phi.activation == "relu", kind == "mean", recompute)
    return plan.nodes_out(FusedAggregate.apply(plan, options, *inputs))


def fused_edge_labels(
    rho: MLP,
    gate: Dense | None,
    z: Features,
    s: Tensor | None,
    g: Tensor,
    batch: Tensor,
    edges: Features,
    plan: EdgePlan,
    recompute: bool,
) -> tuple[Tensor, Tensor | None]:
    """Edge labels ``(E, out)`` and the gate before its sigmoid ``(E, 1)``; ``edges`` and both in the plan's order."""
    first, *rest = [layer for layer in rho.layers if isinstance(layer, Dense)]
    inputs = [edges.dense, edges.classes, *_rho_affine(first, z, s, g, batch, edges, plan)]
    inputs += [None] * 4 if gate is None else _rho_affine(gate, z, s, g, batch, edges, plan)
    inputs += [tensor for layer in rest for tensor in (layer.weight, layer.bias)]
    dropout = rho.dropout if rho.training else 0.0
    seed = int(torch.randint(2**62, ())) if dropout else 0
    labels, gates = FusedRho.apply(plan, RhoOptions(dropout, seed, recompute), *inputs)
    return labels, None if gate is None else gates


def _rho_affine(
    dense: Dense, z: Features, s: Tensor | None, g: Tensor, batch: Tensor, edges: Features, plan: EdgePlan
) -> list[Tensor | None]:
    # Both nodes of an edge are in one graph: g's product joins the part of node i.
    w_i, w_j, *w_s, w_edge, w_g = dense.columns()
    graph = torch.nn.functional.linear(g, w_g, dense.bias)
    p, q = z.times(w_i) + graph.index_select(0, batch), z.times(w_j)
    if s is not None:
        p, q = p + s @ w_s[0].t(), q + s @ w_s[1].t()
    return [plan.nodes_in(p), q, *edges.split(w_edge)]
