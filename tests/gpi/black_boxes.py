r"""Small labelling algorithms to put into the proof of Theorem 1, each a black box of one graph.

All read nodes ``(n, d)``, pairs ``(n, n, e)`` (row i, column j: the edge from j to i) and edges ``(n, n)`` bool.
Inference reads nodes as scores :math:`\theta_i(y_i)`, ``d = K``, and pairs as tables :math:`\theta_{ij}(y_i, y_j)`,
``e = K K``:

.. math:: p(y) \propto \exp\Big( \sum_i \theta_i(y_i) + \sum_{(i,j) \in E} \theta_{ij}(y_i, y_j) \Big)
"""

from itertools import product

import torch
from torch import Tensor

__all__ = [
    "belief_propagation",
    "exact_marginals",
    "greedy_colouring",
    "log_partition",
    "mean_field",
    "same_set_neighbours",
]


def exact_marginals(nodes: Tensor, pairs: Tensor, edges: Tensor) -> Tensor:
    """p(y_i = a) ``(n, K)`` by enumeration of all K^n labellings."""
    labels, scores = _enumerate(nodes, pairs, edges)
    weights = torch.softmax(scores, 0)
    return torch.einsum("s,snk->nk", weights, torch.nn.functional.one_hot(labels, nodes.shape[1]).to(nodes.dtype))


def log_partition(nodes: Tensor, pairs: Tensor, edges: Tensor) -> Tensor:
    """log Z, a scalar, by enumeration of all K^n labellings."""
    return torch.logsumexp(_enumerate(nodes, pairs, edges)[1], 0)


def belief_propagation(nodes: Tensor, pairs: Tensor, edges: Tensor, iterations: int = 30) -> Tensor:
    r"""Sum-product beliefs ``(n, K)``: exact on forests after as many iterations as the longest path has edges.

    .. math:: m_{j \to i}(a) \propto \sum_b e^{\theta_j(b) + \psi_{ij}(a, b)} \prod_{t \neq i} m_{t \to j}(b)

    All messages are updated at once: an order of updates would not be invariant.
    """
    psi, linked = _joint(pairs, edges, nodes.shape[1])
    message = nodes.new_zeros(*linked.shape, nodes.shape[1])  # log m_{j -> i} in row i, column j
    for _ in range(iterations):
        belief = nodes + message.sum(1)
        cavity = belief.unsqueeze(0) - message.transpose(0, 1)  # row i, column j: all that j knows but from i
        message = torch.logsumexp(psi + cavity.unsqueeze(2), 3)
        message = torch.log_softmax(message, 2) * linked.unsqueeze(2)
    return torch.softmax(nodes + message.sum(1), 1)


def mean_field(nodes: Tensor, pairs: Tensor, edges: Tensor, iterations: int = 50, damping: float = 0.5) -> Tensor:
    r"""The factored distribution nearest to p ``(n, K)``, by damped parallel updates.

    .. math:: \log q_i(a) = \theta_i(a) + \sum_{j \in N(i)} \sum_b \psi_{ij}(a, b) \, q_j(b) + \text{const}
    """
    psi, _ = _joint(pairs, edges, nodes.shape[1])
    log_q = torch.log_softmax(nodes, 1)
    for _ in range(iterations):
        update = torch.log_softmax(nodes + torch.einsum("ijab,jb->ia", psi, log_q.exp()), 1)
        log_q = torch.log_softmax(damping * log_q + (1 - damping) * update, 1)
    return log_q.exp()


def same_set_neighbours(nodes: Tensor, pairs: Tensor, edges: Tensor, sets: int) -> Tensor:
    """The paper's synthetic task: how many neighbours ``(n,)`` are in the node's own set.

    The first ``sets`` node features are the set, one-hot; what follows identifies the node.
    """
    member = nodes[:, :sets]
    return ((member @ member.T) * edges).sum(1)


def greedy_colouring(nodes: Tensor, pairs: Tensor, edges: Tensor) -> Tensor:
    """For each node in turn the smallest colour ``(n,)`` that no neighbour has: depends on the order, NOT invariant."""
    linked = edges | edges.T
    colour = torch.full((len(nodes),), -1)
    for k in range(len(nodes)):
        taken = set(colour[linked[k]].tolist())
        colour[k] = next(c for c in range(len(nodes)) if c not in taken)
    return colour


def _joint(pairs: Tensor, edges: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    # Both directions of an edge score the same two labels: psi_ij(a, b) = theta_ij(a, b) + theta_ji(b, a).
    theta = torch.where(edges.unsqueeze(2), pairs, 0).unflatten(2, (classes, classes))
    return theta + theta.permute(1, 0, 3, 2), edges | edges.T


def _enumerate(nodes: Tensor, pairs: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    n, classes = nodes.shape
    psi, _ = _joint(pairs, edges, classes)
    labels = torch.tensor(list(product(range(classes), repeat=n)), device=nodes.device).reshape(-1, n)
    chosen = torch.nn.functional.one_hot(labels, classes).to(nodes.dtype)
    score = torch.einsum("snk,nk->s", chosen, nodes)
    return labels, score + torch.einsum("sia,ijab,sjb->s", chosen, psi, chosen) / 2
