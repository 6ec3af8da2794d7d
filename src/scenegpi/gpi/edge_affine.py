r"""An affine map of an edge's parts, computed without ever writing the parts side by side.

.. math:: y_{ij} = p_i + q_j + T_{c(ij)} + W z_{ij}

:math:`p_i, q_j` are the products of the node parts, made once a node; :math:`T` is a word table already multiplied by
its weight. Values are produced, and gradients accumulated, one chunk of edges at a time, into memory given by the
caller.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from scenegpi.gpi.plan import Chunk, EdgePlan

__all__ = ["EdgeAffine", "EdgeInput"]


@dataclass
class EdgeInput:
    """What all maps of one call read: edge features ``(E, e)`` and classes ``(E,)``, in the plan's order.

    ``grad (E, e)`` collects the gradient of the features where it is wanted; the first map to reach a chunk
    overwrites.
    """

    plan: EdgePlan
    features: Tensor
    classes: Tensor | None
    grad: Tensor | None = None


@dataclass
class EdgeAffine:
    """p ``(N, h)`` in the plan's order or None, q ``(N, h)``, weight ``(h, e)``, table ``(C, h)`` or None."""

    p: Tensor | None
    q: Tensor
    weight: Tensor
    table: Tensor | None
    grads: list[Tensor | None] = field(default_factory=list)

    def values(self, edges: EdgeInput, chunk: Chunk, out: Tensor, scratch: Tensor) -> None:
        """Writes y of the chunk's m edges into out ``(m, h)``; scratch (at least m x h) is used with a table only."""
        torch.index_select(self.q, 0, chunk.of(edges.plan.j), out=out)
        if self.table is not None and edges.classes is not None:
            words = scratch.view(-1)[: out.numel()].view_as(out)
            out.add_(torch.index_select(self.table, 0, chunk.of(edges.classes), out=words))
        if self.p is not None:
            for run in chunk.runs:
                run.edges(out).add_(run.nodes(self.p).unsqueeze(1))
        out.addmm_(chunk.of(edges.features), self.weight.t())

    def start_backward(self) -> None:
        """Clears the gradients of p, q, weight and table, in this order in ``grads``."""
        parts = (self.p, self.q, self.weight, self.table)
        self.grads = [None if part is None else torch.zeros_like(part) for part in parts]

    def backward(self, edges: EdgeInput, chunk: Chunk, grad: Tensor, first: bool) -> None:
        """Adds the share of the chunk's gradient ``(m, h)``; ``first``: no other map has reached ``edges.grad``."""
        p, q, weight, table = self.grads
        assert q is not None
        assert weight is not None
        if p is not None:
            for run in chunk.runs:
                torch.sum(run.edges(grad), 1, out=run.nodes(p))
        q.index_add_(0, chunk.of(edges.plan.j), grad)
        weight.addmm_(grad.t(), chunk.of(edges.features))
        if table is not None and edges.classes is not None:
            table.index_add_(0, chunk.of(edges.classes), grad)
        if edges.grad is not None:
            chunk.of(edges.grad).addmm_(grad, self.weight, beta=0 if first else 1)
