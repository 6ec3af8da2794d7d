"""95% intervals by bootstrap over images, without keeping the images, and paired comparison of two systems.

In a bootstrap replicate image i counts w_i times. Drawing every w_i from a Poisson distribution of mean 1 (instead of
the multinomial that makes them add up to n exactly) lets a replicate be summed as images stream by. The weights are a
function of the image's key and the seed alone: partial results of several processes merge by addition, and
two systems scored on the same images get the same weights, so that their difference is paired.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, factorial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import MetricError

if TYPE_CHECKING:
    from scenegpi.metrics.result import Result

_STEP = np.uint64(0x9E3779B97F4A7C15)


_CUMULATIVE = np.cumsum([exp(-1.0) / factorial(j) for j in range(12)])
_TABLE = np.searchsorted(_CUMULATIVE, (np.arange(2**16) + 0.5) / 2**16).astype(np.uint8)
"""(2^16,) quantiles of the Poisson distribution of mean 1: a uniform 16-bit number -> a weight."""


def poisson_weights(keys: NDArray[np.uint64], replicates: int, seed: int = 0) -> NDArray[np.uint8]:
    """(n, B) weights of n images in B replicates; the same key and seed give the same weights everywhere."""
    start = _mix(np.asarray(keys, dtype=np.uint64) + _mix(np.array([seed % 2**64], dtype=np.uint64)))
    words = -(-replicates // 4)
    state = start[:, None] + _STEP * np.arange(1, words + 1, dtype=np.uint64)[None, :]
    uniform = _mix(state).view(np.uint16)[:, :replicates]
    return _TABLE[uniform]


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64: every bit of the result depends on every bit of x."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def percentile_interval(replicates: NDArray[np.float64]) -> tuple[float, float]:
    """The middle 95% of the replicates (B,) of a figure, those with nothing to count left out; NaN if all are."""
    values = replicates[np.isfinite(replicates)]
    if not len(values):
        return (float("nan"), float("nan"))
    low, high = np.quantile(values, [(1 - 0.95) / 2, (1 + 0.95) / 2])
    return float(low), float(high)


@dataclass(frozen=True)
class Difference:
    """B - A of one figure on the same images: the difference, its 95% interval, and a two-sided p-value."""

    figure: str
    difference: float
    low: float
    high: float
    p_value: float

    def __str__(self) -> str:
        return (
            f"{self.figure}: {100 * self.difference:+.2f} [{100 * self.low:+.2f}, {100 * self.high:+.2f}], "
            f"p = {self.p_value:.3g}"
        )


def compare(a: Result, b: Result) -> dict[str, Difference]:
    """Paired comparison of system b with system a, figure by figure.

    Both were scored by the same protocol on the same images with the same number of replicates; MetricError if not.
    p is twice the fraction of replicates on the other side of zero difference, (1 + count) / (1 + B), at most 1.
    """
    differences = a.protocol.difference(b.protocol)
    if differences:
        raise MetricError(f"compare: different protocols ({differences[0]})")
    if a.fingerprint != b.fingerprint:
        raise MetricError(f"compare: different images ({a.images} and {b.images}); a paired comparison needs the same")
    if not a.replicates or not b.replicates:
        raise MetricError("compare: no bootstrap replicates; score both with bootstrap=1000")
    if a.seed != b.seed or a.bootstrap != b.bootstrap:
        raise MetricError("compare: different seeds or numbers of replicates")
    found = {}
    for name in a.replicates:
        if name not in b.replicates:
            continue
        spread = b.replicates[name] - a.replicates[name]
        spread = spread[np.isfinite(spread)]
        low, high = percentile_interval(spread)
        beyond = min((spread <= 0).sum(), (spread >= 0).sum())
        p = min(1.0, 2.0 * (1 + int(beyond)) / (1 + len(spread)))
        found[name] = Difference(name, b.figures[name] - a.figures[name], low, high, p)
    return found
