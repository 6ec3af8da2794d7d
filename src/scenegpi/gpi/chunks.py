"""How the edges of a batch are walked: all at once or, so that memory does not grow with their number, in chunks.

Chunks are whole neighbourhoods of edges sorted by the node i that aggregates them: each gives the sums of its own
nodes, and those of all nodes are the chunks' in a row. Where gradients are wanted a chunk keeps nothing for the
backward pass, which computes it again.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from scenegpi.gpi.features import TableFeatures

__all__ = ["EdgeChunks"]

_Chunk = tuple[Tensor, Tensor, TableFeatures, Tensor, int]
"""i ``(m,)``, j ``(m,)``, edge features, i counted from the chunk's first node, number of the chunk's nodes."""

_Function = Callable[..., tuple[Tensor, Tensor | None]]
"""A chunk -> two tensors, the second perhaps None, of one row for each edge (or the first for each node)."""


@dataclass(frozen=True)
class EdgeChunks:
    """E edges of N nodes; ``order (E,)`` says which edge of the caller stands where, None if none moved."""

    chunks: list[_Chunk]
    order: Tensor | None = None

    @classmethod
    def cut(cls, i: Tensor, j: Tensor, edges: TableFeatures, num_nodes: int, most: int | None) -> "EdgeChunks":
        """i, j ``(E,)`` -> chunks of at most ``most`` edges, but always whole neighbourhoods; None: one chunk.

        A program that is traced (torch.compile, export) walks all edges at once.
        """
        if most is None or torch.compiler.is_compiling() or i.shape[0] <= most:
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

    def run(self, part: _Function, nodes: bool = False) -> tuple[Tensor, Tensor | None]:
        """``part(*chunk)`` of all chunks in a row, edges in the caller's order; ``nodes``: the first is of nodes."""
        if len(self.chunks) == 1:
            return part(*self.chunks[0])
        first, second = self._checkpointed(part) if torch.is_grad_enabled() else self._filled(part, nodes)
        first = first if nodes else self._in_callers_order(first)
        return first, None if second is None else self._in_callers_order(second)

    def _checkpointed(self, part: _Function) -> tuple[Tensor, Tensor | None]:
        first, second = zip(*(checkpoint(part, *chunk, use_reentrant=False) for chunk in self.chunks), strict=True)
        return torch.cat(first), None if second[0] is None else torch.cat(second)

    def _filled(self, part: _Function, nodes: bool) -> tuple[Tensor, Tensor | None]:
        # Written into their place as they come: pieces that wait for each other would be twice the memory.
        edges = sum(chunk[0].shape[0] for chunk in self.chunks)
        rows = (sum(chunk[-1] for chunk in self.chunks) if nodes else edges, edges)
        whole: dict[int, Tensor] = {}
        done = [0, 0]
        for chunk in self.chunks:
            for k, piece in enumerate(part(*chunk)):
                if piece is not None:
                    into = whole.setdefault(k, piece.new_empty(rows[k], piece.shape[1]) if k not in whole else piece)
                    into[done[k] : done[k] + len(piece)] = piece
                    done[k] += len(piece)
        return whole[0], whole.get(1)

    def _in_callers_order(self, values: Tensor) -> Tensor:
        if self.order is None:
            return values
        return torch.empty_like(values).index_copy_(0, self.order, values)
