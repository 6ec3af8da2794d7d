"""The images behind a report: where they come from, their predictions and ground truth, and which are shown.

They come from a data set, from a run's own validation images, or from a file of predictions. Shown are those with the
lowest and the highest recall at the middle K, and some near the median; of equal ones those with more relations.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.bulk.digests import photo_digest, photo_part
from scenegpi.data.dataset import Dataset
from scenegpi.data.evaluation_npz import EvaluationNpz
from scenegpi.data.images import photo_size
from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError, GraphError, OptionError, naming
from scenegpi.graph import SceneGraph
from scenegpi.metrics.matching import match_image
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.result import Result
from scenegpi.metrics.state import Plan, RecallState
from scenegpi.viz.report.source import Source
from scenegpi.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scenegpi.models.build import SceneModel
    from scenegpi.prediction import Predictor
    from scenegpi.viz.attention import Attention

Pair = tuple[SceneGraph, SceneGraph]
ATTENTION_BOXES = 100
"""Attention is left out for images with more boxes, as its table grows with their square."""


@dataclass(frozen=True)
class Shown:
    """An image of the gallery; with a `truth`, `why` it is shown ("worst", "typical", "best") and its recall."""

    prediction: SceneGraph
    truth: SceneGraph | None = None
    photo: Path | None = None
    attention: Attention | None = None
    why: str = ""
    recall: float = 0.0


@dataclass(frozen=True)
class Exhibit:
    """Predictions to score: `pairs(None)` gives (prediction, truth) of all images, `pairs([3, 7])` of some.

    `photo(truth)` is its photo, or None; `predictor` made the predictions, None if they come from a file.
    """

    vocabulary: Vocabulary
    pairs: Callable[[Sequence[int] | None], Iterator[Pair]]
    photo: Callable[[SceneGraph], Path | None]
    predictor: Predictor | None = None
    task: Any = "predcls"
    trained_on: int = 0

    @classmethod
    def of_model(
        cls, model: SceneModel, graphs: Sequence[SceneGraph], photo: Callable[[SceneGraph], Path | None], task: Any
    ) -> Exhibit:
        """A model's predictions for graphs of its vocabulary."""
        from scenegpi.prediction import PredictOptions, Predictor, predictions

        predictor = Predictor(model, options=PredictOptions.scoring(task), device=model.device)

        def pairs(places: Sequence[int] | None) -> Iterator[Pair]:
            some = graphs if places is None else [graphs[k] for k in places]
            return predictions(predictor, some, photo)

        known = 0 if model.trained_on is None else model.trained_on.count(graphs)
        return cls(model.vocabulary, pairs, photo, predictor, task, known)

    def score(
        self, protocol: Protocol, watch: Callable[[Iterable[Pair]], Iterable[Pair]] = iter, bootstrap: int = 1000
    ) -> tuple[Result, NDArray[np.float64]]:
        """The figures over all images, and (n, 2): recall at the middle K and the number of relations of each."""
        state = RecallState(Plan(protocol, self.vocabulary, bootstrap=bootstrap))
        k = middle(protocol)
        each: list[tuple[float, int]] = []

        def noted() -> Iterator[Pair]:
            for prediction, truth in watch(self.pairs(None)):
                rows = len(truth.relations)
                recall = np.nan
                if rows:
                    match = match_image(prediction, truth, len(self.vocabulary.predicates), protocol)
                    recall = float((np.asarray(match.ranks[0]) < k).mean())
                each.append((recall, rows))
                yield prediction, truth

        state.stream(noted())
        return state.result(), np.array(each, dtype=np.float64).reshape(-1, 2)

    def show(self, chosen: dict[int, str], recall: NDArray[np.float64]) -> list[Shown]:
        """The chosen images (place -> why), in the order of `chosen`, with the model's attention."""
        shown = zip(chosen.items(), self.pairs(list(chosen)), strict=True)
        return [
            Shown(prediction, truth, self.photo(truth), self._attention(truth), why, float(recall[k, 0]))
            for (k, why), (prediction, truth) in shown
        ]

    def _attention(self, graph: SceneGraph) -> Attention | None:
        from scenegpi.viz.attention import attention

        if self.predictor is None or not 1 < len(graph) <= ATTENTION_BOXES:
            return None
        try:
            return attention(self.predictor, graph, self.photo(graph))
        except GraphError:  # a model without attention
            return None


def middle(protocol: Protocol) -> int:
    """The K by which images are ranked: 50 of 20, 50, 100."""
    return protocol.ks[len(protocol.ks) // 2]


def choose(recall: NDArray[np.float64], count: int) -> dict[int, str]:
    """Place -> "worst", "typical" or "best" for at most `count` of the images (n, 2), a third of each kind."""
    able = np.flatnonzero(~np.isnan(recall[:, 0]))
    if count <= 0 or not len(able):
        return {}
    value, rows = recall[able].T
    if value.min() == value.max():  # all are equally good
        return dict.fromkeys(able[np.argsort(-rows, kind="stable")][:count].tolist(), "typical")
    low = able[np.lexsort((able, -rows, value))].tolist()
    high = able[np.lexsort((able, -rows, -value))].tolist()
    near = able[np.lexsort((able, -rows, np.abs(value - np.median(value))))].tolist()
    third = -(-count // 3)
    chosen: dict[int, str] = {}
    for why, order, most in (("worst", low, third), ("best", high, third), ("typical", near, count - 2 * third)):
        for k in [k for k in order if k not in chosen][: max(min(most, count - len(chosen)), 0)]:
            chosen[k] = why
    rank = {"worst": 0, "typical": 1, "best": 2}
    return dict(sorted(chosen.items(), key=lambda item: rank[item[1]]))


def exhibit_of(
    source: Source, data: Path | None, split: str | None, photos: Path | None, model: str | None, task: Any, device: str
) -> tuple[Exhibit, str] | None:
    """Predictions to score and show, and the name of their images; None if there are no images."""
    if data is None and source.data is not None and source.data.exists():
        data, split = source.data, split or source.split
    named, file = model or source.model, source.predictions
    if named is None and file is not None and file.suffix.lower() == ".npz":
        return (_of_npz(file, source.task), file.name) if file.exists() else None
    if data is None and not (source.kind == "training run" and named is not None and source.config):
        return None
    network = None
    if named is not None:
        from scenegpi.models import load_model

        network = load_model(named, device)
        if data is None:
            return _of_run(source, network)
    elif file is None or data is None:
        raise DataError(source.path, "has no model; give one with --model")
    dataset, name = open_dataset(data or "", split, images=photos), f"{data}{f' ({split})' if split else ''}"
    if network is None:
        return _of_file(source, dataset), name
    from scenegpi.prediction import aligned

    network = network.labels_only()
    graphs = list(aligned(dataset, network.vocabulary))  # all names must be known to the model
    return Exhibit.of_model(network, graphs, dataset.photo_path, task or source.task), name


def _of_file(source: Source, truth: Dataset) -> Exhibit:
    """Another tool's JSON lines with the ground truth."""
    from scenegpi.evaluation.evaluate import matched

    def pairs(places: Sequence[int] | None) -> Iterator[Pair]:
        found = open_dataset(source.predictions or "", vocabulary=truth.vocabulary, strict=True, trust=True)
        every = matched(found, truth, allow_missing=True)
        if places is None:
            return every
        kept = {k: pair for k, pair in enumerate(every) if k in set(places)}
        return iter([kept[k] for k in places])

    return Exhibit(truth.vocabulary, pairs, truth.photo_path, task=source.task)


def _of_run(source: Source, model: SceneModel) -> tuple[Exhibit, str] | None:
    """A run's model on its validation images, and their name; None if the data set is gone."""
    from scenegpi.training.config import stored_config
    from scenegpi.training.data_split import open_images

    with naming(source.path / "config.json", OptionError):
        config = stored_config(source.config)
    if not config.data.path or not Path(config.data.path).exists():
        return None
    images = open_images(config.data, photos=True)
    place = {_key(graph): path for graph, path in zip(images.validation, images.validation_photos, strict=True)}

    def photo(graph: SceneGraph) -> Path | None:
        return place.get(_key(graph))

    found = Exhibit.of_model(model.labels_only(), images.validation, photo, config.scored_task)
    return found, f"validation images of {config.data.path}"


def of_predictions(source: Source, photos: Path | None, limit: int) -> tuple[list[Shown], int, int]:
    """The first images of a `predict` run, on the photos that its lines name, or in `photos`; the total number; and
    how many of those photos have changed, so that they are not shown."""
    dataset = open_dataset(source.predictions or "", images=photos, format="jsonl", trust=True)
    rows: Any = dataset.source
    shown, changed = [], 0
    for i, graph in enumerate(dataset[:limit]):
        recorded, digest = rows.fields(i, "photo", "digest")
        if photos is None or not isinstance(recorded, str):
            place = dataset.photo_path(graph) if photos is not None else _readable(recorded)
        else:
            place = dataset.images.find_moved(Path(os.path.abspath(recorded)))
        digest = photo_part(digest)
        if place is not None and digest is not None and digest != photo_digest(place):
            place, changed = None, changed + 1
        shown.append(Shown(graph, photo=place))
    return shown, len(dataset), changed


def _readable(place: Any) -> Path | None:
    """The photo that a line names, None if it can't be read."""
    try:
        photo_size(place)
    except (DataError, TypeError, ValueError):
        return None
    return Path(place)


def _of_npz(path: Path, task: Any) -> Exhibit:
    """Another system's predictions with their ground truth in one file."""
    file = EvaluationNpz(path, task)

    def pairs(places: Any) -> Any:
        return ((file.prediction(i), file.target(i)) for i in (range(len(file)) if places is None else places))

    return Exhibit(file.vocabulary, pairs, lambda _: None, task=task)


def _key(graph: SceneGraph) -> tuple[str, str]:
    return str(graph.image_id), str(graph.file)
