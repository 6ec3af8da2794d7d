"""Model and graphs -> graphs with distributions: the one path that `predict`, `eval` and the web page use.

A predicted graph has

- `label_dist` (N, C), and in SGCls `labels` and `scores`, its most probable labels and their probabilities; in PredCls
  labels stay as they were given;
- `pairs`, all ordered pairs, and `pair_dist` (E, 1 + P), column 0 "no relation";
- `relations` with `relation_scores`: of each pair the best predicate, where it is likelier than "no relation"; or with
  `top`, the `top` best of all pairs by P(subject) P(object) P(predicate).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from scenegpi.features.batch import SceneBatch
from scenegpi.graph import GraphError, SceneGraph
from scenegpi.models.build import SceneModel
from scenegpi.models.decode import without_repeats
from scenegpi.models.grouping import PAIRS, grouped

Task = Literal["predcls", "sgcls"]
Decode = Literal["plain", "no-repeats"]
FEW_PAIRS = 2048


def predict(
    model: SceneModel,
    boxes: ArrayLike,
    labels: Sequence[str] | ArrayLike | None = None,
    *,
    label_dist: ArrayLike | None = None,
    width: int | None = None,
    height: int | None = None,
    top: int | None = None,
) -> SceneGraph:
    """The scene graph of one image.

    Args:
        model: from `load_model`.
        boxes: (N, 4) x1, y1, x2, y2 in pixels.
        labels: N names of the model's vocabulary, or their numbers. They are believed.
        label_dist: (N, C) distributions in place of labels; the model corrects them.
        width, height: of the image; where not given, it ends where its boxes do.
        top: so many relations; by default those likelier than "no relation".
    """
    if (labels is None) == (label_dist is None):
        raise GraphError("labels: give either labels or label_dist")
    if labels is not None:
        numbers = _numbers(labels, model)
        graph = SceneGraph(boxes, numbers, model.vocabulary, width=width, height=height)
        return next(predict_graphs(model, [graph], "predcls", top=top))
    dist = np.asarray(label_dist, dtype=np.float32)
    if dist.ndim != 2:
        raise GraphError(f"label_dist: shape {dist.shape}, expected (boxes, labels)")
    best = dist.argmax(axis=1) if dist.size else np.zeros(len(dist), dtype=np.int32)
    graph = SceneGraph(boxes, best, model.vocabulary, label_dist=dist, width=width, height=height)
    return next(predict_graphs(model, [graph], "sgcls", top=top))


def predict_dataset(
    model: SceneModel,
    dataset: Iterable[SceneGraph],
    task: Task = "predcls",
    decode: Decode = "plain",
    pairs: int = PAIRS,
) -> Iterator[SceneGraph]:
    """A prediction for each graph of a data set, in its order, as they are asked for.

    With `decode` "no-repeats" a prediction is a list of triplets that does not say the same twice (see
    `scenegpi.models.decode`), in place of distributions.
    """
    if decode not in ("plain", "no-repeats"):
        raise GraphError(f"decode: {decode!r:.40} is neither plain nor no-repeats")
    found = predict_graphs(model, dataset, task, pairs=pairs)
    return found if decode == "plain" else map(without_repeats, found)


def predict_graphs(
    model: SceneModel,
    graphs: Iterable[SceneGraph],
    task: Task = "predcls",
    *,
    pairs: int = PAIRS,
    top: int | None = None,
) -> Iterator[SceneGraph]:
    """Predictions for a stream of graphs, in batches of at most `pairs` pairs (or one image that has more).

    PredCls believes the labels of a graph; SGCls reads its `label_dist` (where it has none: `scores` of its labels)
    and predicts labels. Relations that a graph has are not looked at.
    """
    if task not in ("predcls", "sgcls"):
        raise GraphError(f"task: {task!r:.40} is neither predcls nor sgcls")
    for some in grouped(graphs, pairs):
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


def _predict_batch(model: SceneModel, graphs: list[SceneGraph], task: Task, top: int | None) -> Iterator[SceneGraph]:
    batch = SceneBatch.of(graphs, given_labels=task == "predcls")
    nodes, edges = _distributions(model, batch)
    starts, edge_starts = batch.ptr.tolist(), batch.edge_ptr.tolist()
    for g, graph in enumerate(graphs):
        rows, edge_rows = slice(starts[g], starts[g + 1]), slice(edge_starts[g], edge_starts[g + 1])
        local = (batch.edge_index[:, edge_rows] - starts[g]).T.numpy()
        yield _graph(graph, nodes[rows], local, edges[edge_rows], task, top)


def _distributions(model: SceneModel, batch: SceneBatch) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """(N, C) and (E, 1 + P): the answer of a model, in its own mode of evaluation."""
    training = model.training
    model.eval()
    try:
        with torch.inference_mode(), _threads(batch.num_edges):
            out = model(batch.to(model.baseline.label.device))
            return out.nodes[-1].softmax(1).cpu().numpy(), out.edges[-1].softmax(1).cpu().numpy()
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


def _numbers(labels: Any, model: SceneModel) -> ArrayLike:
    names = list(labels)
    if not any(isinstance(name, str) for name in names):
        return np.asarray(names, dtype=np.int64) if not names else labels
    index = model.vocabulary.object_index
    for k, name in enumerate(names):
        if name not in index:
            raise GraphError(f"labels[{k}]: {name!r:.40} is not among the model's {len(index)} labels")
    return [index[name] for name in names]
