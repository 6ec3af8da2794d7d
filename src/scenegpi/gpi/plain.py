"""Any networks on edges: their inputs written out side by side, whole or in checkpointed chunks of edges.

This is the form for networks that a user brings, for attention that is to be looked at, and for torch.compile and
export.
"""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from scenegpi.gpi.aggregate import Aggregation, aggregate
from scenegpi.gpi.plan import EdgePlan

__all__ = ["plain_edge_labels", "plain_neighbourhood"]


def plain_neighbourhood(
    phi: nn.Module,
    beta: nn.Module | None,
    kind: Aggregation,
    z: Tensor,
    z_edge: Tensor,
    i: Tensor,
    j: Tensor,
    plan: EdgePlan | None,
) -> tuple[Tensor, Tensor | None]:
    """z ``(N, d)``, z_edge ``(E, e)``, i and j ``(E,)`` -> s ``(N, h)`` and the weights ``(E, k)``.

    With a plan, chunk by chunk and made again in the backward pass.
    """

    def part(
        z: Tensor, z_edge: Tensor, i: Tensor, j: Tensor, index: Tensor, count: int
    ) -> tuple[Tensor, Tensor | None]:
        pair = torch.cat([z.index_select(0, i), z_edge, z.index_select(0, j)], 1)
        return aggregate(kind, phi(pair), None if beta is None else beta(pair), index, count)

    if plan is None or not plan.chunks:
        return part(z, z_edge, i, j, i, z.shape[0])
    sums, weights, nodes = [], [], []
    for edges in plan.edge_numbers():
        here, index = torch.unique_consecutive(i[edges], return_inverse=True)
        s, w = checkpoint(part, z, z_edge[edges], i[edges], j[edges], index, len(here), use_reentrant=False)
        sums.append(s)
        weights.append(w)
        nodes.append(here)
    s = torch.cat(sums)
    s = s.new_zeros(z.shape[0], s.shape[1]).index_copy(0, torch.cat(nodes), s)
    return s, None if weights[0] is None else plan.edges_out(torch.cat(weights))


def plain_edge_labels(
    networks: list[nn.Module],
    z: Tensor,
    s: Tensor | None,
    context: Tensor,
    z_edge: Tensor,
    i: Tensor,
    j: Tensor,
    plan: EdgePlan | None,
) -> list[Tensor]:
    """Each network on ``[z_i, z_j, s_i, s_j, z_ij, g]`` (without s if None): a list of ``(E, width)``.

    context ``(N, w)`` is g, repeated for every node.
    """

    def part(z_edge: Tensor, i: Tensor, j: Tensor) -> list[Tensor]:
        ends = [rows.index_select(0, end) for rows in (z, s) if rows is not None for end in (i, j)]
        inputs = torch.cat([*ends, z_edge, context.index_select(0, i)], 1)
        return [network(inputs) for network in networks]

    if plan is None or not plan.chunks:
        return part(z_edge, i, j)
    pieces = [checkpoint(part, z_edge[at], i[at], j[at], use_reentrant=False) for at in plan.edge_numbers()]
    return [plan.edges_out(torch.cat(piece)) for piece in zip(*pieces, strict=True)]
