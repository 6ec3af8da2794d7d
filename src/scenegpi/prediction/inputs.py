"""What a caller has of an image -> one `Item`: a photo, a graph of boxes, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scenegpi.data.detector_results import Names, graph_of, is_detection
from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary


@dataclass(frozen=True)
class Item:
    """One image to predict.

    Args:
        photo: a file, a Pillow image, or an (H, W, 3) array of bytes; None where there is none.
        graph: its boxes, with or without labels, scores and distributions, in any vocabulary. Relations are ignored.
        key: what it is called in messages.
    """

    photo: Any = None
    graph: SceneGraph | None = None
    key: str = ""

    @property
    def name(self) -> str:
        """What to call it in messages."""
        if self.key:
            return self.key
        if isinstance(self.photo, str | Path):
            return str(self.photo)
        if self.graph is not None and (self.graph.image_id is not None or self.graph.file is not None):
            return str(self.graph.file if self.graph.image_id is None else self.graph.image_id)
        return "image"

    @classmethod
    def of(cls, value: Any) -> Item:
        """An item as it is, a graph, or a photo in any form."""
        if isinstance(value, Item):
            return value
        return cls(graph=value) if isinstance(value, SceneGraph) else cls(photo=value)


def boxes_graph(
    boxes: Any,
    vocabulary: Vocabulary,
    *,
    labels: Sequence[str] | ArrayLike | None = None,
    scores: ArrayLike | None = None,
    label_dist: ArrayLike | None = None,
    names: Names | None = None,
    width: int | None = None,
    height: int | None = None,
) -> SceneGraph:
    """Boxes of one image as a graph, in the vocabulary of their labels; numbers and distributions are the model's.

    Args:
        boxes: (N, 4) x1, y1, x2, y2, or a detector's result (see `scenegpi.data.detector_results`).
        vocabulary: the model's.
        labels: N names in any words, or numbers: of `names` where that is given, else of the model's vocabulary.
        scores: (N,) how sure the labels are.
        label_dist: (N, C) over the model's labels, instead of labels.
        names: class names by number.
        width, height: of the image.
    """
    size: dict[str, Any] = {"width": width, "height": height}
    if label_dist is not None:
        if labels is not None or scores is not None or is_detection(boxes):
            raise GraphError("label_dist: give either labels or label_dist")
        dist = np.asarray(label_dist, dtype=np.float32)
        if dist.ndim != 2:
            raise GraphError(f"label_dist: shape {dist.shape}, expected (boxes, labels)")
        best = dist.argmax(axis=1) if dist.size else np.zeros(len(dist), dtype=np.int32)
        return SceneGraph(boxes, best, vocabulary, label_dist=dist, **size)
    words: list[Any] | None = None if labels is None else list(labels)  # type: ignore[arg-type]
    if words is not None and not any(isinstance(word, str) for word in words):
        table = vocabulary if names is None else _table(names)
        return SceneGraph(boxes, np.asarray(words, dtype=np.int64), table, scores=scores, **size)
    graph = graph_of(boxes, names, labels=words, **size)
    if words is None and any(name.startswith("class ") for name in graph.vocabulary.objects):
        raise GraphError("labels: class numbers without names, which a model needs; give names=[...]")
    return graph if scores is None else graph.replace(scores=scores)


def _table(names: Names) -> Vocabulary:
    if isinstance(names, Sequence):
        return Vocabulary(tuple(names))
    return Vocabulary(tuple(names.get(k, f"class {k}") for k in range(max(names, default=-1) + 1)))
