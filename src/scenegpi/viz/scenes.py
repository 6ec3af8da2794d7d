"""A data set as a model reads it: in the model's vocabulary, with photos for a model that sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scenegpi.data.dataset import Dataset
from scenegpi.errors import DataError, MetricError
from scenegpi.graph import SceneGraph
from scenegpi.metrics.alignment import Alignment

if TYPE_CHECKING:
    from scenegpi.models.build import SceneModel
    from scenegpi.models.predict import Task
    from scenegpi.models.sight import Photos


def aligned(dataset: Dataset, model: SceneModel) -> Iterator[SceneGraph]:
    """The graphs of a data set in the numbers of the model's vocabulary; DataError on a name that it does not know."""
    align = Alignment(model.vocabulary)
    for graph in dataset:
        try:
            yield align(graph)
        except MetricError as error:
            what = str(error).partition(", the ground truth")[0]
            raise DataError(dataset.path, f"image {graph.image_id}: {what}, which the model does not know") from None


def predictions(model: SceneModel, dataset: Dataset, task: Task) -> Iterator[SceneGraph]:
    """What the model says of every image of a data set, in its order."""
    from scenegpi.models.predict import predict_graphs

    return predict_graphs(model, aligned(dataset, model), task, photos=photos_for(model, dataset))


def photos_for(model: SceneModel, dataset: Dataset) -> Photos | None:
    """Where a model that sees finds the photos; None for one that reads boxes and labels alone."""
    if model.vision is None:
        return None
    from scenegpi.models.sight import photos_of

    return photos_of(dataset)
