"""A caller's image in any form -> one `Item`: a photo, a graph of boxes, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scenegpi.checks import numbers
from scenegpi.data.class_names import in_order
from scenegpi.data.detector_results import Names, graph_of, is_detection
from scenegpi.data.images import photo_size
from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.prediction.options import PredictOptions
from scenegpi.vision.photos import EncodedPhoto
from scenegpi.vocabulary import Vocabulary

ROUNDING = 1e-6


@dataclass(frozen=True)
class Item:
    """One image to predict.

    Args:
        photo: a file, a Pillow image, an (H, W, 3) array of bytes, or what `Predictor.encode` made of one; or None.
        graph: its boxes, with or without labels, scores and distributions, in any vocabulary. Relations are ignored.
        key: its name in messages.
        options: for this image; by default the predictor's.
        data: any value for the caller, such as the ground truth; it is not read.
    """

    photo: Any = None
    graph: SceneGraph | None = None
    key: str = ""
    options: PredictOptions | None = None
    data: Any = None

    @property
    def name(self) -> str:
        """Its name in messages."""
        if self.key:
            return self.key
        if isinstance(self.photo, str | Path):
            return str(self.photo)
        if isinstance(self.photo, EncodedPhoto) and self.photo.path:
            return str(self.photo.path)
        return "image" if self.graph is None or self.graph.key is None else str(self.graph.key)

    @classmethod
    def of(cls, value: Any) -> Item:
        """An item as it is, a graph, or a photo in any form."""
        if isinstance(value, Item):
            return value
        return cls(graph=value) if isinstance(value, SceneGraph) else cls(photo=value)


class ItemPhoto:
    """The photo of an item; a file is opened once, when first needed."""

    def __init__(self, given: Any) -> None:
        self.given = given
        if not isinstance(given, str | Path):
            _ = self.encoded  # raises at once if this is not a photo

    @cached_property
    def encoded(self) -> EncodedPhoto:
        return EncodedPhoto.of(self.given)

    @property
    def size(self) -> tuple[int, int]:
        return self.encoded.size if "encoded" in self.__dict__ else photo_size(self.given)

    @property
    def path(self) -> Path | None:
        return Path(self.given) if isinstance(self.given, str | Path) else self.encoded.path


def sized(graph: SceneGraph, photo: ItemPhoto | None) -> SceneGraph:
    """The graph with the photo's name, its path, and its size unless the graph has a size."""
    if photo is None:
        return graph
    changes: dict[str, Any] = {}
    if graph.width is None or graph.height is None:
        width, height = photo.size
        changes = {"width": graph.width or width, "height": graph.height or height}
    if graph.file is None and photo.path is not None:
        changes["file"] = photo.path.name
    graph = graph.replace(**changes) if changes else graph
    return graph if photo.path is None else graph.with_fields(photo=str(photo.path.absolute()))


def resized(graph: SceneGraph, width: int | None, height: int | None) -> SceneGraph:
    """The boxes, scaled to another size of the same image; unchanged if it is the same or unknown."""
    if not width or not height or (graph.width, graph.height) == (width, height):
        return graph
    scale = [width / (graph.width or width), height / (graph.height or height)] * 2
    return graph.replace(boxes=graph.boxes * scale, width=width, height=height)


def held_bytes(photo: Any) -> int:
    """Bytes in memory of a photo that was given as pixels or as a file's content; 0 for a path."""
    if isinstance(photo, bytes):
        return len(photo)
    if isinstance(photo, EncodedPhoto):
        photo = photo.pixels
    if isinstance(photo, np.ndarray):
        return photo.nbytes
    return 3 * photo.width * photo.height if hasattr(photo, "width") else 0


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
        labels: N names, in any vocabulary, or numbers in `names` (by default in the model's vocabulary).
        scores: (N,) how sure the labels are.
        label_dist: (N, C) over the model's labels, instead of labels.
        names: class names by number.
        width, height: of the image.
    """
    size: dict[str, Any] = {"width": width, "height": height}
    if label_dist is not None:
        if labels is not None or scores is not None or is_detection(boxes):
            raise GraphError("label_dist: give either labels or label_dist")
        dist = numbers(label_dist, "label_dist").astype(np.float32)
        if dist.ndim != 2:
            raise GraphError(f"label_dist: shape {dist.shape}, expected (boxes, labels)")
        best = dist.argmax(axis=1) if dist.size else np.zeros(len(dist), dtype=np.int32)
        return SceneGraph(boxes, best, vocabulary, label_dist=dist, **size)
    words = None if labels is None else label_list(labels)
    if words is not None and not any(isinstance(word, str) for word in words):
        table = vocabulary if names is None else _table(names)
        given: Any = labels if hasattr(labels, "detach") else words
        graph = SceneGraph(boxes, given, table, scores=scores, **size)
    else:
        graph = graph_of(boxes, names, labels=words, **size)
        if words is None and any(name.startswith("class ") for name in graph.vocabulary.objects):
            raise GraphError("labels: class numbers without names, which a model needs; give names=[...]")
        graph = graph if scores is None else graph.replace(scores=scores)
    return graph


def check_given(graph: SceneGraph) -> None:
    """GraphError for scores and distributions of given boxes that are no probabilities, such as percent or logits."""
    scores, dist = graph.scores, graph.label_dist
    if scores is not None and ((scores < 0) | (scores > 1 + ROUNDING)).any():
        row = int(np.flatnonzero((scores < 0) | (scores > 1 + ROUNDING))[0])
        raise GraphError(f"scores[{row}]: {scores[row]:g} is not between 0 and 1")
    if dist is not None and (dist < 0).any():
        raise GraphError(f"label_dist[{np.argwhere(dist < 0)[0][0]}]: a negative number")


def label_list(labels: Any) -> list[Any]:
    """Labels one by one; GraphError if they are not a sequence."""
    if isinstance(labels, str | bytes) or not hasattr(labels, "__iter__"):
        raise GraphError(f"labels: expected one for each box, found {labels!r:.60}")
    return list(labels)


def _table(names: Names) -> Vocabulary:
    if isinstance(names, Sequence):
        return Vocabulary(tuple(names))
    return Vocabulary(in_order("labels", names))
