"""Model and graphs -> graphs with distributions: the one path that `predict`, `eval` and the web page use.

A model that sees takes the photo of a graph as well: what pixels show of its pairs, and, where labels are not given,
what they say of each box.

A predicted graph has

- `label_dist` (N, C), and in SGCls `labels` and `scores`, its most probable labels and their probabilities; in PredCls
  labels stay as they were given;
- `pairs`, all ordered pairs, and `pair_dist` (E, 1 + P), column 0 "no relation";
- `relations` with `relation_scores`: of each pair the best predicate, where it is likelier than "no relation"; or with
  `top`, the `top` best of all pairs by P(subject) P(object) P(predicate).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from scenegpi.data.dataset import Dataset
from scenegpi.data.detector_results import NO_LABEL, Names, graph_of, is_detection
from scenegpi.errors import GraphError
from scenegpi.features.batch import SceneBatch, Seen
from scenegpi.graph import SceneGraph
from scenegpi.models.build import SceneModel
from scenegpi.models.calibrate import Task
from scenegpi.models.decode import without_repeats
from scenegpi.models.grouping import PAIRS, grouped
from scenegpi.models.sight import Photos, photos_of, see
from scenegpi.vision.photos import as_photo
from scenegpi.words.label_map import LabelMap

Decode = Literal["plain", "no-repeats"]
FEW_PAIRS = 2048
log = logging.getLogger("scenegpi")


def predict(
    model: SceneModel,
    boxes: ArrayLike,
    labels: Sequence[str] | ArrayLike | None = None,
    *,
    label_dist: ArrayLike | None = None,
    image: Any = None,
    names: Names | None = None,
    width: int | None = None,
    height: int | None = None,
    top: int | None = None,
) -> SceneGraph:
    """The scene graph of one image.

    Args:
        model: from `load_model`.
        boxes: (N, 4) x1, y1, x2, y2 in pixels; or what a detector gave (see `scenegpi.data.detector_results`), whose labels are
            mapped to the model's, and whose boxes without a like there are left out, with a warning.
        labels: N names of the model's vocabulary, or their numbers. They are believed.
        label_dist: (N, C) distributions in place of labels; the model corrects them.
        image: the photo, for a model that sees: a file, a Pillow image, or an (H, W, 3) array of bytes. It then finds
            labels too, where neither labels nor distributions are given.
        names: class names by number, where a detector gave numbers only.
        width, height: of the image that the boxes refer to; where not given, the size of the photo, or without one
            the image ends where its boxes do.
        top: so many relations; by default those likelier than "no relation".
    """
    if labels is not None and label_dist is not None:
        raise GraphError("labels: give either labels or label_dist")
    photo = None
    found = graph_of(boxes, names, width=width, height=height) if _is_result(boxes, labels, label_dist) else None
    if found is not None and found.vocabulary.objects == (NO_LABEL,):  # boxes alone: the photo says what they are
        boxes, width, height, found = found.boxes, found.width, found.height, None
    if image is not None:
        if model.vision is None:
            raise GraphError("image: this model sees no pixels; give labels or label_dist, or use a model that does")
        photo = as_photo(image)
        height, width = height or photo.shape[0], width or photo.shape[1]
    elif labels is None and label_dist is None and found is None:
        also = ", or the image" if model.vision is not None else ""
        raise GraphError(f"labels: give either labels or label_dist{also}")
    if found is not None:
        graph = _in_words_of(model, found).replace(width=found.width or width, height=found.height or height)
        return next(predict_graphs(model, [graph], "predcls", top=top, photos=lambda _: photo))
    options: dict[str, Any] = {"width": width, "height": height}
    if label_dist is not None:
        dist = np.asarray(label_dist, dtype=np.float32)
        if dist.ndim != 2:
            raise GraphError(f"label_dist: shape {dist.shape}, expected (boxes, labels)")
        best = dist.argmax(axis=1) if dist.size else np.zeros(len(dist), dtype=np.int32)
        graph = SceneGraph(boxes, best, model.vocabulary, label_dist=dist, **options)
    else:
        numbers = np.zeros(len(np.asarray(boxes)), dtype=np.int32) if labels is None else _numbers(labels, model)
        graph = SceneGraph(boxes, numbers, model.vocabulary, **options)
    task: Task = "sgcls" if labels is None else "predcls"
    return next(predict_graphs(model, [graph], task, top=top, photos=lambda _: photo))


def predict_dataset(
    model: SceneModel,
    dataset: Iterable[SceneGraph],
    task: Task = "predcls",
    decode: Decode = "plain",
    pairs: int = PAIRS,
) -> Iterator[SceneGraph]:
    """A prediction for each graph of a data set, in its order, as they are asked for.

    A model that sees looks at the photos of the data set. With `decode` "no-repeats" a prediction is a list of triplets
    that does not say the same twice (see `scenegpi.models.decode`), in place of distributions.
    """
    if decode not in ("plain", "no-repeats"):
        raise GraphError(f"decode: {decode!r:.40} is neither plain nor no-repeats")
    photos = photos_of(dataset) if model.vision is not None and isinstance(dataset, Dataset) else None
    found = predict_graphs(model, dataset, task, pairs=pairs, photos=photos)
    return found if decode == "plain" else map(without_repeats, found)


def predict_graphs(
    model: SceneModel,
    graphs: Iterable[SceneGraph],
    task: Task = "predcls",
    *,
    pairs: int = PAIRS,
    top: int | None = None,
    photos: Photos | None = None,
) -> Iterator[SceneGraph]:
    """Predictions for a stream of graphs, in batches of at most `pairs` pairs (or one image that has more).

    PredCls believes the labels of a graph; SGCls reads its `label_dist` (where it has none: what the photo shows, or
    `scores` of its labels) and predicts labels. Relations that a graph has are not looked at. `photos` gives the photo
    of a graph, (H, W, 3) bytes, or None; for models that see.
    """
    seen = (see(model.vision, graph, None if photos is None else photos(graph), task == "sgcls") for graph in graphs)
    return predict_seen(model, seen, task, pairs=pairs, top=top)


def predict_seen(
    model: SceneModel, images: Iterable[Seen], task: Task = "predcls", *, pairs: int = PAIRS, top: int | None = None
) -> Iterator[SceneGraph]:
    """As `predict_graphs`, for graphs whose photos were looked at before."""
    if task not in ("predcls", "sgcls"):
        raise GraphError(f"task: {task!r:.40} is neither predcls nor sgcls")
    for some in grouped(images, pairs):
        yield from _predict_batch(model, some, task, top)


@contextmanager
def _threads(pairs: int) -> Iterator[None]:
    """One thread for little work: to wake a second one, or to wait for it on a busy machine, takes longer than that."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if pairs <= FEW_PAIRS else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _predict_batch(model: SceneModel, images: list[Seen], task: Task, top: int | None) -> Iterator[SceneGraph]:
    batch = SceneBatch.seen_of(images, given_labels=task == "predcls")
    nodes, edges = _distributions(model, batch, task)
    starts, edge_starts = batch.ptr.tolist(), batch.edge_ptr.tolist()
    for g, image in enumerate(images):
        rows, edge_rows = slice(starts[g], starts[g + 1]), slice(edge_starts[g], edge_starts[g + 1])
        local = (batch.edge_index[:, edge_rows] - starts[g]).T.numpy()
        yield _graph(image.graph, nodes[rows], local, edges[edge_rows], task, top)


def _distributions(
    model: SceneModel, batch: SceneBatch, task: Task
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """(N, C) and (E, 1 + P): the answer of a model, calibrated, in its own mode of evaluation."""
    calibration = model.calibration.of(task)
    training = model.training
    model.eval()
    try:
        with torch.inference_mode(), _threads(batch.num_edges):
            out = model(batch.to(model.baseline.label.device))
            nodes, edges = calibration.nodes(out.nodes[-1]), calibration.edges(out.edges[-1])
            return nodes.cpu().numpy(), edges.cpu().numpy()
    finally:
        model.train(training)


def _graph(
    graph: SceneGraph,
    nodes: NDArray[np.floating],
    pairs: NDArray[np.int64],
    edges: NDArray[np.floating],
    task: Task,
    top: int | None,
) -> SceneGraph:
    labels, scores = graph.labels, graph.scores
    if task == "sgcls":
        labels, scores = nodes.argmax(axis=1), nodes.max(axis=1, initial=0.0)
    best = edges[:, 1:].argmax(axis=1)
    score = edges[np.arange(len(edges)), best + 1]
    if top is None:
        kept = np.flatnonzero(score > edges[:, 0])
    else:
        weight = score if scores is None else score * scores[pairs[:, 0]] * scores[pairs[:, 1]]
        kept = np.argsort(-weight, kind="stable")[:top]
    changes: dict[str, Any] = {
        "labels": labels,
        "scores": scores,
        "label_dist": nodes,
        "pairs": pairs,
        "pair_dist": edges,
        "relations": np.column_stack([pairs[kept], best[kept]]),
        "relation_scores": score[kept],
    }
    return graph.replace(**changes)


def _is_result(boxes: Any, labels: Any, label_dist: Any) -> bool:
    return labels is None and label_dist is None and is_detection(boxes)


def _in_words_of(model: SceneModel, graph: SceneGraph) -> SceneGraph:
    """A detector's boxes with the model's labels; those that have none are left out and said."""
    labels = LabelMap.between(graph.vocabulary, model.vocabulary)
    mapped = labels.apply(graph)
    if len(mapped) < len(graph):
        lost = sorted({name for name in graph.names if labels[name].target is None})
        log.warning("%d boxes left out: the model has no label like %s", len(graph) - len(mapped), ", ".join(lost))
    return mapped


def _numbers(labels: Any, model: SceneModel) -> ArrayLike:
    names = list(labels)
    if not any(isinstance(name, str) for name in names):
        return np.asarray(names, dtype=np.int64) if not names else labels
    index = model.vocabulary.object_index
    for k, name in enumerate(names):
        if name not in index:
            raise GraphError(f"labels[{k}]: {name!r:.40} is not among the model's {len(index)} labels")
    return [index[name] for name in names]
