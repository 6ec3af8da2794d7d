r"""From many vectors to one: sum, mean, max, and the two kinds of attention.

.. math:: s_i = \sum_{j \in N(i)} w_{ij} \, \phi_{ij}, \qquad
          w_{ij} = \frac{e^{\beta_{ij}}}{\sum_{t \in N(i)} e^{\beta_{it}}}

``neighbour`` has one score per neighbour, ``feature`` one per neighbour and feature. The same five kinds serve both
levels: neighbours into :math:`s_i` and nodes into the graph vector :math:`g`.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

from scenegpi.gpi.segments import segment_exp, segment_max, segment_mean, segment_softmax, segment_sum

Aggregation = Literal["sum", "mean", "max", "neighbour", "feature"]


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
