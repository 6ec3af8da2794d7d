"""How the edges of a batch are walked: in cache-sized chunks of whole neighbourhoods, each a regular block.

Edges sorted by the node i that aggregates them make neighbourhoods contiguous. Consecutive nodes of one degree c form
a *run*: its edges reshape to ``(nodes, c, h)``, so that a sum over neighbours is a sum over a dimension, with no
scatter and no padding. In a batch of complete graphs every graph is one run (graphs of one size in a row, one run
together). Any other graph gets long runs by listing its nodes by degree.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Chunk", "EdgePlan", "Run"]

# Below this many edges a run, listing the nodes by degree is cheaper than many small kernels.
_SHORT_RUN = 16


@dataclass(frozen=True)
class Run:
    """Nodes ``first .. first + count`` of one degree; their edges start at ``start`` within the chunk."""

    start: int
    first: int
    count: int
    degree: int

    def edges(self, values: Tensor) -> Tensor:
        """This run of chunk values ``(m, h)`` as ``(count, degree, h)``."""
        stop = self.start + self.count * self.degree
        return values[self.start : stop].view(self.count, self.degree, values.shape[1])

    def nodes(self, rows: Tensor) -> Tensor:
        """This run of node rows ``(N, h)`` as ``(count, h)``."""
        return rows[self.first : self.first + self.count]


@dataclass(frozen=True)
class Chunk:
    """Edges ``start .. stop`` (in the plan's order), whole neighbourhoods, cut into runs."""

    start: int
    stop: int
    runs: tuple[Run, ...]

    def of(self, values: Tensor) -> Tensor:
        """The chunk's part of values ``(E, ...)``."""
        return values[self.start : self.stop]


@dataclass(frozen=True)
class EdgePlan:
    """The order of walking E edges of N nodes.

    ``j (E,)`` neighbour of each edge in the plan's order; ``edge_order (E,)`` and ``node_order (N,)`` say which edge
    and node of the caller stands where, None if nothing moved; ``degree (N,)`` in the plan's order.
    """

    j: Tensor
    degree: Tensor
    edge_order: Tensor | None
    node_order: Tensor | None
    chunks: tuple[Chunk, ...]

    @classmethod
    def build(cls, i: Tensor, j: Tensor, num_nodes: int, chunk_edges: int) -> "EdgePlan":
        """i, j ``(E,)`` -> a plan with chunks of at most ``chunk_edges`` edges, but always whole neighbourhoods."""
        degree = torch.bincount(i, minlength=num_nodes)
        node_order = edge_order = None
        is_sorted = bool((i[1:] >= i[:-1]).all())
        changes = int((degree[1:] != degree[:-1]).sum()) + 1
        if not is_sorted or changes * _SHORT_RUN > i.numel():
            node_order = torch.argsort(degree, stable=True)
            place = torch.empty_like(node_order)
            place[node_order] = torch.arange(num_nodes, device=i.device)
            edge_order = torch.argsort(place[i], stable=True)
            degree, j = degree[node_order], j[edge_order]
        return cls(j, degree, edge_order, node_order, tuple(_cut(degree, chunk_edges)))

    @property
    def longest(self) -> int:
        """Edges of the longest chunk: the size of the scratch memory."""
        return max((chunk.stop - chunk.start for chunk in self.chunks), default=0)

    def edge_numbers(self) -> Iterator[Tensor]:
        """For each chunk, the caller's numbers of its edges ``(m,)``."""
        for chunk in self.chunks:
            if self.edge_order is None:
                yield torch.arange(chunk.start, chunk.stop, device=self.j.device)
            else:
                yield chunk.of(self.edge_order)

    def edges_in(self, values: Tensor) -> Tensor:
        """The caller's edge values ``(E, ...)`` in the plan's order."""
        return values if self.edge_order is None else values.index_select(0, self.edge_order)

    def edges_out(self, values: Tensor) -> Tensor:
        """Back to the caller's order of edges."""
        return values if self.edge_order is None else _scatter(values, self.edge_order)

    def nodes_in(self, rows: Tensor) -> Tensor:
        """The caller's node rows ``(N, ...)`` in the plan's order."""
        return rows if self.node_order is None else rows.index_select(0, self.node_order)

    def nodes_out(self, rows: Tensor) -> Tensor:
        """Back to the caller's order of nodes."""
        return rows if self.node_order is None else _scatter(rows, self.node_order)


def _scatter(values: Tensor, order: Tensor) -> Tensor:
    return torch.empty_like(values).index_copy_(0, order, values)


def _cut(degree: Tensor, limit: int) -> Iterator[Chunk]:
    # Runs of equal degree first (few), then each run into pieces that fit: no loop over nodes.
    values, counts = torch.unique_consecutive(degree, return_counts=True)
    runs: list[Run] = []
    first = start = used = 0
    for width, count in zip(values.tolist(), counts.tolist(), strict=True):
        stop = first + count
        while width and first < stop:
            room = (limit - used) // width
            if room < 1 and used:
                yield Chunk(start, start + used, tuple(runs))
                start, used, runs = start + used, 0, []
                continue
            size = min(stop - first, max(room, 1))
            runs.append(Run(used, first, size, width))
            first, used = first + size, used + size * width
        first = stop
    if used:
        yield Chunk(start, start + used, tuple(runs))
