r"""Reductions over segments: the sums of Theorem 1 on flat lists.

A flat list of values ``(M, ...)`` and an index ``(M,)`` say which segment each value belongs to: an edge belongs to
the node that aggregates it, a node to its graph. The index need not be sorted. An empty segment (an isolated node)
gives zero from every reduction. Half precision is accumulated in single precision.

.. math:: \text{softmax}(x)_m = \frac{e^{x_m - \max_{t \in S(m)} x_t}}{\sum_{t \in S(m)} e^{x_t - \max}}
"""

import torch
from torch import Tensor, nn

__all__ = ["SegmentSoftmax", "segment_max", "segment_mean", "segment_softmax", "segment_sum"]


def segment_sum(values: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Sum of each segment: values ``(M, ...)``, index ``(M,)`` -> ``(num_segments, ...)``."""
    wide = _wide(values)
    out = wide.new_zeros((num_segments, *values.shape[1:]))
    return out.index_add(0, index, wide).to(values.dtype)


def segment_mean(values: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Mean of each segment: values ``(M, ...)``, index ``(M,)`` -> ``(num_segments, ...)``."""
    wide = _wide(values)
    count = wide.new_zeros(num_segments).index_add(0, index, wide.new_ones(index.shape))
    count = count.clamp_min(1).reshape(-1, *[1] * (values.dim() - 1))
    return (segment_sum(wide, index, num_segments) / count).to(values.dtype)


def segment_max(values: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Maximum of each segment: values ``(M, ...)``, index ``(M,)`` -> ``(num_segments, ...)``."""
    out = values.new_zeros((num_segments, *values.shape[1:]))
    return out.scatter_reduce(0, _expand(index, values), values, "amax", include_self=False)


def segment_softmax(scores: Tensor, index: Tensor, num_segments: int) -> Tensor:
    """Softmax within each segment and feature: scores ``(M, ...)``, index ``(M,)`` -> weights ``(M, ...)``.

    A score of minus infinity gets weight 0; a segment with nothing else gets weights 0, never NaN.
    """
    wide = _wide(scores)
    top = segment_max(wide.detach(), index, num_segments)
    top = torch.where(top == -torch.inf, torch.zeros_like(top), top)
    power = (wide - top.index_select(0, index)).exp()
    total = segment_sum(power, index, num_segments).clamp_min(torch.finfo(wide.dtype).tiny)
    return (power / total.index_select(0, index)).to(scores.dtype)


class SegmentSoftmax(nn.Module):
    """:func:`segment_softmax` as a module, for use inside ``nn.Module`` trees."""

    def forward(self, scores: Tensor, index: Tensor, num_segments: int) -> Tensor:
        """scores ``(M, ...)``, index ``(M,)`` -> weights ``(M, ...)`` that sum to one in each segment."""
        return segment_softmax(scores, index, num_segments)


def _wide(values: Tensor) -> Tensor:
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def _expand(index: Tensor, values: Tensor) -> Tensor:
    return index.reshape(-1, *[1] * (values.dim() - 1)).expand_as(values)
