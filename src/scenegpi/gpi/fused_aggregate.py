r"""phi, its attention and the sum over neighbours in one pass over the edges, forward and backward.

.. math:: s_i = \sum_j w_{ij} \odot \phi_{ij}, \quad \phi = \max(0, y), \quad w_{ij} = e^{b_{ij} - m_i} / Z_i

with y and b edge-affine. The gradients need no more than phi, e^(b - m), Z and s:

.. math:: \bar\phi_{ij} = w_{ij} \bar s_i, \qquad \bar b_{ij} = w_{ij} \bar s_i (\phi_{ij} - s_i)

The part of b that belongs to node i is constant within a neighbourhood and cancels in the softmax; it is left out,
and its weight rightly gets gradient zero. Scratch memory is one chunk of edges; for the backward pass phi and e^(b -
m) are either kept or, with ``recompute``, made again chunk by chunk, so that memory does not grow with the number of
edges.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from scenegpi.gpi.edge_affine import EdgeAffine, EdgeInput
from scenegpi.gpi.memory import large_empty
from scenegpi.gpi.plan import Chunk, EdgePlan

__all__ = ["AggregateOptions", "FusedAggregate"]


@dataclass(frozen=True)
class AggregateOptions:
    """``relu``: phi has one. ``mean``: without attention, divide by the degree. ``recompute``: keep nothing an edge."""

    relu: bool
    mean: bool
    recompute: bool


@dataclass
class _Values:
    """phi and e^(b - m) of the edges of one chunk, or of all edges where they are kept."""

    edges: EdgeInput
    phi: EdgeAffine
    beta: EdgeAffine | None
    relu: bool
    kept: bool
    values: Tensor
    powers: Tensor | None
    scratch: Tensor

    @classmethod
    def of(
        cls, plan: EdgePlan, options: AggregateOptions, tensors: Any, kept: tuple[Tensor, Tensor | None] | bool
    ) -> Any:
        features, classes, p, q, w, table, q_beta, w_beta, table_beta = tensors
        phi = EdgeAffine(p, q, w, table)
        beta = None if q_beta is None else EdgeAffine(None, q_beta, w_beta, table_beta)
        if isinstance(kept, bool):
            rows = plan.j.shape[0] if kept else plan.longest
            powers = None if beta is None else large_empty(rows, q_beta.shape[1], q)
            memory = large_empty(rows, q.shape[1], q), powers
        else:
            memory = kept
        scratch = q.new_empty(plan.longest, q.shape[1])
        return cls(EdgeInput(plan, features, classes), phi, beta, options.relu, kept is not False, *memory, scratch)

    def of_chunk(self, chunk: Chunk) -> tuple[Tensor, Tensor | None]:
        """The chunk's memory ``(m, h)`` and ``(m, k)``."""
        where = slice(chunk.start, chunk.stop) if self.kept else slice(chunk.stop - chunk.start)
        return self.values[where], None if self.powers is None else self.powers[where]

    def compute(self, chunk: Chunk, norm: Tensor | None) -> None:
        """Fills the chunk's memory, and norm ``(N, k)`` with Z where given."""
        value, power = self.of_chunk(chunk)
        self.phi.values(self.edges, chunk, value, self.scratch)
        if self.relu:
            value.relu_()
        if self.beta is None or power is None:
            return
        self.beta.values(self.edges, chunk, power, self.scratch)
        for run in chunk.runs:
            scores = run.edges(power)
            scores.sub_(scores.amax(1, keepdim=True))
        power.exp_()
        if norm is not None:
            for run in chunk.runs:
                torch.sum(run.edges(power), 1, out=run.nodes(norm))


class FusedAggregate(torch.autograd.Function):
    """``apply(plan, options, features, classes, p, q, w, table, q_beta, w_beta, table_beta) -> s (N, h)``.

    features ``(E, e)`` and classes ``(E,)``, p ``(N, h)`` and the result in the plan's order; q ``(N, h)``; w
    ``(h, e)``; table ``(C, h)``. The last three belong to the scores (k = 1 or h columns), None without attention.
    """

    @staticmethod
    def forward(ctx: Any, plan: EdgePlan, options: AggregateOptions, *tensors: Tensor | None) -> Tensor:
        keep = any(ctx.needs_input_grad) and not options.recompute
        work = _Values.of(plan, options, tensors, keep)
        s = torch.zeros_like(work.phi.q)
        norm = None if work.beta is None else torch.ones_like(work.beta.q)
        for chunk in plan.chunks:
            work.compute(chunk, norm)
            weighted, power = work.of_chunk(chunk)
            if power is not None:
                weighted = torch.mul(weighted, power, out=work.scratch[: weighted.shape[0]])
            for run in chunk.runs:
                torch.sum(run.edges(weighted), 1, out=run.nodes(s))
        if norm is not None:
            s.div_(norm)
        elif options.mean:
            s.div_(plan.degree.clamp_min(1).unsqueeze(1))
        ctx.plan, ctx.options = plan, options
        kept = (work.values, work.powers) if keep else (None, None)
        ctx.save_for_backward(s, norm, *kept, *tensors)
        return s

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        plan, options, grad = ctx.plan, ctx.options, grads[0]
        s, norm, values, powers, *tensors = ctx.saved_tensors
        work = _Values.of(plan, options, tensors, False if values is None else (values, powers))
        phi, beta, edges = work.phi, work.beta, work.edges
        edges.grad = torch.empty_like(edges.features) if ctx.needs_input_grad[2] else None
        if norm is not None:
            grad = grad / norm
        elif options.mean:
            grad = grad / plan.degree.clamp_min(1).unsqueeze(1)
        phi.start_backward()
        if beta is not None:
            beta.start_backward()
            score_memory = beta.q.new_empty(plan.longest, beta.q.shape[1])
        for chunk in plan.chunks:
            if not work.kept:
                work.compute(chunk, None)
            value, power = work.of_chunk(chunk)
            grad_phi = work.scratch[: value.shape[0]]
            grad_beta = None if beta is None else score_memory[: value.shape[0]]
            _gradients(chunk, grad, s, value, power, grad_phi, grad_beta)
            if options.relu:
                torch.ops.aten.threshold_backward.grad_input(grad_phi, value, 0, grad_input=grad_phi)
            phi.backward(edges, chunk, grad_phi, True)
            if beta is not None and grad_beta is not None:
                beta.backward(edges, chunk, grad_beta, False)
        scores = (None,) * 3 if beta is None else tuple(beta.grads[1:])
        return None, None, edges.grad, None, *phi.grads, *scores


def _gradients(
    chunk: Chunk, grad: Tensor, s: Tensor, value: Tensor, power: Tensor | None, out: Tensor, score_out: Tensor | None
) -> None:
    """Writes the gradients of phi ``(m, h)`` and of the scores ``(m, k)``; grad ``(N, h)`` is already divided by Z."""
    per_feature = power is not None and power.shape[1] == value.shape[1]
    for run in chunk.runs:
        at_node = run.nodes(grad).unsqueeze(1)
        if power is None:
            run.edges(out).copy_(at_node.expand_as(run.edges(out)))
            continue
        torch.mul(run.edges(power), at_node, out=run.edges(out))
        assert score_out is not None
        if per_feature:
            torch.sub(run.edges(value), run.nodes(s).unsqueeze(1), out=run.edges(score_out))
        else:
            inner = torch.bmm(run.edges(value), at_node.transpose(1, 2))
            inner -= (run.nodes(s).unsqueeze(1) * at_node).sum(2, keepdim=True)
            torch.mul(inner, run.edges(power), out=run.edges(score_out))
    if per_feature and score_out is not None:
        score_out.mul_(out)
