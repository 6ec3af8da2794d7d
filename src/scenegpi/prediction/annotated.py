"""A model on annotated images: predictions next to the truth, both in the model's vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from scenegpi.data.dataset import Dataset
from scenegpi.errors import DataError, GraphError, MetricError
from scenegpi.graph import SceneGraph
from scenegpi.metrics.alignment import Alignment
from scenegpi.prediction.inputs import Item
from scenegpi.prediction.predictor import Predictor
from scenegpi.vocabulary import Vocabulary

PhotoOf = Callable[[SceneGraph], Path | None]


def aligned(dataset: Dataset, vocabulary: Vocabulary) -> Iterator[SceneGraph]:
    """The graphs of a data set in a model's vocabulary; DataError on a name that the model does not have.

    Scoring needs the same names: a label that is only mapped to a similar one can't be right or wrong.
    """
    align = Alignment(vocabulary)
    for graph in dataset:
        try:
            yield align(graph)
        except MetricError as error:
            what = str(error).partition(": the ground truth")[0]
            raise DataError(dataset.path, f"image {graph.image_id}: {what}, which the model does not know") from None


def predictions(
    predictor: Predictor, graphs: Iterable[SceneGraph], photo: PhotoOf | None = None
) -> Iterator[tuple[SceneGraph, SceneGraph]]:
    """(prediction, graph) for graphs of the model's vocabulary, in their order; GraphError if it can't predict one.

    `photo` gives the path of a graph's photo, for a model that uses photos.
    """
    wanted = photo if predictor.model.vision is not None and predictor.options.labels != "believed" else None
    return answers(predictor, (Item(None if wanted is None else wanted(graph), graph, data=graph) for graph in graphs))


def answers(predictor: Predictor, items: Iterable[Item]) -> Iterator[tuple[SceneGraph, Any]]:
    """(prediction, data) for each item, in order; GraphError if it can't predict one."""
    for found in predictor.stream(items):
        if found.graph is None:
            raise GraphError(found.problem)
        yield found.graph, found.item.data


def scored_pairs(predictor: Predictor, dataset: Dataset) -> Iterator[tuple[SceneGraph, SceneGraph]]:
    """(prediction, truth) of every image of a data set, in its order."""
    return predictions(predictor, aligned(dataset, predictor.model.vocabulary), dataset.photo_path)
