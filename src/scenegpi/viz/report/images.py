"""Where a report's images come from: a data set, a run's own validation images, a file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenegpi.data.dataset import Dataset
from scenegpi.data.images import photo_size
from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError, OptionError
from scenegpi.graph import SceneGraph
from scenegpi.viz.report.exhibit import Exhibit, Shown
from scenegpi.viz.report.source import Source

if TYPE_CHECKING:
    from scenegpi.models.build import SceneModel


def of_dataset(model: SceneModel, dataset: Dataset, task: Any) -> Exhibit:
    """A model on a data set, whose names it must know."""
    from scenegpi.prediction import aligned

    model = model.labels_only()
    return Exhibit.of_model(model, list(aligned(dataset, model.vocabulary)), dataset.photo_path, task)


def of_run(source: Source, model: SceneModel) -> tuple[Exhibit, str] | None:
    """A run's model on the images that it was validated on, and what they are called; None if they are not there."""
    from scenegpi.options import override
    from scenegpi.training.config import TrainConfig
    from scenegpi.training.data_split import open_images
    from scenegpi.training.simulate import label_shares, simulated

    try:
        config = override(TrainConfig(), source.config, "")
    except OptionError as error:
        raise DataError(source.path / "config.json", str(error)) from None
    if not config.data.path or not Path(config.data.path).exists():
        return None
    images = open_images(config.data, photos=True)
    task = config.scored_task
    graphs, name = images.validation, f"validation images of {config.data.path}"
    if config.simulate is not None and task == "sgcls":
        shares = label_shares(images.train, len(images.vocabulary.objects))
        graphs, name = list(simulated(graphs, shares, config.simulate, config.seed)), f"{name}, simulated labels"
    place = {_key(graph): path for graph, path in zip(images.validation, images.validation_photos, strict=True)}

    def photo(graph: SceneGraph) -> Path | None:
        return place.get(_key(graph))

    return Exhibit.of_model(model.labels_only(), graphs, photo, task), name


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


def of_npz(path: Path, task: Any) -> Exhibit:
    """Another system's predictions with their ground truth in one file."""
    from scenegpi.data.evaluation_npz import EvaluationNpz

    file = EvaluationNpz(path, task)

    def pairs(places: Any) -> Any:
        return ((file.prediction(i), file.target(i)) for i in (range(len(file)) if places is None else places))

    return Exhibit(file.vocabulary, pairs, lambda _: None, task=task)


def _key(graph: SceneGraph) -> tuple[str, str]:
    return str(graph.image_id), str(graph.file)
