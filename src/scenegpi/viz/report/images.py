"""Where a report's images come from: a data set, a run's own validation images, a file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenegpi.data.dataset import Dataset
from scenegpi.errors import DataError, OptionError
from scenegpi.graph import SceneGraph
from scenegpi.viz.report.exhibit import Exhibit
from scenegpi.viz.report.source import Source

if TYPE_CHECKING:
    from scenegpi.models.build import SceneModel


def of_dataset(model: SceneModel, dataset: Dataset, task: Any) -> Exhibit:
    """A model on a data set, whose names it must know."""
    from scenegpi.prediction import aligned

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

    return Exhibit.of_model(model, graphs, photo, task), name


def of_npz(path: Path, task: Any) -> Exhibit:
    """Another system's predictions with their ground truth in one file."""
    from scenegpi.data.evaluation_npz import EvaluationNpz

    file = EvaluationNpz(path, task)

    def pairs(places: Any) -> Any:
        return ((file.prediction(i), file.target(i)) for i in (range(len(file)) if places is None else places))

    return Exhibit(file.vocabulary, pairs, lambda _: None, task=task)


def _key(graph: SceneGraph) -> tuple[str, str]:
    return str(graph.image_id), str(graph.file)
