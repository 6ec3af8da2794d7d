r"""Do probabilities mean what they say?

The temperature T > 0 that makes held-out labels likeliest under softmax(logits / T); one number, so it can't change
which label comes first. Where the gain over T = 1 is within the noise (two standard errors over the boxes), as with a
handful of boxes or a few outliers, T stays 1.

The expected calibration error is the mean gap between confidence and accuracy,

.. math:: ECE = \sum_b \frac{|B_b|}{N} \, | acc(B_b) - conf(B_b) |,

over boxes grouped by confidence into bins of one width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

COLDEST, HOTTEST = 0.05, 20.0


def fit_temperature(logits: Tensor, labels: Tensor, steps: int = 60) -> float:
    """logits ``(N, C)`` of boxes not trained on, labels ``(N,)`` -> T within 0.05 and 20; 1 if there are none."""
    if not len(logits):
        return 1.0
    logits = logits.double()

    def loss(log_t: float) -> float:
        return float(F.cross_entropy(logits / math.exp(log_t), labels))

    # In 1 / T the loss is convex, so it has one minimum in log T: golden section finds it.
    golden = (math.sqrt(5) - 1) / 2
    low, high = math.log(COLDEST), math.log(HOTTEST)
    a, b = high - golden * (high - low), low + golden * (high - low)
    loss_a, loss_b = loss(a), loss(b)
    for _ in range(steps):
        if loss_a <= loss_b:
            high, b, loss_b = b, a, loss_a
            a = high - golden * (high - low)
            loss_a = loss(a)
        else:
            low, a, loss_a = a, b, loss_b
            b = low + golden * (high - low)
            loss_b = loss(b)
        if high - low < 1e-4:
            break
    best = math.exp((low + high) / 2)
    gain = F.cross_entropy(logits, labels, reduction="none") - F.cross_entropy(logits / best, labels, reduction="none")
    noise = float(gain.std(correction=0)) / math.sqrt(len(gain))
    return best if float(gain.mean()) > 2 * noise else 1.0


def calibration_error(dist: Tensor, labels: Tensor, bins: int = 15) -> float:
    """Expected calibration error of dist ``(N, C)`` for labels ``(N,)``, from 0 to 1."""
    if not len(dist):
        return 0.0
    confidence, guess = dist.double().max(1)
    right = (guess == labels).double()
    bin_ = (confidence * bins).long().clamp(0, bins - 1)
    gap = torch.zeros(bins, dtype=torch.float64).index_add_(0, bin_, right - confidence)
    return float(gap.abs().sum() / len(dist))
