r"""A network on edges, its products of nodes made once per node.

For the default networks the first affine map is cut by the parts of its input,

.. math:: W [z_i, z_{ij}, z_j] + b = p_i + q_j + W_{ij} z_{ij}, \qquad p_i = W_i z_i + b, \quad q_j = W_j z_j,

so that an edge costs two look-ups and the product of its own features. Any other module reads the concatenation.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from scenegpi.gpi.features import TableFeatures
from scenegpi.gpi.networks import MLP, Dense

__all__ = ["EdgeFunction", "Part", "on_edges"]

Part = tuple[Literal["i", "j", "edge"], TableFeatures]
"""One part of what a network reads: rows ``(N, d)`` of node i or j, or the rows ``(E, e)`` of the edges."""

EdgeFunction = Callable[[Tensor, Tensor, TableFeatures], Tensor]
"""i ``(m,)``, j ``(m,)`` and the features of m edges -> ``(m, width)``."""


def on_edges(network: nn.Module, parts: Sequence[Part], i_cancels: bool = False) -> EdgeFunction:
    """The network as a function of edges; ``i_cancels``: what it adds for node i alone has no effect."""
    if type(network) is Dense or type(network) is MLP:
        return _split(network, parts, i_cancels)

    def concatenated(i: Tensor, j: Tensor, edges: TableFeatures) -> Tensor:
        ends = {"i": i, "j": j}
        read = [edges.full() if end == "edge" else rows.full().index_select(0, ends[end]) for end, rows in parts]
        out: Tensor = network(torch.cat(read, 1))
        return out

    return concatenated


def _split(network: Dense | MLP, parts: Sequence[Part], i_cancels: bool) -> EdgeFunction:
    first = network.first
    bias: Tensor | None = first.bias
    products: dict[str, Tensor] = {}
    for (end, rows), weight in zip(parts, first.columns(), strict=True):
        if end == "edge":
            edge_weight, table = rows.fold(weight)
        elif not (end == "i" and i_cancels and first.activation == "none"):
            product = rows.times(weight, bias)
            products[end] = products[end] + product if end in products else product
            bias = None
    p, q = products.get("i"), products["j"]

    def split(i: Tensor, j: Tensor, edges: TableFeatures) -> Tensor:
        # In place: fresh memory is the larger part of the cost. Types are those that autocast gave the products.
        out = q.index_select(0, j)
        if p is not None:
            out += p.index_select(0, i)
        if table is not None and edges.classes is not None:
            out += table.index_select(0, edges.classes)
        out.addmm_(edges.dense.to(out.dtype), edge_weight.t().to(out.dtype))
        return network.tail(out)

    return split
