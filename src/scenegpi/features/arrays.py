r"""SceneGraphs -> flat NumPy arrays: the inputs of a model for a batch of images, without torch.

Nodes are the boxes of all images, concatenated; edges are all ordered pairs i != j of each image, in the order of
`scenegpi.pairs`. `SceneBatch` holds the same as tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.pairs import complete_pairs, edge_numbers
from scenegpi.vocabulary import Vocabulary

PAIRS = 1 << 14
IMAGES = 256
"""Maximum ordered pairs and images in one batch; a single image may have more pairs."""


@dataclass(frozen=True)
class SceneArrays:
    """G images with N boxes and E ordered pairs.

    `boxes` (N, 4) double; `sizes` (G, 2) width, height; `labels` (N,); `label_dist` (N, C) single; `counts` (G,) boxes
    of each image; `pair_dist` (E, 1 + P) or None.
    """

    vocabulary: Vocabulary
    boxes: NDArray[np.float64]
    sizes: NDArray[np.float64]
    labels: NDArray[np.int64]
    label_dist: NDArray[np.float32]
    counts: NDArray[np.int64]
    pair_dist: NDArray[np.float32] | None = None

    @classmethod
    def of(cls, graphs: Sequence[SceneGraph], given_labels: bool = True) -> SceneArrays:
        """The arrays of these graphs, which share a vocabulary.

        With `given_labels` (PredCls) the label distribution is one-hot at `labels`. Without (SGCls) it is
        `label_dist`; in a graph without one, its label has probability `scores` (1 if None) and the rest is spread
        evenly. A pair that `pairs` does not list is certainly "no relation". An image without a size is assumed to end
        where its boxes do.
        """
        if not graphs:
            raise GraphError("a batch needs at least one graph")
        vocabulary = graphs[0].vocabulary
        if any(graph.vocabulary is not vocabulary and graph.vocabulary != vocabulary for graph in graphs):
            raise GraphError("vocabulary: the graphs of a batch must share one")
        counts = np.array([len(graph) for graph in graphs], dtype=np.int64)
        labels = np.concatenate([graph.labels for graph in graphs]).astype(np.int64)
        return cls(
            vocabulary=vocabulary,
            boxes=np.concatenate([graph.boxes for graph in graphs]),
            sizes=np.array([image_size(graph) for graph in graphs]),
            labels=labels,
            label_dist=_label_dist(graphs, labels, counts, given_labels),
            counts=counts,
            pair_dist=_pair_dist(graphs, counts),
        )

    @cached_property
    def ptr(self) -> NDArray[np.int64]:
        """(G + 1,) first box of each image."""
        return _starts(self.counts)

    @cached_property
    def edge_ptr(self) -> NDArray[np.int64]:
        """(G + 1,) first edge of each image."""
        return _starts(self.counts * (self.counts - 1))

    @cached_property
    def edge_index(self) -> NDArray[np.int64]:
        """(2, E): subject and object of each pair."""
        return complete_pairs(self.counts)

    def pieces(self, pairs: int) -> Iterator[SceneArrays]:
        """The same images as consecutive smaller batches, each of at most `pairs` pairs or a single image."""
        first = 0
        while first < len(self.counts):
            most = self.edge_ptr[first] + pairs
            last = max(int(np.searchsorted(self.edge_ptr, most, side="right")) - 1, first + 1)
            at, on = (slice(ptr[first], ptr[last]) for ptr in (self.ptr, self.edge_ptr))
            pair_dist = None if self.pair_dist is None else self.pair_dist[on]
            parts = self.boxes[at], self.sizes[first:last], self.labels[at], self.label_dist[at]
            yield SceneArrays(self.vocabulary, *parts, self.counts[first:last], pair_dist)
            first = last


def image_size(graph: SceneGraph) -> tuple[float, float]:
    """Width and height of the image; where not known, how far its boxes reach."""
    reach = graph.boxes[:, 2:].max(axis=0, initial=1.0).tolist()
    return float(graph.width or reach[0]), float(graph.height or reach[1])


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts)])


def _label_dist(
    graphs: Sequence[SceneGraph], labels: NDArray[np.int64], counts: NDArray[np.int64], given: bool
) -> NDArray[np.float32]:
    width = len(graphs[0].vocabulary.objects)
    out = np.zeros((len(labels), width), dtype=np.float32)
    out[np.arange(len(labels)), labels] = 1
    if given:
        return out
    for graph, part in zip(graphs, np.split(out, np.cumsum(counts)[:-1]), strict=True):
        if graph.label_dist is not None:
            part[:] = graph.label_dist
        elif graph.scores is not None and width > 1:
            rest = (1 - graph.scores) / (width - 1)
            part[:] = np.where(part > 0, graph.scores[:, None], rest[:, None])
    return out


def _pair_dist(graphs: Sequence[SceneGraph], counts: NDArray[np.int64]) -> NDArray[np.float32] | None:
    if all(graph.pair_dist is None for graph in graphs):
        return None
    edge_ptr = _starts(counts * (counts - 1))
    out = np.zeros((edge_ptr[-1], 1 + len(graphs[0].vocabulary.predicates)), dtype=np.float32)
    out[:, 0] = 1
    for graph, start in zip(graphs, edge_ptr.tolist(), strict=False):
        if graph.pairs is not None and graph.pair_dist is not None:
            real = graph.pairs[:, 0] != graph.pairs[:, 1]
            out[start + edge_numbers(graph.pairs[real], len(graph))] = graph.pair_dist[real]
    return out
