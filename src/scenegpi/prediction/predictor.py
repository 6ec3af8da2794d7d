"""Predictor: a model and a finder of boxes; images and options in, scene graphs out.

The steps for one image: boxes (given, or found in the photo) -> the model's labels -> score floor, NMS, at most N boxes
-> labels by pixels and given labels (`evidence`) -> a flat batch -> the model -> a graph (`decode`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scenegpi.boxes import suppress
from scenegpi.data.detector_results import NO_LABEL, Names
from scenegpi.errors import DataError, GraphError, counted
from scenegpi.features.arrays import IMAGES, PAIRS, SceneArrays
from scenegpi.graph import SceneGraph
from scenegpi.prediction.decode import decode
from scenegpi.prediction.evidence import add_pixels, evidence
from scenegpi.prediction.finding import FinderSpec, check_finder, found_graph, load_finder
from scenegpi.prediction.inputs import Item, ItemPhoto, boxes_graph, check_given, held_bytes, sized
from scenegpi.prediction.model import Backend, Model, Task, open_model
from scenegpi.prediction.model_words import ModelWords
from scenegpi.prediction.options import PredictOptions
from scenegpi.vision.detect import Detector
from scenegpi.vision.photos import EncodedPhoto
from scenegpi.vocabulary import Vocabulary

PIXELS = 1 << 26
"""Bytes of photos in a batch."""
log = logging.getLogger("scenegpi")


@dataclass
class Prediction:
    """The result for an item: a `graph`, or a `problem` in one line.

    `task` is the model's task; `photo_read` says whether the network read the photo, `why_unread` why it did
    not; `vocabulary` and `names` (a count of each) are the given labels of the boxes, before mapping; `kept`
    (N,) are the rows of the given or found boxes that the graph has, in its order; `left_out` counts the others, by
    reason.
    """

    item: Item
    graph: SceneGraph | None = None
    problem: str = ""
    task: Task | None = None
    photo_read: bool = False
    why_unread: str = ""
    vocabulary: Vocabulary | None = None
    names: Counter[str] = field(default_factory=Counter)
    kept: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    left_out: Counter[str] = field(default_factory=Counter)


class Predictor:
    """Scene graphs of images: `predictor(...)` for one, `predictor.stream(items)` for many.

    Args:
        model: a name that ships, a folder, an ONNX file, or a loaded model.
        finder: finds boxes in photos that come without boxes: a detector, or the name of one (`prediction.finding`;
            DataError that says what to install if it is missing). By default the model's own, or that of the shipped
            photo model. It is loaded when it is first needed.
        options: the default for calls and items without their own.
        device: where the model runs, in torch's notation.
        backend: "torch", or "onnx" to run on the CPU without torch (extra `[onnx]`, docs/onnx.md); by default as the
            model is stored.
    """

    def __init__(
        self,
        model: Model | str | Path,
        finder: Detector | FinderSpec | str | None = None,
        options: PredictOptions | None = None,
        device: Any = "cpu",
        backend: Backend | None = None,
    ) -> None:
        if isinstance(finder, str | FinderSpec):
            check_finder(finder)  # reported once here, not for each photo
        self.model, self.device = open_model(model, backend, device), device
        self.options = options or PredictOptions()
        self.words = ModelWords(self.model.vocabulary)
        self.counts = self.model.relation_counts
        self._finder = finder

    @property
    def finder(self) -> Detector:
        """What finds boxes; loaded once."""
        if self._finder is None or isinstance(self._finder, str | FinderSpec):
            self._finder = load_finder(self._finder, self.model, self.device)
        return self._finder

    def encode(self, photo: Any) -> EncodedPhoto:
        """A photo for many calls: it is opened once, and the networks' features of the whole photo are computed once.

        Pass it wherever a photo is accepted: `predictor(photo, boxes)`, `Item(photo)`.
        """
        return EncodedPhoto.of(photo)

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
        options: PredictOptions | None = None,
        **changed: Any,
    ) -> SceneGraph:
        """The scene graph of one image; any of its parts may be missing.

        Args:
            image: the photo: a file, a Pillow image, an (H, W, 3) array of bytes, or what `encode` made of one.
            boxes: (N, 4) x1, y1, x2, y2 in pixels, or a detector's result (see `scenegpi.data.detector_results`).
            labels: N names, mapped to the model's words; or numbers. A box whose name has no match is left out, with
                a warning.
            scores: (N,) how sure the labels are. With scores and a photo a label may change.
            label_dist: (N, C) distributions over the model's labels instead of labels; the model corrects them.
            names: class names by number, for a detector that gives only numbers.
            width, height: of the image that the boxes refer to; by default the size of the photo, or without a
                photo just large enough for the boxes.
            options: for this call; by default the predictor's.
            changed: fields of the options that differ: `predictor(photo, informative=0.5, top=5)`.
        """
        if boxes is None and (labels is not None or scores is not None or label_dist is not None):
            raise GraphError("boxes: labels, scores and distributions need boxes")
        if boxes is None and image is None:
            raise GraphError("image: give a photo, boxes, or both")
        graph = None
        if boxes is not None:
            told: dict[str, Any] = {"labels": labels, "scores": scores, "label_dist": label_dist, "names": names}
            graph = boxes_graph(boxes, self.model.vocabulary, **told, width=width, height=height)
        chosen = replace(options or self.options, **changed)
        prediction = next(self.stream([Item(image, graph, options=chosen)]))
        if prediction.graph is None:
            raise GraphError(prediction.problem)
        if boxes is not None and prediction.names and not len(prediction.graph):
            raise GraphError(f"boxes: all were left out: {'; '.join(prediction.left_out)}")
        for reason, count in prediction.left_out.items():
            log.warning("%d of %s left out: %s", count, counted(prediction.names.total(), "box"), reason)
        return prediction.graph

    def stream(self, items: Iterable[Any]) -> Iterator[Prediction]:
        """A prediction for each item, in order: an `Item`, a graph of boxes, or a photo in any form.

        Files are opened one at a time; graphs are held until a batch is full, as are photos that were given as
        pixels, up to 64 MB. An image that fails has a `problem`.
        """
        waiting: list[Prediction] = []
        ready: list[SceneGraph] = []
        task: Task | None = None
        options = self.options
        pairs = pixels = 0
        for value in items:
            prediction = Prediction(Item.of(value))
            held = held_bytes(prediction.item.photo)
            graph = self._prepared(prediction)
            size = 0 if graph is None else len(graph) * (len(graph) - 1)
            mine = self._options(prediction.item)
            other = graph is not None and task is not None and (prediction.task != task or mine != options)
            if waiting and (other or pairs + size > PAIRS or pixels + held > PIXELS or len(waiting) >= IMAGES):
                yield from self._answers(waiting, ready, task, options)
                waiting, ready, task, pairs, pixels = [], [], None, 0, 0
            waiting.append(prediction)
            pixels += held
            if graph is not None:
                ready.append(graph)
                task, options, pairs = prediction.task, mine, pairs + size
        yield from self._answers(waiting, ready, task, options)

    def prepare(self, item: Any) -> tuple[SceneGraph, Task]:
        """The graph of one image as the model takes it, and the task; GraphError if anything is wrong."""
        prediction = Prediction(Item.of(item))
        graph = self._prepared(prediction)
        if graph is None or prediction.task is None:
            raise GraphError(prediction.problem)
        return graph, prediction.task

    def _options(self, item: Item) -> PredictOptions:
        return item.options or self.options

    def _answers(
        self, waiting: list[Prediction], ready: list[SceneGraph], task: Task | None, options: PredictOptions
    ) -> Iterator[Prediction]:
        """Predicts the graphs of one batch, for the predictions that have no problem."""
        if task is not None:
            scenes = SceneArrays.of(ready, given_labels=task == "predcls")
            nodes, edges = self.model.distributions(scenes, task)
            found = decode(ready, scenes, nodes, edges, task, options, self.counts)
            for prediction, graph in zip((each for each in waiting if not each.problem), found, strict=True):
                prediction.graph = graph
                if graph is None:
                    prediction.problem = f"{prediction.item.name}: the model's output is not finite"
        yield from waiting

    def _prepared(self, prediction: Prediction) -> SceneGraph | None:
        """Boxes in the model's vocabulary, with label distributions where labels are predicted; or a problem."""
        if prediction.item.graph is None and prediction.item.photo is not None:
            self.finder  # noqa: B018  a detector that cannot be loaded is no problem of this photo: DataError
        try:
            return self._graph(prediction)
        except (DataError, GraphError) as error:
            name = prediction.item.name
            prediction.problem = str(error) if str(error).startswith(name) else f"{name}: {error}"
            return None

    def _graph(self, prediction: Prediction) -> SceneGraph:
        item, vision = prediction.item, self.model.vision
        photo = None if item.photo is None else ItemPhoto(item.photo)
        graph, seen = item.graph, False
        if graph is None:
            if photo is None:
                raise GraphError("no boxes and no photo")
            graph = self._found(photo.encoded)
            seen = graph.label_dist is not None
        else:
            check_given(graph)
        source = prediction.vocabulary = graph.vocabulary
        prediction.names.update(graph.names)
        graph = self._chosen(graph, prediction)
        means = self._options(item).labels
        prediction.task, reads_photo = evidence(
            graph, source, means, photo=photo is not None, vision=vision is not None
        )
        prediction.photo_read = seen
        if reads_photo and photo is not None and vision is not None and len(graph):
            encoded = photo.encoded  # before asking for its size, which would open it again
            graph = add_pixels(vision, encoded, sized(graph, photo), labelled=source.objects != (NO_LABEL,))
            prediction.photo_read = True
        elif photo is not None and not seen:
            given = "label distributions are" if graph.label_dist is not None else "labels without scores are taken as"
            prediction.why_unread = "this model uses boxes and labels only" if vision is None else f"{given} given"
        return sized(graph, photo)

    def _found(self, photo: EncodedPhoto) -> SceneGraph:
        """The finder's boxes, in pixels of the file: a very large one is read at a smaller size."""
        finder = self.finder
        encoded = getattr(finder, "detect_encoded", None)
        found = photo.once(finder, lambda: finder.detect(photo.pixels) if encoded is None else encoded(photo))
        graph = found_graph(found, self.model.vocabulary)
        (width, height), (tall, wide) = photo.size, photo.pixels.shape[:2]
        if (width, height) == (wide, tall):
            return graph
        return graph.replace(boxes=graph.boxes * ([width / wide, height / tall] * 2), width=width, height=height)

    def _chosen(self, graph: SceneGraph, prediction: Prediction) -> SceneGraph:
        """The boxes that the model takes, in its vocabulary; the others are counted."""
        options, left_out = self._options(prediction.item), prediction.left_out
        prediction.kept = np.arange(len(graph))

        def keep(graph: SceneGraph, rows: NDArray[np.int64], reason: str) -> SceneGraph:
            if len(rows) == len(graph):
                return graph
            left_out[reason] += len(graph) - len(rows)
            prediction.kept = prediction.kept[rows]
            return graph.subset(rows)

        if options.min_score > 0 and graph.scores is not None:
            rows = np.flatnonzero(graph.scores >= options.min_score)
            graph = keep(graph, rows, f"score below {options.min_score:g}")
        mapped, rows = self.words(graph, options.similarity)
        if len(mapped) < len(graph):
            left_out[self.words.unmatched(graph, options.similarity)] += len(graph) - len(mapped)
            prediction.kept = prediction.kept[rows]
        graph = mapped
        if options.nms < 1:
            rows = np.sort(suppress(graph.boxes, graph.scores, graph.labels, options.nms))
            graph = keep(graph, rows, "overlap with a better box")
        if len(graph) > options.max_boxes:
            weight = np.zeros(len(graph)) if graph.scores is None else -graph.scores
            rows = np.sort(np.argsort(weight, kind="stable")[: options.max_boxes])
            graph = keep(graph, rows, f"more than {options.max_boxes} in the image")
        return graph
