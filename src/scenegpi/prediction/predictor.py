"""Predictor: a model, maybe a finder of boxes, and options; images in, scene graphs out.

The walk of one image: boxes (given, or found in the photo) -> the model's labels -> score floor, NMS, at most N boxes
-> labels by pixels and given labels (`evidence`) -> a flat batch -> the model -> a graph (`decode`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scenegpi.boxes import suppress
from scenegpi.data.detector_results import NO_LABEL, Names
from scenegpi.data.images import photo_size
from scenegpi.errors import DataError, GraphError, counted
from scenegpi.features.arrays import IMAGES, PAIRS, SceneArrays
from scenegpi.graph import SceneGraph
from scenegpi.prediction.decode import decode
from scenegpi.prediction.defaults import default_model
from scenegpi.prediction.evidence import Evidence, add_pixels, evidence
from scenegpi.prediction.finding import check_finder, found_graph, load_finder
from scenegpi.prediction.inputs import Item, boxes_graph
from scenegpi.prediction.model import Backend, Model, Task, open_model
from scenegpi.prediction.model_words import ModelWords
from scenegpi.prediction.options import PredictOptions
from scenegpi.vision.detect import Detector
from scenegpi.vision.photos import Photo, as_photo
from scenegpi.vocabulary import Vocabulary

PIXELS = 1 << 26
"""Bytes of photos in a batch."""
log = logging.getLogger("scenegpi")


@dataclass
class Prediction:
    """What became of an item: a `graph`, or a `problem` in one line.

    `photo_read` says whether the network read the photo, `why_unread` why it did not; `vocabulary` and `names` (a count
    of each) are the given labels of the boxes, before they were mapped; `left_out` counts boxes that were not used, by
    reason.
    """

    item: Item
    graph: SceneGraph | None = None
    problem: str = ""
    photo_read: bool = False
    why_unread: str = ""
    vocabulary: Vocabulary | None = None
    names: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


class Predictor:
    """Scene graphs of images: `predictor(...)` for one, `predictor.stream(items)` for many.

    Args:
        model: a name that ships, a folder, an ONNX file, or a loaded model.
        finder: finds boxes in photos that come without any: a detector, or the name of one (DataError that says what
            to install where it is missing). By default the model's own, or that of the shipped photo model. It is
            loaded when it is first needed.
        options: see PredictOptions.
        device: where the model runs, as torch names it.
        backend: "torch", or "onnx" to run on the CPU without torch (extra `[onnx]`, docs/onnx.md); by default as the
            model is stored.
    """

    def __init__(
        self,
        model: Model | str | Path,
        finder: Detector | str | None = None,
        options: PredictOptions | None = None,
        device: Any = "cpu",
        backend: Backend | None = None,
    ) -> None:
        if isinstance(finder, str):
            check_finder(finder)  # said once here, not once for each photo
        self.model, self.device = open_model(model, backend, device), device
        self.options = options or PredictOptions()
        self.words = ModelWords(self.model.vocabulary, self.options.similarity)
        self.counts = self.model.relation_counts
        self._finder = finder

    @property
    def finder(self) -> Detector:
        """What finds boxes; loaded once."""
        if self._finder is None or isinstance(self._finder, str):
            self._finder = load_finder(self._finder, self.model)
        return self._finder

    def __call__(
        self,
        image: Any = None,
        boxes: Any = None,
        labels: Sequence[str] | ArrayLike | None = None,
        scores: ArrayLike | None = None,
        *,
        label_dist: ArrayLike | None = None,
        names: Names | None = None,
        width: int | None = None,
        height: int | None = None,
    ) -> SceneGraph:
        """The scene graph of one image; any of its parts may be missing.

        Args:
            image: the photo: a file, a Pillow image, or an (H, W, 3) array of bytes.
            boxes: (N, 4) x1, y1, x2, y2 in pixels, or a detector's result (see `scenegpi.data.detector_results`).
            labels: N names, mapped to the model's words; or numbers. A box whose name has no match is left out, with
                a warning.
            scores: (N,) how sure the labels are. With scores and a photo a label may change.
            label_dist: (N, C) distributions over the model's labels instead of labels; the model corrects them.
            names: class names by number, where a detector gave numbers only.
            width, height: of the image that the boxes refer to; where not given, the size of the photo, or without
                one the image ends where its boxes do.
        """
        if boxes is None and (labels is not None or scores is not None or label_dist is not None):
            raise GraphError("boxes: labels, scores and distributions need boxes")
        if boxes is None and image is None:
            raise GraphError("image: give a photo, boxes, or both")
        graph = None
        if boxes is not None:
            graph = boxes_graph(
                boxes,
                self.model.vocabulary,
                labels=labels,
                scores=scores,
                label_dist=label_dist,
                names=names,
                width=width,
                height=height,
            )
        prediction = next(self.stream([Item(image, graph)]))
        if prediction.graph is None:
            raise GraphError(prediction.problem)
        if boxes is not None and prediction.names and not len(prediction.graph):
            raise GraphError(f"boxes: none left: {'; '.join(prediction.left_out)}")
        for reason, count in prediction.left_out.items():
            log.warning("%d of %s left out: %s", count, counted(prediction.names.total(), "box"), reason)
        return prediction.graph

    def stream(self, items: Iterable[Any]) -> Iterator[Prediction]:
        """A prediction for each item, in order: an `Item`, a graph of boxes, or a photo in any form.

        Files are opened one at a time; graphs are held until a batch is full, and with them photos that were given as
        pixels, up to 64 MB. An image that fails has a `problem`.
        """
        waiting: list[Prediction] = []
        ready: list[SceneGraph] = []
        task: Task | None = None
        pairs = pixels = 0
        for value in items:
            prediction = Prediction(Item.of(value))
            held = _bytes(prediction.item.photo)
            graph, found = self._prepared(prediction)
            size = 0 if graph is None else len(graph) * (len(graph) - 1)
            other = found is not None and task is not None and found.task != task
            if waiting and (other or pairs + size > PAIRS or pixels + held > PIXELS or len(waiting) >= IMAGES):
                yield from self._answers(waiting, ready, task)
                waiting, ready, task, pairs, pixels = [], [], None, 0, 0
            waiting.append(prediction)
            pixels += held
            if graph is not None and found is not None:
                ready.append(graph)
                task, pairs = found.task, pairs + size
        yield from self._answers(waiting, ready, task)

    def prepare(self, item: Any) -> tuple[SceneGraph, Task]:
        """The graph of one image as the model reads it, and by which task; GraphError where something is wrong."""
        prediction = Prediction(Item.of(item))
        graph, found = self._prepared(prediction)
        if graph is None or found is None:
            raise GraphError(prediction.problem)
        return graph, found.task

    def _answers(self, waiting: list[Prediction], ready: list[SceneGraph], task: Task | None) -> Iterator[Prediction]:
        """Predicts the graphs of one batch and gives them to the predictions that have no problem."""
        if task is not None:
            scenes = SceneArrays.of(ready, given_labels=task == "predcls")
            nodes, edges = self.model.distributions(scenes, task)
            found = decode(ready, scenes, nodes, edges, task, self.options, self.counts)
            for prediction, graph in zip((each for each in waiting if not each.problem), found, strict=True):
                prediction.graph = graph
                if graph is None:
                    prediction.problem = f"{prediction.item.name}: the model's answer is not finite"
        yield from waiting

    def _prepared(self, prediction: Prediction) -> tuple[SceneGraph | None, Evidence | None]:
        """Boxes in the model's words, with label distributions where labels are found; or a problem."""
        try:
            return self._graph(prediction)
        except (DataError, GraphError) as error:
            name = prediction.item.name
            prediction.problem = str(error) if str(error).startswith(name) else f"{name}: {error}"
            return None, None

    def _graph(self, prediction: Prediction) -> tuple[SceneGraph, Evidence]:
        item, vision = prediction.item, self.model.vision
        photo = None if item.photo is None or isinstance(item.photo, str | Path) else as_photo(item.photo)
        graph, seen = item.graph, False
        if graph is None:
            if item.photo is None:
                raise GraphError("neither boxes nor a photo")
            photo = as_photo(item.photo) if photo is None else photo
            graph = self._found(photo, item)
            seen = graph.label_dist is not None
        source = prediction.vocabulary = graph.vocabulary
        prediction.names.update(graph.names)
        graph = self._sized(self._chosen(graph, prediction), item, photo)
        found = evidence(graph, source, self.options.labels, photo=item.photo is not None, vision=vision is not None)
        if found.reads_photo and vision is not None and len(graph):
            photo = as_photo(item.photo) if photo is None else photo
            labelled = source.objects != (NO_LABEL,)
            graph = add_pixels(vision, photo, graph, labelled)
            prediction.photo_read = True
        elif seen:
            prediction.photo_read = True
        elif item.photo is not None:
            prediction.why_unread = (
                "this model uses boxes and labels only"
                if vision is None
                else "label distributions are given"
                if graph.label_dist is not None
                else "labels without scores are taken as given"
            )
        return graph, found

    def _found(self, photo: Photo, item: Item) -> SceneGraph:
        """The finder's boxes, in pixels of the file: a very large one is read at a smaller size."""
        graph = found_graph(self.finder.detect(photo), self.model.vocabulary)
        width, height = _size(item, photo)
        if (width, height) == (photo.shape[1], photo.shape[0]):
            return graph
        scale = [width / photo.shape[1], height / photo.shape[0]] * 2
        return graph.replace(boxes=graph.boxes * scale, width=width, height=height)

    def _chosen(self, graph: SceneGraph, prediction: Prediction) -> SceneGraph:
        """The boxes that the model reads, in its words; the others are counted."""
        options, left_out = self.options, prediction.left_out
        if options.min_score > 0 and graph.scores is not None:
            kept = np.flatnonzero(graph.scores >= options.min_score)
            graph = _subset(graph, kept, left_out, f"score below {options.min_score:g}")
        mapped = self.words(graph)
        if len(mapped) < len(graph):
            left_out[self.words.unmatched(graph)] += len(graph) - len(mapped)
        graph = mapped
        if options.nms < 1:
            kept = np.sort(suppress(graph.boxes, graph.scores, graph.labels, options.nms))
            graph = _subset(graph, kept, left_out, "overlap with a better box")
        if len(graph) > options.max_boxes:
            weight = np.zeros(len(graph)) if graph.scores is None else -graph.scores
            kept = np.sort(np.argsort(weight, kind="stable")[: options.max_boxes])
            graph = _subset(graph, kept, left_out, f"more than {options.max_boxes} in the image")
        return graph

    def _sized(self, graph: SceneGraph, item: Item, photo: Photo | None) -> SceneGraph:
        """With the size of the photo where the graph has none, and its name."""
        changes: dict[str, Any] = {}
        if item.photo is not None and (graph.width is None or graph.height is None):
            width, height = _size(item, photo)
            changes = {"width": graph.width or width, "height": graph.height or height}
        if graph.file is None and isinstance(item.photo, str | Path):
            changes["file"] = Path(item.photo).name
        return graph.replace(**changes) if changes else graph


def _bytes(photo: Any) -> int:
    """Memory of a photo that was given as pixels; of a file, none."""
    if isinstance(photo, np.ndarray):
        return photo.nbytes
    return 3 * photo.width * photo.height if hasattr(photo, "width") else 0


def _size(item: Item, photo: Photo | None) -> tuple[int, int]:
    """Width and height of an item's photo: as the file has them, or the array."""
    if photo is None or isinstance(item.photo, str | Path):
        return photo_size(item.photo)
    return photo.shape[1], photo.shape[0]


def _subset(graph: SceneGraph, kept: NDArray[np.int64], left_out: Counter[str], reason: str) -> SceneGraph:
    if len(kept) == len(graph):
        return graph
    left_out[reason] += len(graph) - len(kept)
    return graph.subset(kept)


def predict(image: Any = None, boxes: Any = None, labels: Any = None, scores: Any = None, **how: Any) -> SceneGraph:
    """The scene graph of one image, by a shipped model that suits it: `predict("photo.jpg")`.

    Arguments as of `Predictor.__call__`; and `model`, a name or a folder, instead of the default.
    """
    model = how.pop("model", None)
    if model is not None and not isinstance(model, str | Path):
        return Predictor(model)(image, boxes, labels, scores, **how)
    if model is None:
        given = None
        if boxes is not None:
            words = list(labels) if labels is not None else None
            if words and how.get("names") is None and not any(isinstance(word, str) for word in words):
                raise GraphError("labels: numbers need the model that they belong to, or names=[...]")
            given = boxes_graph(boxes, Vocabulary(()), labels=words, scores=scores, names=how.get("names"))
        vocabulary = None if given is None else given.vocabulary
        model, _ = default_model(image is not None, vocabulary, given is not None and given.scores is not None)
    return _predictor(str(model))(image, boxes, labels, scores, **how)


@lru_cache(maxsize=4)
def _predictor(model: str) -> Predictor:
    return Predictor(model)
