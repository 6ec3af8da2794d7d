"""Borrowed distributions: what a box without pixels might look like, from boxes whose pixels were seen.

For each box of an image that has labels but no photo, the held-out label distribution of a random box with the same
label is taken from images that have one. So a context can learn from many annotated layouts how to correct a label
predictor that was trained on few photos. A label that no photo shows borrows from any other, with the two labels'
columns exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from scenegpi.graph import GraphError, SceneGraph


class Lender:
    """Keeps the label distributions of boxes by their true label, C labels.

    Args:
        graphs: those with a `label_dist` lend; their labels are the true ones.
        labels: C.
    """

    def __init__(self, graphs: Iterable[SceneGraph], labels: int) -> None:
        lending = [(graph.labels, graph.label_dist) for graph in graphs if graph.label_dist is not None and len(graph)]
        if not lending:
            raise GraphError("label_dist: no image carries any that others could borrow")
        true = np.concatenate([each for each, _ in lending])
        order = np.argsort(true, kind="stable")
        self.true = true[order].astype(np.int64)
        self.rows = np.concatenate([dist for _, dist in lending])[order].astype(np.float32)
        self.first = np.searchsorted(self.true, np.arange(labels + 1))

    def lend(self, graph: SceneGraph, rng: np.random.Generator) -> SceneGraph:
        """The graph with a borrowed `label_dist`; its labels stay the true ones."""
        labels = graph.labels.astype(np.int64)
        count = self.first[labels + 1] - self.first[labels]
        drawn = rng.random(len(labels))
        own = self.first[labels] + (drawn * count).astype(np.int64)
        chosen = np.where(count > 0, own, (drawn * len(self.true)).astype(np.int64))
        dist = self.rows[chosen]
        for box in np.flatnonzero(count == 0).tolist():
            pair = [labels[box], self.true[chosen[box]]]
            dist[box, pair] = dist[box, pair[::-1]]
        dist.flags.writeable = False
        return SceneGraph.trusted(**{name: getattr(graph, name) for name in graph.__slots__} | {"label_dist": dist})
