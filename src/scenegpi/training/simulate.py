r"""Simulated label distributions: what a detector might say of each box, from the true label and noise.

.. math:: P_i = \text{softmax}_c(s\,[c = y_i] + \tfrac 1 2 \log f_c + \epsilon_{ic}), \qquad \epsilon \sim N(0, 1)

f_c is the share of label c among training boxes: rare labels are taken for common ones. `strength` s sets how often
the most probable label is the true one. This is a test of the code for SGCls where there are no pixels; figures that
rest on it are always called simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from scenegpi.graph import SceneGraph

FREQUENCY = 0.5


def label_shares(graphs: Iterable[SceneGraph], labels: int) -> NDArray[np.float64]:
    """f (C,): the share of each label among the boxes, each counted once more than it occurs."""
    counts = np.ones(labels)
    for graph in graphs:
        counts += np.bincount(graph.labels, minlength=labels)
    return counts / counts.sum()


def simulate_labels(
    graph: SceneGraph, shares: NDArray[np.float64], strength: float, seed: int | Sequence[int]
) -> SceneGraph:
    """The graph with a simulated `label_dist`; its labels stay the true ones. The same seed gives the same noise."""
    n, c = len(graph), len(shares)
    logits = np.random.default_rng(seed).standard_normal((n, c)) + FREQUENCY * np.log(shares)
    logits[np.arange(n), graph.labels] += strength
    dist = np.exp(logits - logits.max(axis=1, keepdims=True, initial=-np.inf))
    dist = (dist / dist.sum(axis=1, keepdims=True)).astype(np.float32)
    return graph.with_fields(label_dist=dist)


def simulated(
    graphs: Iterable[SceneGraph], shares: NDArray[np.float64], strength: float, seed: int = 0
) -> Iterator[SceneGraph]:
    """A data set with simulated distributions, image by image; the noise of image k is drawn by (seed, k)."""
    for k, graph in enumerate(graphs):
        yield simulate_labels(graph, shares, strength, (seed, k))
