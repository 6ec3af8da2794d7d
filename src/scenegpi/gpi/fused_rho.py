r"""The edge labels: a fully-connected network on edge-affine inputs, and the edge's gate, one chunk at a time.

.. math:: h_1 = \max(0, y_{ij}), \quad h_{l+1} = \max(0, W_l h_l + b_l), \quad o_{ij} = W_L h_L + b_L

with y, and the gate beside it, edge-affine. A hidden layer after ReLU and dropout is positive exactly where its
gradient passes, so nothing but the hidden layers is kept for the backward pass; with ``recompute`` not even those.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from scenegpi.gpi.edge_affine import EdgeAffine, EdgeInput
from scenegpi.gpi.memory import large_empty
from scenegpi.gpi.plan import Chunk, EdgePlan

__all__ = ["FusedRho", "RhoOptions"]


@dataclass(frozen=True)
class RhoOptions:
    """``dropout`` on hidden layers (0 outside training), drawn from ``seed``; ``recompute``: keep nothing an edge."""

    dropout: float
    seed: int
    recompute: bool


@dataclass
class _Network:
    """The network, and the memory for its hidden layers: of one chunk, or of all edges where they are kept."""

    edges: EdgeInput
    first: EdgeAffine
    gate: EdgeAffine | None
    layers: list[tuple[Tensor, Tensor]]
    options: RhoOptions
    kept: bool
    hidden: list[Tensor]

    @classmethod
    def of(cls, plan: EdgePlan, options: RhoOptions, tensors: Any, kept: list[Tensor] | bool) -> "_Network":
        features, classes, p, q, w, table, p_gate, q_gate, w_gate, table_gate, *tail = tensors
        gate = None if q_gate is None else EdgeAffine(p_gate, q_gate, w_gate, table_gate)
        layers = list(zip(tail[::2], tail[1::2], strict=True))
        if isinstance(kept, bool):
            rows = plan.j.shape[0] if kept else plan.longest
            hidden = [large_empty(rows, weight.shape[1], q) for weight, _ in layers]
        else:
            hidden = kept
        edges = EdgeInput(plan, features, classes)
        return cls(edges, EdgeAffine(p, q, w, table), gate, layers, options, kept is not False, hidden)

    def of_chunk(self, chunk: Chunk) -> list[Tensor]:
        """The chunk's hidden layers, each ``(m, width)``."""
        where = slice(chunk.start, chunk.stop) if self.kept else slice(chunk.stop - chunk.start)
        return [memory[where] for memory in self.hidden]

    def compute(self, chunk: Chunk, scratch: Tensor) -> None:
        """Fills the chunk's hidden layers."""
        hidden = self.of_chunk(chunk)
        self.first.values(self.edges, chunk, hidden[0], scratch)
        for depth, here in enumerate(hidden):
            if depth:
                weight, bias = self.layers[depth - 1]
                torch.addmm(bias, hidden[depth - 1], weight.t(), out=here)
            here.relu_()
            if self.options.dropout:
                self._drop(here, chunk.start * len(hidden) + depth)

    def _drop(self, here: Tensor, place: int) -> None:
        # A generator of its own for every chunk and layer: the second computation draws the same mask as the first.
        generator = torch.Generator(here.device).manual_seed(self.options.seed + place)
        keep = 1 - self.options.dropout
        here.mul_(torch.empty_like(here).bernoulli_(keep, generator=generator)).div_(keep)


class FusedRho(torch.autograd.Function):
    """``apply(plan, options, features, classes, p, q, w, table, p', q', w', table', W_1, b_1, ..., W_L, b_L)``.

    features ``(E, e)`` and classes ``(E,)`` in the plan's order, as are p ``(N, h)`` and p' ``(N, 1)``; primed: the
    gate, or None. Gives the labels ``(E, out)`` and the gate before its sigmoid ``(E, 1)``, or ``(E, 0)`` without
    one.
    """

    @staticmethod
    def forward(ctx: Any, plan: EdgePlan, options: RhoOptions, *tensors: Tensor | None) -> tuple[Tensor, Tensor]:
        keep = any(ctx.needs_input_grad) and not options.recompute
        net = _Network.of(plan, options, tensors, keep)
        weight, bias = net.layers[-1]
        total, one = plan.j.shape[0], 0 if net.gate is None else 1
        out, gate = bias.new_empty(total, bias.shape[0]), bias.new_empty(total, one)
        scratch = bias.new_empty(plan.longest, weight.shape[1])
        for chunk in plan.chunks:
            net.compute(chunk, scratch)
            torch.addmm(bias, net.of_chunk(chunk)[-1], weight.t(), out=chunk.of(out))
            if net.gate is not None:
                net.gate.values(net.edges, chunk, chunk.of(gate), scratch)
        ctx.plan, ctx.options, ctx.kept = plan, options, len(net.hidden) if keep else 0
        ctx.save_for_backward(*net.hidden[: ctx.kept], *tensors)
        return out, gate

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        saved, kept = ctx.saved_tensors, ctx.kept
        net = _Network.of(ctx.plan, ctx.options, saved[kept:], list(saved[:kept]) or False)
        edges, first, gate = net.edges, net.first, net.gate
        edges.grad = torch.empty_like(edges.features) if ctx.needs_input_grad[2] else None
        first.start_backward()
        if gate is not None:
            gate.start_backward()
        tail = [(torch.zeros_like(weight), torch.zeros_like(bias)) for weight, bias in net.layers]
        memory = [torch.empty_like(layer[: ctx.plan.longest]) for layer in net.hidden]
        for chunk in ctx.plan.chunks:
            if not net.kept:
                net.compute(chunk, memory[0])
            hidden, grad = net.of_chunk(chunk), chunk.of(grads[0])
            for depth in reversed(range(len(hidden))):
                weight, bias = tail[depth]
                weight.addmm_(grad.t(), hidden[depth])
                bias.add_(grad.sum(0))
                below = memory[depth][: grad.shape[0]]
                torch.mm(grad, net.layers[depth][0], out=below)
                torch.ops.aten.threshold_backward.grad_input(below, hidden[depth], 0, grad_input=below)
                if ctx.options.dropout:
                    below.div_(1 - ctx.options.dropout)
                grad = below
            first.backward(edges, chunk, grad, True)
            if gate is not None:
                gate.backward(edges, chunk, chunk.of(grads[1]), False)
        flat = [part for pair in tail for part in pair]
        return None, None, edges.grad, None, *first.grads, *([None] * 4 if gate is None else gate.grads), *flat
