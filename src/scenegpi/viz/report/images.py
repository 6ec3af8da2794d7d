"""Where a report's images come from: a data set, a run's own validation images, a file of predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenegpi.data.dataset import Dataset
from scenegpi.data.images import photo_size
from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError, OptionError
from scenegpi.graph import SceneGraph
from scenegpi.viz.report.exhibit import Exhibit, Pair, Shown
from scenegpi.viz.report.source import Source

if TYPE_CHECKING:
    from scenegpi.models.build import SceneModel


def exhibit_of(
    source: Source, data: Path | None, split: str | None, photos: Path | None, model: str | None, task: Any, device: str
) -> tuple[Exhibit, str] | None:
    """Predictions to score and show, and what the images are called; None where there are none."""
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
    graphs = list(aligned(dataset, network.vocabulary))  # whose names the model must know
    return Exhibit.of_model(network, graphs, dataset.photo_path, task or source.task), name


def _of_file(source: Source, truth: Dataset) -> Exhibit:
    """Another tool's JSON lines beside the truth."""
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
    """A run's model on the images that it was validated on, and what they are called; None if they are not there."""
    from scenegpi.training.config import stored_config
    from scenegpi.training.data_split import open_images

    try:
        config = stored_config(source.config)
    except OptionError as error:
        raise DataError(source.path / "config.json", str(error)) from None
    if not config.data.path or not Path(config.data.path).exists():
        return None
    images = open_images(config.data, photos=True)
    place = {_key(graph): path for graph, path in zip(images.validation, images.validation_photos, strict=True)}

    def photo(graph: SceneGraph) -> Path | None:
        return place.get(_key(graph))

    found = Exhibit.of_model(model.labels_only(), images.validation, photo, config.scored_task)
    return found, f"validation images of {config.data.path}"


def of_predictions(source: Source, photos: Path | None, limit: int) -> tuple[list[Shown], int]:
    """The first images of a `predict` run, on the photos that its lines name, and how many images it has.

    `photos` is a folder to look for them instead.
    """
    dataset = open_dataset(source.predictions or "", images=photos, format="jsonl", trust=True)
    shown = []
    for i, graph in enumerate(dataset[:limit]):
        place = dataset.photo_path(graph) if photos is not None else _recorded(dataset.source, i)
        shown.append(Shown(graph, photo=place))
    return shown, len(dataset)


def _recorded(lines: Any, i: int) -> Path | None:
    """The photo that line i names, if it is still there and can be read."""
    place = lines.field(i, "photo")
    try:
        photo_size(place)
    except (DataError, TypeError, ValueError):
        return None
    return Path(place)


def _of_npz(path: Path, task: Any) -> Exhibit:
    """Another system's predictions with their ground truth in one file."""
    from scenegpi.data.evaluation_npz import EvaluationNpz

    file = EvaluationNpz(path, task)

    def pairs(places: Any) -> Any:
        return ((file.prediction(i), file.target(i)) for i in (range(len(file)) if places is None else places))

    return Exhibit(file.vocabulary, pairs, lambda _: None, task=task)


def _key(graph: SceneGraph) -> tuple[str, str]:
    return str(graph.image_id), str(graph.file)
