r"""Calibration of probabilities: fitting temperatures, and measuring the error.

The temperature T > 0 makes held-out outcomes likeliest under softmax(logits / T). It is one number, so it never changes
which class comes first. In 1 / T the loss is convex, as it is in the weights of a logistic fit: `fit_convex` minimises
both, and keeps the start if the gain is within the noise over images.

The expected calibration error is the mean gap between confidence and accuracy,

.. math:: ECE = \sum_b \frac{|B_b|}{N} \, | acc(B_b) - conf(B_b) |,

over rows grouped by confidence into bins of equal width.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

MIN_TEMPERATURE, MAX_TEMPERATURE = 0.05, 20.0
GAIN = 1.25
"""Standard errors that a gain must exceed. Chance alone passes less than one time in twenty, with one number or two."""
FEWEST_GROUPS = 20
"""With fewer groups the size of the noise is unknown."""
BINS = 15
Loss = Callable[[Tensor], Tensor]


def fit_temperature(logits: Tensor, chosen: Tensor, group: Tensor | None = None) -> float:
    """The temperature of logits ``(N, K)`` given the classes ``(N,)`` that were right; 1 if nothing is gained.

    ``group (N,)`` is the image of each row, whose errors are not independent; by default every row is its own group.
    """
    logits = logits.double()
    group = torch.arange(len(logits), device=logits.device) if group is None else group

    def loss(weights: Tensor) -> Tensor:
        return cross_entropy(logits * weights[0], chosen, reduction="none")

    (slope,) = fit_convex(loss, (1.0,), group, 1 / MAX_TEMPERATURE)
    # Logits that are always right have no finite minimum.
    return 1 / slope if slope <= 1 / MIN_TEMPERATURE else 1.0


def fit_convex(loss: Loss, start: tuple[float, ...], group: Tensor, least: float = float("-inf")) -> tuple[float, ...]:
    """Weights that minimise the sum of convex losses; `start` if that gains nothing beyond noise.

    Args:
        loss: weights -> losses ``(n,)``, differentiable, in double precision.
        start: the weights to improve on.
        group: ``(n,)`` which losses belong together (the image): the gain of a group is one observation.
        least: lower bound of the first weight.
    """
    found, place = group.unique(return_inverse=True)
    if len(found) < FEWEST_GROUPS:
        return start
    first = torch.tensor(start, dtype=torch.float64)
    best = _minimum(loss, first)
    if float(best[0]) < least:  # the minimum of a convex loss then lies on the bound
        bound = torch.tensor([least], dtype=torch.float64)
        rest = _minimum(lambda weights: loss(torch.cat([bound, weights])), first[1:]) if len(first) > 1 else first[1:]
        best = torch.cat([bound, rest])
    with torch.no_grad():
        gain = loss(first) - loss(best)
    by_group = gain.new_zeros(len(found)).index_add_(0, place, gain)
    noise = float(by_group.std(correction=0)) * len(found) ** 0.5
    return tuple(best.tolist()) if float(by_group.sum()) > GAIN * noise else start


def calibration_error(dist: Tensor, chosen: Tensor) -> float:
    """Expected calibration error of dist ``(N, K)`` for the classes ``(N,)`` that were right, from 0 to 1."""
    from torchmetrics.functional.classification import multiclass_calibration_error

    if not len(dist):
        return 0.0
    # Values above 1, even by rounding, would be taken for logits.
    dist = dist.double().clamp(0, 1)
    return float(multiclass_calibration_error(dist, chosen, dist.shape[1], BINS, "l1"))


def _minimum(loss: Loss, start: Tensor) -> Tensor:
    weights = start.clone().requires_grad_()
    optimiser = torch.optim.LBFGS([weights], max_iter=100, tolerance_grad=1e-10, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        mean = loss(weights).mean()
        mean.backward()
        return mean

    with torch.enable_grad():
        optimiser.step(closure)
    return weights.detach()
