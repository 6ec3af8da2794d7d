"""Borrowed distributions: what a box without pixels might look like, from boxes whose pixels were seen.

For each box of an image that has labels but no photo, the held-out label distribution of a random box with the same
label and about the same size is taken from images that have one: a small person is mistaken for other things than a
large one. So a context can learn from many annotated layouts how to correct a label predictor that was trained on few
photos. A label that no photo shows borrows from any other, with the two labels' columns exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import GraphError
from scenegpi.features.batch import image_size
from scenegpi.graph import SceneGraph

LEAST_SPREAD = 3.0
"""Places to either side, in the order of size, from which a box borrows at the least (one standard deviation)."""


class Lender:
    """Keeps the label distributions of boxes by their true label, C labels, and by size.

    Args:
        graphs: those with a `label_dist` lend; their labels are the true ones.
        labels: C.
        near: a box borrows from those around its own place in the order of size; this is how far, as a share of all
            boxes with its label (one standard deviation).
    """

    def __init__(self, graphs: Iterable[SceneGraph], labels: int, near: float = 0.1) -> None:
        lending = [graph for graph in graphs if graph.label_dist is not None and len(graph)]
        if not lending:
            raise GraphError("label_dist: no image carries any that others could borrow")
        true = np.concatenate([graph.labels for graph in lending])
        size = np.concatenate([box_shares(graph) for graph in lending])
        order = np.lexsort((size, true))
        self.near, self.true, self.size = near, true[order].astype(np.int64), size[order]
        self.rows = np.concatenate([graph.label_dist for graph in lending])[order].astype(np.float32)
        self.first = np.searchsorted(self.true, np.arange(labels + 1))

    def lend(self, graph: SceneGraph, rng: np.random.Generator) -> SceneGraph:
        """The graph with a borrowed `label_dist`; its labels stay the true ones."""
        labels = graph.labels.astype(np.int64)
        first, count = self.first[labels], self.first[labels + 1] - self.first[labels]
        own = [
            np.searchsorted(self.size[a : a + n], size)
            for a, n, size in zip(first.tolist(), count.tolist(), box_shares(graph), strict=True)
        ]
        away = rng.standard_normal(len(labels)) * np.maximum(self.near * count, LEAST_SPREAD)
        place = (np.array(own, dtype=np.float64) + away).clip(0, np.maximum(count - 1, 0)).astype(np.int64)
        chosen = np.where(count > 0, first + place, rng.integers(len(self.true), size=len(labels)))
        dist = self.rows[chosen]
        for box in np.flatnonzero(count == 0).tolist():
            pair = [labels[box], self.true[chosen[box]]]
            dist[box, pair] = dist[box, pair[::-1]]
        return graph.with_fields(label_dist=dist)


def box_shares(graph: SceneGraph) -> NDArray[np.float64]:
    """(N,) the share of the image that each box covers."""
    width, height = image_size(graph)
    x1, y1, x2, y2 = graph.boxes.T
    return np.asarray((x2 - x1) * (y2 - y1) / (width * height))
