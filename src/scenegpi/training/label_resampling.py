"""Resampled label distributions: what a label predictor might predict for a box without pixels.

For each box of an image without a photo, the held-out label distribution of a random box with the same label and about
the same size is taken from images with a photo: a small person is confused with other things than a large one. So a
context can learn from many annotated layouts how to correct a label predictor that was trained on few photos. A label
that occurs in no photo gets the distribution of any other label, with the two labels' columns exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import GraphError
from scenegpi.features.arrays import image_size
from scenegpi.graph import SceneGraph

NEAR, MIN_SPREAD = 0.1, 3.0
"""A box samples from those near its own rank by size: the standard deviation as a fraction of all boxes with its label,
and its minimum in ranks."""


class LabelResampler:
    """Keeps the label distributions of boxes by their true label, of C = `labels`, and by size.

    Graphs with a `label_dist` are the source; their labels are the true ones.
    """

    def __init__(self, graphs: Iterable[SceneGraph], labels: int) -> None:
        source = [graph for graph in graphs if graph.label_dist is not None and len(graph)]
        if not source:
            raise GraphError("label_dist: no image has a distribution to resample")
        true = np.concatenate([graph.labels for graph in source])
        size = np.concatenate([box_shares(graph) for graph in source])
        order = np.lexsort((size, true))
        self.true, self.size = true[order].astype(np.int64), size[order]
        self.rows = np.concatenate([graph.label_dist for graph in source])[order].astype(np.float32)
        self.first = np.searchsorted(self.true, np.arange(labels + 1))

    def __call__(self, graph: SceneGraph, rng: np.random.Generator) -> SceneGraph:
        """The graph with a resampled `label_dist`; its labels remain the true ones."""
        labels = graph.labels.astype(np.int64)
        first, count = self.first[labels], self.first[labels + 1] - self.first[labels]
        own = [
            np.searchsorted(self.size[a : a + n], size)
            for a, n, size in zip(first.tolist(), count.tolist(), box_shares(graph), strict=True)
        ]
        away = rng.standard_normal(len(labels)) * np.maximum(NEAR * count, MIN_SPREAD)
        rank = (np.array(own, dtype=np.float64) + away).clip(0, np.maximum(count - 1, 0)).astype(np.int64)
        chosen = np.where(count > 0, first + rank, rng.integers(len(self.true), size=len(labels)))
        dist = self.rows[chosen]
        for box in np.flatnonzero(count == 0).tolist():
            pair = [labels[box], self.true[chosen[box]]]
            dist[box, pair] = dist[box, pair[::-1]]
        return graph.with_fields(label_dist=dist)


def box_shares(graph: SceneGraph) -> NDArray[np.float64]:
    """(N,) the fraction of the image that each box covers."""
    width, height = image_size(graph)
    x1, y1, x2, y2 = graph.boxes.T
    return np.asarray((x2 - x1) * (y2 - y1) / (width * height))
