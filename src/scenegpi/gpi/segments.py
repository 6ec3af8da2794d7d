r"""From many vectors to one: the sums of Theorem 1 on flat lists, and their alternatives.

A flat list of values ``(M, ...)`` and an index ``(M,)`` say which segment each value belongs to: an edge belongs to
the node that aggregates it, a node to its graph. The index need not be sorted. An empty segment (an isolated node)
gives zero from every reduction. Half precision is accumulated in single precision.

.. math:: \text{softmax}(x)_m = \frac{e^{x_m - \max_{t \in S(m)} x_t}}{\sum_{t \in S(m)} e^{x_t - \max}}

``aggregate`` is a sum, mean or maximum, or an attention: ``neighbour`` has one score per neighbour, ``feature`` one per
neighbour and feature. The same five kinds serve both levels: neighbours into :math:`s_i` and nodes into the graph
vector :math:`g`.

.. math:: s_i = \sum_{j \in N(i)} w_{ij} \, \phi_{ij}, \qquad
          w_{ij} = \frac{e^{\beta_{ij}}}{\sum_{t \in N(i)} e^{\beta_{it}}}
"""

from typing import Literal, get_args

import torch
from torch import Tensor

Aggregation = Literal["sum", "mean", "max", "neighbour", "feature"]


def segment_sum(values: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Sum of each segment: values ``(M, ...)``, index ``(M,)`` -> ``(num_segments, ...)``."""
    wide = _wide(values)
    out = wide.new_zeros((num_segments, *values.shape[1:]))
    # Not index_add, which keeps the values for its backward pass.
    return _as(values, out.scatter_add_(0, _expand(index, wide), wide))


def segment_mean(values: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Mean of each segment: values ``(M, ...)``, index ``(M,)`` -> ``(num_segments, ...)``."""
    wide = _wide(values)
    count = segment_sum(wide.new_ones(index.shape), index, num_segments)
    count = count.clamp_min(1).reshape(-1, *[1] * (values.dim() - 1))
    return _as(values, segment_sum(wide, index, num_segments) / count)


def segment_max(values: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Maximum of each segment: values ``(M, ...)``, index ``(M,)`` -> ``(num_segments, ...)``."""
    top = _top(values, index, num_segments, -torch.inf)
    return top.masked_fill(top == -torch.inf, 0)


def segment_softmax(scores: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Softmax within each segment and feature: scores ``(M, ...)``, index ``(M,)`` -> weights ``(M, ...)``.

    A score of minus infinity gets weight 0; a segment with nothing else gets weights 0, never NaN.
    """
    power, total = segment_exp(scores, index, num_segments)
    return _as(scores, power / total.index_select(0, index))


def segment_exp(scores: Tensor, index: Tensor, num_segments: int) -> tuple[Tensor, Tensor]:
    """The softmax before its division: e^(x - max) ``(M, ...)`` and their sums ``(num_segments, ...)``, above 0.

    Both at least in single precision.
    """
    wide = _wide(scores)
    limits = torch.finfo(wide.dtype)
    # The result does not depend on what is subtracted, so no gradient goes through it. Where all scores are minus
    # infinity it must be finite.
    top = _top(wide.detach(), index, num_segments, limits.min)
    power = top.neg().index_select(0, index).add_(wide).exp_()
    return power, segment_sum(power, index, num_segments).clamp_min(limits.tiny)


def score_width(kind: Aggregation, width: int) -> int:
    """How many scores the attention network gives for each vector of ``width`` features: 0 without attention."""
    if kind not in get_args(Aggregation):
        raise ValueError(f"aggregation must be one of {', '.join(get_args(Aggregation))}, not {kind!r}")
    return {"neighbour": 1, "feature": width}.get(kind, 0)


def aggregate(
    kind: Aggregation,
    values: Tensor,
    scores: Tensor | None,
    index: Tensor,
    num_segments: int,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """values ``(M, h)``, scores ``(M, 1)`` or ``(M, h)``, index ``(M,)`` -> ``(num_segments, h)``.

    With ``return_weights`` also the attention weights, of the shape of the scores; None without attention.
    """
    if scores is None:
        reduce = {"sum": segment_sum, "mean": segment_mean, "max": segment_max}[kind]
        return reduce(values, index, num_segments), None
    if torch.compiler.is_compiling():
        # A compiler decides itself what to keep. It must not be given the form below: on the CPU torch 2.13 reads a
        # sum that is divided and concatenated before it is complete.
        softmax = segment_softmax(scores, index, num_segments)
        return segment_sum(softmax * values, index, num_segments), softmax if return_weights else None
    # Dividing the sum, not each weight, keeps two tensors of M rows less for the backward pass.
    power, total = segment_exp(scores, index, num_segments)
    out = segment_sum(power * values, index, num_segments) / total
    weights = (power / total.index_select(0, index)).to(scores.dtype) if return_weights else None
    return out.to(values.dtype), weights


def _top(values: Tensor, index: Tensor, num_segments: int, least: float) -> Tensor:
    out = values.new_full((num_segments, *values.shape[1:]), least)
    return out.scatter_reduce(0, _expand(index, values), values, "amax")


def _wide(values: Tensor) -> Tensor:
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def _as(values: Tensor, wide: Tensor) -> Tensor:
    # Not even a cast to the same type: exporters write it down.
    return wide if wide.dtype == values.dtype else wide.to(values.dtype)


def _expand(index: Tensor, values: Tensor) -> Tensor:
    return index.reshape(-1, *[1] * (values.dim() - 1)).expand_as(values)
