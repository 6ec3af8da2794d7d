r"""Reductions over segments: the sums of Theorem 1 on flat lists.

A flat list of values ``(M, ...)`` and an index ``(M,)`` say which segment each value belongs to: an edge belongs to
the node that aggregates it, a node to its graph. The index need not be sorted. An empty segment (an isolated node)
gives zero from every reduction. Half precision is accumulated in single precision.

.. math:: \text{softmax}(x)_m = \frac{e^{x_m - \max_{t \in S(m)} x_t}}{\sum_{t \in S(m)} e^{x_t - \max}}
"""

import torch
from torch import Tensor


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
