"""Any label names -> the model's labels, by one rule for every caller.

A name that the model has stays as it is, whatever its number. Any other goes by the label map (a table for COCO's 80
labels, then rules, then word vectors). A box whose name has no match is left out, and that is reported.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np

from scenegpi.data.detector_results import NO_LABEL
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.label_map import LabelMap

MAX_MAPS = 64
UNMATCHED = "no label of the model matches"


class ModelWords:
    """Brings graphs to one vocabulary.

    Args:
        vocabulary: the model's.
        similarity: least cosine for a match by word vectors; above 1 nothing is guessed.
    """

    def __init__(self, vocabulary: Vocabulary, similarity: float) -> None:
        self.vocabulary, self.similarity = vocabulary, similarity
        self._maps: dict[Vocabulary, LabelMap] = {}

    def label_map(self, source: Vocabulary) -> LabelMap:
        """From the names of a vocabulary to the model's labels."""
        if source not in self._maps:
            if len(self._maps) >= MAX_MAPS:  # a stream of images with a vocabulary each
                self._maps.clear()
            self._maps[source] = LabelMap.between(source, self.vocabulary, threshold=self.similarity)
        return self._maps[source]

    def __call__(self, graph: SceneGraph) -> SceneGraph:
        """The boxes of a graph in the model's vocabulary, without relations and without boxes that have no match."""
        if graph.vocabulary is self.vocabulary or graph.vocabulary == self.vocabulary:
            return graph
        if graph.vocabulary.objects == (NO_LABEL,):
            zeros = np.zeros(len(graph), dtype=np.int32)
            return SceneGraph(graph.boxes, zeros, self.vocabulary, scores=graph.scores, **_image(graph))
        return self.label_map(graph.vocabulary).apply(graph)

    def unmatched(self, graph: SceneGraph) -> str:
        """One line about the names of a graph that have no match, with the nearest labels of the model."""
        labels = self.label_map(graph.vocabulary)
        lost = sorted({name for name in graph.names if labels[name].target is None})
        parts = []
        for name in lost[:5]:
            near = get_close_matches(name, self.vocabulary.objects, n=2, cutoff=0.75)
            parts.append(f"{name!r:.40}" + (f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""))
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        return f"{UNMATCHED} {', '.join(parts)}{more}"


def _image(graph: SceneGraph) -> dict[str, Any]:
    return {"image_id": graph.image_id, "file": graph.file, "width": graph.width, "height": graph.height}
