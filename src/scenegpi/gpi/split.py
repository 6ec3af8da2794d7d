r"""Networks on nodes and edges, split by the parts of their input: terms of one node are computed once per node.

The first affine map of a default network is a sum over the parts that it reads,

.. math:: W [z_i, z_{ij}, z_j] + b = p_i + q_j + W_{ij} z_{ij}, \qquad p_i = W_i z_i + b, \quad q_j = W_j z_j,

so that an edge costs two look-ups and the product of its own features, and nothing is concatenated. Any other module
reads the concatenation.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from scenegpi.gpi.features import TableFeatures
from scenegpi.gpi.networks import MLP, Dense

Part = tuple[Literal["i", "j", "edge"], TableFeatures]
"""One part of what a network reads: rows ``(N, d)`` of node i or j, or the rows ``(E, e)`` of the edges."""

EdgeFunction = Callable[[Tensor, Tensor, TableFeatures], Tensor]
"""i ``(m,)``, j ``(m,)`` and the features of m edges -> ``(m, width)``."""


def on_nodes(network: nn.Module, parts: Sequence[TableFeatures]) -> Tensor:
    """The network on parts ``(N, d)`` of each node: ``(N, width)``."""
    if type(network) is Dense or type(network) is MLP:
        columns = zip(parts, network.first.columns(), strict=True)
        return network.tail(_affine(list(columns), network.first.bias))
    out: Tensor = network(torch.cat([rows.full() for rows in parts], 1))
    return out


def on_edges(network: nn.Module, parts: Sequence[Part], i_cancels: bool = False) -> EdgeFunction:
    """The network as a function of edges; ``i_cancels``: terms of node i alone have no effect."""
    if type(network) is Dense or type(network) is MLP:
        return _split(network, parts, i_cancels and network.first.activation == "none")

    ends = [end for end, _ in parts]
    nodes = [None if end == "edge" else rows.full() for end, rows in parts]

    def concatenated(i: Tensor, j: Tensor, edges: TableFeatures) -> Tensor:
        where = [i if end == "i" else j for end in ends]
        read = [edges.full() if z is None else z.index_select(0, at) for z, at in zip(nodes, where, strict=True)]
        out: Tensor = network(torch.cat(read, 1))
        return out

    return concatenated


def _split(network: Dense | MLP, parts: Sequence[Part], without_i: bool) -> EdgeFunction:
    columns: dict[str, list[tuple[TableFeatures, Tensor]]] = {"i": [], "j": [], "edge": []}
    for (end, rows), weight in zip(parts, network.first.columns(), strict=True):
        columns[end].append((rows, weight))
    p = None if without_i else _affine(columns["i"])
    q = _affine(columns["j"], network.first.bias)
    ((rows, weight),) = columns["edge"]
    weight, table = rows.fold(weight)

    def split(i: Tensor, j: Tensor, edges: TableFeatures) -> Tensor:
        # In place: allocating memory is most of the cost.
        out = q.index_select(0, j)
        if p is not None:
            out += p.index_select(0, i)
        return network.tail(edges.add_to(out, weight, table))

    return split


def _affine(columns: Sequence[tuple[TableFeatures, Tensor]], bias: Tensor | None = None) -> Tensor:
    (first, weight), *others = columns
    out = first.times(weight, bias)
    for rows, weight in others:
        rows.add_to(out, *rows.fold(weight))
    return out
