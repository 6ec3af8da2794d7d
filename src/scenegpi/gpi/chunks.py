"""How the edges of a batch are processed: all at once or, so that memory does not grow with their number, in chunks.

Chunks are whole neighbourhoods of edges sorted by the node i that aggregates them: each gives the sums of its own
nodes, which are concatenated. If gradients are needed, a chunk keeps nothing for the backward pass, which computes it
again.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from scenegpi.gpi.features import TableFeatures

# Values of this many edges stay in a CPU's cache; those of many more are written to fresh memory, several times slower.
_CACHE_EDGES = 2048
_DEVICE_EDGES = 1 << 16

_Chunk = tuple[Tensor, Tensor, TableFeatures, Tensor, int]
"""i ``(m,)``, j ``(m,)``, edge features, i counted from the chunk's first node, number of the chunk's nodes."""

_Function = Callable[..., list[Tensor]]
"""A chunk with its features -> at most two tensors, a row for each edge, or the first for each of its nodes."""


@dataclass(frozen=True)
class EdgeChunks:
    """E edges of N nodes; ``order (E,)`` is the caller's index of each edge, None if unchanged."""

    chunks: list[_Chunk]
    order: Tensor | None = None

    @classmethod
    def cut(cls, i: Tensor, j: Tensor, edges: TableFeatures, num_nodes: int, most: int | None) -> "EdgeChunks":
        """i, j ``(E,)`` -> chunks of at most ``most`` edges, but always whole neighbourhoods; None: one chunk.

        A traced program (torch.compile, export) processes all edges at once.
        """
        if most is None and not torch.is_grad_enabled():
            most = _CACHE_EDGES if i.device.type == "cpu" else _DEVICE_EDGES
        traced = torch.compiler.is_compiling() or torch.jit.is_tracing()
        if most is None or traced or i.shape[0] <= most:
            return cls([(i, j, edges, i, num_nodes)])
        order = None
        if bool((i[1:] < i[:-1]).any()):
            order = torch.argsort(i, stable=True)
            i, j, edges = i[order], j[order], edges.take(order)
        # ends[k]: number of edges of the first k nodes.
        ends = [0, *torch.bincount(i, minlength=num_nodes).cumsum(0).tolist()]
        cuts = [0]
        while cuts[-1] < num_nodes:
            cuts.append(max(bisect_right(ends, ends[cuts[-1]] + most) - 1, cuts[-1] + 1))
        sizes = [ends[b] - ends[a] for a, b in pairwise(cuts)]
        pieces = zip(i.split(sizes), j.split(sizes), edges.split(sizes), pairwise(cuts), strict=True)
        return cls([(i, j, z, i - a, b - a) for i, j, z, (a, b) in pieces], order)

    def run(self, part: _Function, nodes: bool = False) -> list[Tensor]:
        """``part(*chunk)`` of all chunks, concatenated, edges in caller order; ``nodes``: the first is of nodes."""
        if len(self.chunks) == 1:
            return _called(part, *self.chunks[0])
        if torch.is_grad_enabled():
            pieces = [checkpoint(_called, part, *chunk, use_reentrant=False) for chunk in self.chunks]
            whole = [torch.cat(rows) for rows in zip(*pieces, strict=True)]
        else:
            whole = self._filled(part, nodes)
        order = self.order
        if order is None:
            return whole
        kept = 1 if nodes else 0  # only edges were moved
        return whole[:kept] + [torch.empty_like(rows).index_copy_(0, order, rows) for rows in whole[kept:]]

    def _filled(self, part: _Function, nodes: bool) -> list[Tensor]:
        # Written in place as they come: collecting the pieces first would take twice the memory.
        edges = sum(chunk[0].shape[0] for chunk in self.chunks)
        total = [sum(chunk[-1] for chunk in self.chunks) if nodes else edges, edges]
        whole: list[Tensor] = []
        done = [0, 0]
        for chunk in self.chunks:
            pieces = _called(part, *chunk)
            if not whole:
                whole = [rows.new_empty(total[k], rows.shape[1]) for k, rows in enumerate(pieces)]
            for k, rows in enumerate(pieces):
                whole[k][done[k] : done[k] + len(rows)] = rows
                done[k] += len(rows)
        return whole


def _called(part: _Function, i: Tensor, j: Tensor, edges: TableFeatures, index: Tensor, count: int) -> list[Tensor]:
    return part(i, j, edges.made(), index, count)
