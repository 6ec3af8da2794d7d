r"""The proof of necessity, as running code: any GPI function is of the form of Theorem 1.

Given a black box F that maps an n x n matrix of pairwise features to n labels, and a hash H that gives every node its
own one of L buckets,

.. math::
    \phi(z_i, z_{ij}, z_j) = \mathbb{1}[H(z_j)] \, z_{ij}^\top, \qquad
    \alpha(z_i, s_i) = \mathbb{1}[H(z_i)] \, s_i^\top, \qquad
    \rho(z_k, M) = [F(M)]_{H(z_k)}

:math:`M = \sum_i \alpha(z_i, s_i)` holds every edge feature in row H(z_i), column H(z_j): the graph itself, its nodes
listed by bucket. Rows and columns of empty buckets are discarded, F labels what is left, and because F is invariant
the label in row H(z_k) is the label of k. On a black box that is not invariant, and only there, the labels come out
wrong.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from scenegpi.gpi.segments import segment_sum

BlackBox = Callable[[Tensor, Tensor, Tensor], Tensor]
"""nodes ``(n, d)``, pairs ``(n, n, e)``, edges ``(n, n)`` bool -> labels ``(n, ...)``, of one graph."""


class HashConstruction:
    """phi, alpha and rho built from a black box; called like a layer, it gives back the black box's labels.

    The proof augments pairwise features by the singletons: phi stores :math:`[1, z_{ij}]` (the one marks an edge, so
    that incomplete graphs and zero features are kept apart), alpha adds :math:`[1, z_i]` for the nodes. ``hash(z,
    L)`` maps node features ``(N, d)``, each row by itself, to buckets ``(N,)`` below L. It must be perfect, no two
    nodes of a graph in one bucket; without ``buckets`` the smallest L is taken for which it is. Nodes with equal
    features can't be told apart.
    """

    def __init__(
        self, black_box: BlackBox, buckets: int | None = None, hash: Callable[[Tensor, int], Tensor] | None = None
    ) -> None:
        self.black_box, self.buckets, self.hash = black_box, buckets, hash or feature_hash

    def __call__(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None, batch: Tensor | None = None
    ) -> Tensor:
        """x ``(N, d)``, edge_index ``(2, E)`` from j to i, edge_attr ``(E, e)``, batch ``(N,)`` -> ``(N, ...)``."""
        j, i = edge_index
        z_edge = x.new_zeros(edge_index.shape[1], 0) if edge_attr is None else edge_attr
        graph = torch.zeros(x.shape[0], dtype=torch.long) if batch is None else batch
        count = int(graph.max()) + 1 if graph.numel() else 0
        if not count:
            return x.new_zeros(0)
        bucket, size = self._perfect(x, graph)

        s = segment_sum(self.phi(z_edge, bucket[j], size), i, x.shape[0])
        m = segment_sum(self.alpha(x, s, bucket, size), graph, count)
        return torch.cat([self.rho(m[k], bucket[graph == k], x.shape[1]) for k in range(count)])

    def phi(self, z_edge: Tensor, bucket_j: Tensor, size: int) -> Tensor:
        """Stores ``[1, z_ij]`` in bucket H(z_j): ``(E, L, 1 + e)``."""
        stored = torch.cat([z_edge.new_ones(len(z_edge), 1), z_edge], 1)
        return one_hot(bucket_j, size).unsqueeze(2) * stored.unsqueeze(1)

    def alpha(self, z: Tensor, s: Tensor, bucket: Tensor, size: int) -> Tensor:
        """Row H(z_i) holds ``s_i`` and, beside it, ``[1, z_i]``: ``(N, L, L (1 + e) + 1 + d)``."""
        row = torch.cat([s.flatten(1), z.new_ones(len(z), 1), z], 1)
        return one_hot(bucket, size).unsqueeze(2) * row.unsqueeze(1)

    def rho(self, m: Tensor, buckets: Tensor, node_dim: int) -> Tensor:
        """M ``(L, ...)`` of one graph -> the black box on its occupied buckets, read off at the rows of ``buckets``."""
        pairs, mark, nodes = m.split([m.shape[1] - 1 - node_dim, 1, node_dim], 1)
        used = mark.squeeze(1).nonzero().squeeze(1)
        pairs = pairs.unflatten(1, (m.shape[0], -1))[used][:, used]
        labels = self.black_box(nodes[used], pairs[..., 1:], pairs[..., 0] > 0)
        return labels[torch.searchsorted(used, buckets)]

    def _perfect(self, z: Tensor, graph: Tensor) -> tuple[Tensor, int]:
        if len(torch.unique(torch.cat([graph.unsqueeze(1).to(z.dtype), z], 1), dim=0)) < len(z):
            raise ValueError("two nodes of a graph have equal features: no hash can tell them apart")
        largest = int(torch.bincount(graph).max())
        sizes = range(largest, 64 * largest**2 + 2) if self.buckets is None else [self.buckets]
        for size in sizes:
            bucket = self.hash(z, size)
            if len(torch.unique(graph * size + bucket)) == len(z):
                return bucket, size
        raise ValueError(f"the hash is not perfect with {sizes[-1]} buckets: two nodes of a graph share one")


def feature_hash(z: Tensor, buckets: int) -> Tensor:
    """Hashes only the bits of every row of z ``(n, d)`` to a bucket ``(n,)`` below ``buckets``."""
    # Adding zero turns -0.0 into 0.0: equal numbers must hash equally.
    bits = (z.detach().double() + 0.0).contiguous().view(torch.int64)
    code = torch.zeros(z.shape[0], dtype=torch.int64, device=z.device)
    for column in bits.unbind(1):
        code = (code ^ column) * 0x2545F4914F6CDD1D
        code = code ^ ((code >> 29) & 0x7FFFFFFFF)
    return code.remainder(buckets)


def dense_graph(x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """One flat graph as a black box reads it: nodes ``(n, d)``, pairs ``(n, n, e)``, edges ``(n, n)``, in [i, j]."""
    j, i = edge_index
    z_edge = x.new_zeros(edge_index.shape[1], 0) if edge_attr is None else edge_attr
    pairs = z_edge.new_zeros(len(x), len(x), z_edge.shape[1])
    edges = torch.zeros(len(x), len(x), dtype=torch.bool)
    pairs[i, j], edges[i, j] = z_edge, True
    return x, pairs, edges


def apply_black_box(
    black_box: BlackBox, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None, batch: Tensor | None = None
) -> Tensor:
    """The black box on every graph of a flat batch, directly: what :class:`HashConstruction` must give."""
    graph = torch.zeros(len(x), dtype=torch.long) if batch is None else batch
    labels = []
    for k in range(int(graph.max()) + 1 if graph.numel() else 0):
        inside, first = graph[edge_index[0]] == k, int((graph < k).sum())
        attr = None if edge_attr is None else edge_attr[inside]
        labels.append(black_box(*dense_graph(x[graph == k], edge_index[:, inside] - first, attr)))
    return torch.cat(labels) if labels else x.new_zeros(0)


def shortest_paths(nodes: Tensor, pairs: Tensor, edges: Tensor) -> Tensor:
    """A black box to try the proof on: the length ``(n,)`` of the shortest path to each node from a marked one.

    A node is marked by a first feature above zero; the first pair feature is the length of an edge, at least zero.
    Unreachable: infinity.
    """
    if bool((pairs[..., 0][edges] < 0).any()):
        raise ValueError("an edge has a negative length")
    length = torch.where(edges, pairs[..., 0], torch.inf)
    length = length.masked_fill(torch.eye(len(nodes), dtype=torch.bool, device=nodes.device), 0)
    for k in range(len(nodes)):
        length = torch.minimum(length, length[:, k : k + 1] + length[k : k + 1])
    marked = nodes[:, 0] > 0
    return torch.where(marked, length, torch.inf).amin(1)
