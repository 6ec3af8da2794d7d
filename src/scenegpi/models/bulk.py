"""Many images -> graphs: photos, boxes from anywhere, or both, through the one path of `predict_seen`.

    engine = Engine(load_model("vg150-layout"))
    for outcome in engine.run([Item("a", graph=graph), Item("b", photo=Path("b.jpg"), graph=boxes)]):
        print(outcome.graph or outcome.problem)

Of each image: boxes (given, or found by a detector) -> floor, label map, suppression, at most so many -> the model.
What is wrong with an image is its `problem`, one line; the others don't notice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.data.detector_results import NO_LABEL, graph_of
from scenegpi.errors import DataError, GraphError
from scenegpi.features.batch import Seen
from scenegpi.graph import SceneGraph
from scenegpi.models.build import SceneModel
from scenegpi.models.grouping import IMAGES, PAIRS
from scenegpi.models.predict import Task, predict_seen
from scenegpi.models.sight import see
from scenegpi.options import bounded
from scenegpi.vision.detect import Detector, suppress
from scenegpi.vision.photos import Photo, open_photo
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.label_map import THRESHOLD, LabelMap

UNLABELLED = (NO_LABEL,)


@dataclass(frozen=True)
class Choices:
    """What happens to boxes before the model sees them, and to what it says.

    Args:
        refine_labels: the model may change labels (given scores become distributions); else they are kept.
        nms: suppress boxes of one label that overlap a better one by more than this; 1 keeps all.
        max_boxes: of an image with more boxes, the best so many.
        min_score: boxes that score less are left out.
        top: relations of an image, the best so many.
        min_relation: and only those that are at least this probable, given their two objects.
        similarity: how alike word vectors must find two labels (see LabelMap); above 1 nothing is guessed.
        distributions: keep the whole distributions of labels and pairs.
    """

    refine_labels: bool = False
    nms: float = bounded(1.0, 0.0, 1.0)
    max_boxes: int = bounded(64, 1, 1024)
    min_score: float = bounded(0.0, 0.0, 1.0)
    top: int = bounded(20, 0, 10_000)
    min_relation: float = bounded(0.1, 0.0, 1.0)
    similarity: float = bounded(THRESHOLD, -1.0, 2.0)
    distributions: bool = False


@dataclass(frozen=True)
class Item:
    """One image to predict: `key` names it, and it has a photo, a graph of boxes, or both."""

    key: str
    photo: Path | None = None
    graph: SceneGraph | None = None


@dataclass
class Outcome:
    """What became of an item: a `graph`, or a `problem` in one line.

    `names` counts the given labels of its boxes (before mapping), `left_out` the boxes that were not used, by reason.
    """

    item: Item
    graph: SceneGraph | None = None
    problem: str = ""
    vocabulary: Vocabulary | None = None
    names: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


class Engine:
    """A model, maybe a detector, and the choices: items in, outcomes out, in their order.

    Args:
        model: from `load_model`.
        detector: finds boxes in photos that come without any.
        choices: see Choices.
    """

    def __init__(self, model: SceneModel, detector: Detector | None = None, choices: Choices | None = None) -> None:
        self.model, self.detector = model, detector
        self.choices = choices or Choices()
        self._maps: dict[Vocabulary, LabelMap] = {}

    def label_map(self, vocabulary: Vocabulary) -> LabelMap:
        """From a vocabulary of boxes to the model's labels."""
        if vocabulary not in self._maps:
            self._maps[vocabulary] = LabelMap.between(
                vocabulary, self.model.vocabulary, threshold=self.choices.similarity
            )
        return self._maps[vocabulary]

    def run(self, items: Iterable[Item]) -> Iterator[Outcome]:
        """An outcome for each item, in order. Photos are held one at a time; pair features by `predict_seen`."""
        waiting: list[Outcome] = []
        seen: list[tuple[Seen, Task]] = []
        held = 0
        for item in items:
            outcome, looked = Outcome(item), None
            try:
                looked = self._look(outcome)
            except (DataError, GraphError) as error:
                outcome.problem = str(error)
            other = looked is not None and bool(seen) and seen[-1][1] != looked[1]
            if other or held > PAIRS or len(waiting) >= IMAGES:
                yield from self._answer(waiting, seen)
                waiting, seen, held = [], [], 0
            waiting.append(outcome)
            if looked is not None:
                seen.append(looked)
                held += len(looked[0]) ** 2
        yield from self._answer(waiting, seen)

    def _answer(self, waiting: list[Outcome], seen: list[tuple[Seen, Task]]) -> Iterator[Outcome]:
        """Predicts what was seen, all of one task, and gives it to the outcomes that have no problem."""
        if seen:
            found = predict_seen(self.model, [image for image, _ in seen], seen[0][1], top=self.choices.top)
            for outcome, graph in zip((o for o in waiting if not o.problem), found, strict=True):
                outcome.graph = self._kept(graph)
        yield from waiting

    def _look(self, outcome: Outcome) -> tuple[Seen, Task]:
        """Boxes as the model wants them, with what the photo shows."""
        item, vision = outcome.item, self.model.vision
        photo = None
        if item.photo is not None and (vision is not None or item.graph is None):
            photo = open_photo(item.photo)
        graph = self._boxes(item, photo)
        outcome.vocabulary = graph.vocabulary
        outcome.names.update(graph.names)
        unlabelled = graph.vocabulary.objects == UNLABELLED
        if unlabelled and (vision is None or photo is None):
            why = "this model sees no pixels" if vision is None else "there is no photo"
            raise GraphError(f"{item.key}: its boxes have no labels, and {why}")
        graph = self._prepared(graph, outcome, unlabelled)
        task: Task = "sgcls" if unlabelled or self.choices.refine_labels else "predcls"
        return see(vision, graph, photo, task == "sgcls"), task

    def _boxes(self, item: Item, photo: Photo | None) -> SceneGraph:
        if item.graph is not None:
            graph = item.graph
            size = photo_size(item.photo) if graph.width is None and item.photo is not None else None
            return graph if size is None else graph.replace(width=size[0], height=size[1])
        if photo is None:
            raise GraphError(f"{item.key}: neither boxes nor a photo")
        if self.detector is None:
            raise GraphError(f"{item.key}: no boxes were given for it, and there is no detector")
        return self.detector.detect(photo).graph()

    def _prepared(self, graph: SceneGraph, outcome: Outcome, unlabelled: bool) -> SceneGraph:
        choices = self.choices
        if choices.min_score > 0 and graph.scores is not None:
            graph = self._subset(graph, np.flatnonzero(graph.scores >= choices.min_score), outcome, "below the floor")
        if unlabelled:
            graph = _renamed(graph, self.model.vocabulary)
        else:
            mapped = self.label_map(graph.vocabulary).apply(graph)
            outcome.left_out["label has no like"] += len(graph) - len(mapped)
            graph = mapped
        if choices.nms < 1:
            kept = np.sort(suppress(graph.boxes, graph.scores, graph.labels, choices.nms))
            graph = self._subset(graph, kept, outcome, "overlap a better one")
        if len(graph) > choices.max_boxes:
            weight = np.zeros(len(graph)) if graph.scores is None else -graph.scores
            kept = np.sort(np.argsort(weight, kind="stable")[: choices.max_boxes])
            graph = self._subset(graph, kept, outcome, f"more than {choices.max_boxes} in an image")
        file = outcome.item.photo.name if graph.file is None and outcome.item.photo is not None else graph.file
        return graph if file == graph.file else graph.replace(file=file)

    def _subset(self, graph: SceneGraph, kept: np.ndarray, outcome: Outcome, reason: str) -> SceneGraph:
        outcome.left_out[reason] += len(graph) - len(kept)
        return graph if len(kept) == len(graph) else graph.subset(kept)

    def _kept(self, graph: SceneGraph) -> SceneGraph:
        """Relations above the floor, the best first; distributions only where they are wanted."""
        order = np.argsort(-graph.triplet_scores(), kind="stable")
        scores = graph.relation_scores
        if scores is not None:
            order = order[scores[order] >= self.choices.min_relation]
            scores = scores[order]
        changes: dict[str, Any] = {"relations": graph.relations[order], "relation_scores": scores}
        if not self.choices.distributions:
            changes |= {"label_dist": None, "pairs": None, "pair_dist": None}
        return graph.replace(**changes)


def predict_many(
    model: SceneModel,
    images: Sequence[Any],
    photos: Sequence[str | Path | None] | None = None,
    *,
    detector: Detector | None = None,
    names: Any = None,
    choices: Choices | None = None,
) -> Iterator[Outcome]:
    """Outcomes for many images in Python: `images` are detectors' results (or None), `photos` their files (or None)."""
    paths = [None] * len(images) if photos is None else [None if path is None else Path(path) for path in photos]
    if len(paths) != len(images):
        raise GraphError(f"photos: {len(paths)} for {len(images)} images")
    items = (
        Item(str(path or f"image {i}"), path, None if image is None else graph_of(image, names))
        for i, (image, path) in enumerate(zip(images, paths, strict=True))
    )
    return Engine(model, detector, choices).run(items)


def photo_size(path: Path) -> tuple[int, int]:
    """Width and height of a photo as it is seen, without unpacking its pixels; DataError if it is none."""
    from PIL import Image

    from scenegpi.vision.photos import FORMATS

    try:
        with Image.open(path, formats=FORMATS) as image:
            turned = image.getexif().get(0x0112, 1) >= 5  # orientations 5 to 8 lay the picture on its side
            return (image.height, image.width) if turned else (image.width, image.height)
    except Exception as error:
        raise DataError(path, f"is no photo that can be read ({type(error).__name__})") from None


def _renamed(graph: SceneGraph, vocabulary: Vocabulary) -> SceneGraph:
    """Boxes without labels in the model's vocabulary: what their label number says is not looked at."""
    return SceneGraph(
        graph.boxes,
        np.zeros(len(graph), dtype=np.int32),
        vocabulary,
        image_id=graph.image_id,
        file=graph.file,
        width=graph.width,
        height=graph.height,
    )
