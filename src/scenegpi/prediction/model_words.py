"""Any label names -> the model's labels, by one rule for every caller.

A name that the model has is kept, whatever its number. Any other name goes through the label map (a table for COCO's 80
labels, then rules, then word vectors). A box whose name has no match is left out, and that is reported.
"""

from __future__ import annotations

from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.detector_results import NO_LABEL
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.label_map import LabelMap, unrelated

MAX_MAPS = 64
UNMATCHED = "no label of the model matches"


class ModelWords:
    """Maps graphs to the vocabulary of a model."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._maps: dict[tuple[Vocabulary, float], LabelMap] = {}

    def label_map(self, source: Vocabulary, similarity: float) -> LabelMap:
        """The map from a vocabulary to the model's labels; `similarity` as in `PredictOptions`."""
        key = (source, similarity)
        if key not in self._maps:
            if len(self._maps) >= MAX_MAPS:  # a stream of images, each with its own vocabulary
                self._maps.clear()
            self._maps[key] = LabelMap.between(source, self.vocabulary, threshold=similarity)
        return self._maps[key]

    def __call__(self, graph: SceneGraph, similarity: float) -> tuple[SceneGraph, NDArray[np.int64]]:
        """The boxes of a graph that have a match, in the model's vocabulary, without relations; and their rows (M,)."""
        every = np.arange(len(graph))
        if graph.vocabulary is self.vocabulary or graph.vocabulary == self.vocabulary:
            return graph, every
        if graph.vocabulary.objects == (NO_LABEL,):
            zeros = np.zeros(len(graph), dtype=np.int32)
            return unrelated(graph).replace(labels=zeros, vocabulary=self.vocabulary, label_dist=None), every
        labels = self.label_map(graph.vocabulary, similarity)
        return labels.apply(graph), np.flatnonzero(labels.labels(graph) >= 0)

    def unmatched(self, graph: SceneGraph, similarity: float) -> str:
        """One line about the names of a graph that have no match, with the nearest labels of the model."""
        labels = self.label_map(graph.vocabulary, similarity)
        lost = sorted({name for name in graph.names if labels[name].target is None})
        parts = []
        for name in lost[:5]:
            near = get_close_matches(name, self.vocabulary.objects, n=2, cutoff=0.75)
            parts.append(f"{name!r:.40}" + (f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""))
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        return f"{UNMATCHED} {', '.join(parts)}{more}"
