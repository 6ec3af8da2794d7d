r"""The task: random graphs whose nodes are in one of K sets, labelled with the number of neighbours in the same set.

.. math:: y_i = \sum_{j \in N(i)} \mathbb{1}[\Gamma(i) = \Gamma(j)]

:math:`\Gamma(i)` is uniform over the K sets; every pair is an edge with probability p, independently. The input
is the complete graph: :math:`z_i` is one-hot of :math:`\Gamma(i)`, :math:`z_{ij} = 1` where there is an edge, else 0.
"""

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Graphs:
    """B graphs of n nodes: ``sets (B, n)`` in 0..K-1, ``adjacency (B, n, n)`` symmetric bool, ``labels (B, n)``."""

    sets: Tensor
    adjacency: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return self.sets.shape[0]

    @property
    def nodes(self) -> int:
        return self.sets.shape[1]

    def __getitem__(self, which: Tensor | slice) -> "Graphs":
        return Graphs(self.sets[which], self.adjacency[which], self.labels[which])

    def relabel(self, order: Tensor) -> "Graphs":
        """Node k of every graph becomes old node ``order[k]``; order ``(n,)`` is a permutation."""
        return Graphs(self.sets[:, order], self.adjacency[:, order][:, :, order], self.labels[:, order])

    def node_features(self, num_sets: int, dtype: torch.dtype) -> Tensor:
        """z_i ``(B, n, K)``: one-hot of the node's set."""
        return torch.nn.functional.one_hot(self.sets, num_sets).to(dtype)

    def pair_features(self, dtype: torch.dtype) -> Tensor:
        """z_ij ``(B, n, n - 1)``: row i has its partners j != i in ascending order."""
        n = self.nodes
        off_diagonal = ~torch.eye(n, dtype=torch.bool)
        return self.adjacency[:, off_diagonal].view(len(self), n, n - 1).to(dtype)


@dataclass(frozen=True)
class Task:
    """The distribution of graphs: n ``nodes``, K ``sets``, edges with ``edge_probability``."""

    nodes: int = 10
    sets: int = 5
    edge_probability: float = 0.5

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.sets < 1 or not 0 <= self.edge_probability <= 1:
            raise ValueError(f"needs nodes >= 1, sets >= 1 and a probability in [0, 1], not {self}")

    def sample(self, count: int, seed: int) -> Graphs:
        """``count`` graphs; the same seed gives the same graphs."""
        generator = torch.Generator().manual_seed(seed)
        sets = torch.randint(self.sets, (count, self.nodes), generator=generator)
        draws = torch.rand(count, self.nodes, self.nodes, generator=generator)
        upper = torch.triu(draws < self.edge_probability, diagonal=1)
        adjacency = upper | upper.transpose(1, 2)
        same_set = sets[:, :, None] == sets[:, None, :]
        return Graphs(sets, adjacency, (adjacency & same_set).sum(2))


def stream_seed(purpose: str, seed: int) -> int:
    """Random seeds that differ for every (purpose, seed): test graphs are never training graphs."""
    return int.from_bytes(hashlib.sha256(f"{purpose}/{seed}".encode()).digest()[:7], "big")


def best_order_blind_accuracy(graphs: Graphs) -> float:
    r"""The maximum that any :math:`\rho(z_k, g)` can reach: one label for all nodes of a graph with the same z_k.

    Theorem 1 takes the z_k of a graph to be distinct. Here nodes of one set have the same z_k, so a network that reads
    only z_k and g gives them one label; the best it can do is the commonest label of each set of each graph.
    """
    num_sets, num_labels = int(graphs.sets.max()) + 1, graphs.nodes
    votes = torch.zeros(len(graphs), num_sets * num_labels, dtype=torch.long)
    votes.scatter_add_(1, graphs.sets * num_labels + graphs.labels, torch.ones_like(graphs.labels))
    return float(votes.view(len(graphs), num_sets, num_labels).amax(2).sum() / graphs.labels.numel())
