"""Where pixels meet graphs: the photo of a graph -> its pair looks and, where it has no labels, their distributions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scenegpi.data.dataset import Dataset
from scenegpi.errors import GraphError
from scenegpi.features.batch import SceneBatch, Seen
from scenegpi.graph import SceneGraph
from scenegpi.vision.model import VisionModel
from scenegpi.vision.photos import Photo, open_photo

Photos = Callable[[SceneGraph], Photo | None]


def see(vision: VisionModel | None, graph: SceneGraph, photo: Photo | None, label: bool) -> Seen:
    """The graph with what a photo shows of it.

    With `label` it gets a `label_dist` from the pixels. One that it has already is believed; the scores of its labels,
    as a detector gives them, are multiplied with what the pixels say.
    """
    if vision is None or photo is None:
        if label and graph.label_dist is None and graph.scores is None and vision is not None:
            raise GraphError(f"image {_name(graph)}: no photo, so there is nothing to tell its labels from")
        return Seen(graph)
    looks = vision.looks(photo, graph)
    if label and graph.label_dist is None:
        dist = np.asarray(vision.label_dist(looks, graph), dtype=np.float64)
        if graph.scores is not None:
            dist = dist * SceneBatch.of([graph], given_labels=False).label_dist.numpy() + 1e-12
            dist /= dist.sum(axis=1, keepdims=True)
        graph = graph.replace(label_dist=dist.astype(np.float32))
    return Seen(graph, looks.pairs.numpy())


def photos_of(dataset: Dataset) -> Photos:
    """The photos of a data set, read when asked for; None where there is none, DataError where one is broken."""

    def photo(graph: SceneGraph) -> Photo | None:
        path = dataset.photo_path(graph)
        return None if path is None else open_photo(path)

    return photo


def _name(graph: SceneGraph) -> str:
    return repr(graph.file if graph.image_id is None else graph.image_id)
