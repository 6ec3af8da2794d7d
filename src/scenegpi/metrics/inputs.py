"""Inputs, SceneGraphs or dicts of arrays, in one form; the only place where 1-based numbers are converted.

In a dict, as in other tools, classes are 1..C and predicates 1..P (0 is background and "no relation"), so that
predicate p is column p of `rel_scores`. A SceneGraph counts both from 0. Inside this package everything counts from 0.

    target      boxes (M, 4) x1 y1 x2 y2, labels (M,), relations (G, 3) subject, object, predicate; image_id if known
    prediction  boxes (N, 4), labels (N,), scores (N,), and either pairs (E, 2) with rel_scores (E, 1 + P),
                or relations (R, 3) with relation_scores (R,): a chosen list of triplets.
                PredCls takes boxes and labels from the target, SGCls the boxes; they need not be given again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenegpi.boxes import paired_iou
from scenegpi.checks import box_array, check_range, first_row, integer_array, real_array
from scenegpi.errors import GraphError, MetricError
from scenegpi.graph import SceneGraph
from scenegpi.metrics.protocol import TASK_NAMES, Protocol

LABEL_LIMIT = 2**21
"""Labels and predicates are below this, so that a triplet packs into one 63-bit number."""

TARGET_KEYS = ("boxes", "labels", "relations", "image_id")
PREDICTION_KEYS = ("boxes", "labels", "scores", "pairs", "rel_scores", "relations", "relation_scores", "image_id")


class Truth(NamedTuple):
    """Ground truth of one image: boxes (M, 4), labels (M,), relations (G, 3), counted from 0."""

    boxes: NDArray[np.float64]
    labels: NDArray[np.integer]
    relations: NDArray[np.integer]
    image: int | str | None

    def key(self) -> int:
        """64 bits that identify this image, the same in every process, from its id and its ground truth."""
        digest = hashlib.blake2b(repr(self.image).encode(), digest_size=8)
        digest.update(self.boxes.tobytes())
        digest.update(self.labels.astype(np.int64).tobytes())
        digest.update(self.relations.astype(np.int64).tobytes())
        return int.from_bytes(digest.digest(), "little")


class Prediction(NamedTuple):
    """A system's output for one image; `pairs` with `pair_dist`, or `relations` with `relation_scores`."""

    boxes: NDArray[np.float64]
    labels: NDArray[np.integer]
    scores: NDArray[np.floating] | None
    pairs: NDArray[np.integer] | None
    pair_dist: NDArray[np.floating] | None
    relations: NDArray[np.integer]
    relation_scores: NDArray[np.floating] | None

    @property
    def empty(self) -> bool:
        """Whether there is no pair to rank."""
        return not (len(self.relations) or (self.pairs is not None and len(self.pairs)))


def read_truth(target: SceneGraph | Mapping[str, Any], predicates: int) -> Truth:
    """The ground truth of one image; MetricError that names the field on anything invalid."""
    if isinstance(target, SceneGraph):
        _check_vocabulary(target, predicates, "target")
        return Truth(target.boxes, target.labels, target.relations, target.key)
    _check_keys(target, TARGET_KEYS, "target")
    try:
        boxes = box_array(target.get("boxes", ()))
        labels = _from_one(target.get("labels", ()), (len(boxes),), "labels")
        rows = integer_array(target.get("relations", ()), (-1, 3), "relations")
        relations = _triplet_rows(rows, len(boxes), predicates)
    except GraphError as error:
        raise MetricError(f"target: {error}") from None
    return Truth(boxes, labels, relations, target.get("image_id"))


def read_prediction(
    prediction: SceneGraph | Mapping[str, Any], truth: Truth, predicates: int, protocol: Protocol
) -> Prediction:
    """The prediction of one image, with the boxes and labels that the task gives filled in."""
    if isinstance(prediction, SceneGraph):
        _check_vocabulary(prediction, predicates, "prediction")
        found = Prediction(*(getattr(prediction, name) for name in Prediction._fields))
    else:
        _check_keys(prediction, PREDICTION_KEYS, "prediction")
        try:
            found = _from_dict(prediction, truth, predicates, protocol)
        except GraphError as error:
            raise MetricError(f"prediction: {error}") from None
    return _given(found, truth, protocol) if protocol.given_boxes else found


def _given(found: Prediction, truth: Truth, protocol: Protocol) -> Prediction:
    """Ground-truth boxes (and labels) in place of the predicted ones, which must be the same in the same order."""
    if found.empty:
        return found._replace(boxes=truth.boxes, labels=truth.labels, scores=None)
    _check_number(len(found.boxes), truth, protocol)
    if found.boxes is not truth.boxes and not np.array_equal(found.boxes, truth.boxes):
        overlap = paired_iou(found.boxes, truth.boxes)
        if (row := first_row(~(overlap >= 0.5))) is not None:
            raise MetricError(
                f"boxes[{row}]: IoU {overlap[row]:.2f} with the box that {TASK_NAMES[protocol.task]} gives; "
                "boxes must have the order and the scale of the ground truth"
            )
    if protocol.task == "sgcls":
        return found._replace(boxes=truth.boxes)
    if (row := first_row(found.labels != truth.labels)) is not None:
        raise MetricError(f"labels[{row}]: differs from the label that PredCls gives (made for sgcls?)")
    return found._replace(boxes=truth.boxes, labels=truth.labels, scores=None)


def _check_number(boxes: int, truth: Truth, protocol: Protocol) -> None:
    if protocol.given_boxes and boxes != len(truth.boxes):
        task, given = TASK_NAMES[protocol.task], len(truth.boxes)
        raise MetricError(f"boxes: {task} gives {given} boxes, the prediction has {boxes} (made for sgdet?)")


def _from_dict(data: Mapping[str, Any], truth: Truth, predicates: int, protocol: Protocol) -> Prediction:
    boxes = truth.boxes if "boxes" not in data and protocol.given_boxes else box_array(data.get("boxes", ()))
    n = len(boxes)
    rows = integer_array(data.get("relations", ()), (-1, 3), "relations")
    pairs = dist = None
    if data.get("pairs") is not None or data.get("rel_scores") is not None:
        pairs = integer_array(data.get("pairs", ()), (-1, 2), "pairs")
        dist = real_array(data.get("rel_scores", ()), (len(pairs), 1 + predicates), "rel_scores")
    if len(rows) or dist is not None:
        _check_number(n, truth, protocol)
    if pairs is not None:
        check_range(pairs, n, "pairs")
    relations = _triplet_rows(rows, n, predicates)
    if "labels" not in data and protocol.task == "predcls":
        labels: NDArray[np.integer] = truth.labels
    else:
        labels = _from_one(data.get("labels", ()), (n,), "labels")
    scores = real_array(data.get("scores"), (n,), "scores")
    relation_scores = real_array(data.get("relation_scores"), (len(relations),), "relation_scores")
    return Prediction(boxes, labels, scores, pairs, dist, relations, relation_scores)


def _from_one(value: Any, shape: tuple[int, ...], field: str) -> NDArray[np.int32]:
    """Classes 1..C as in other tools -> 0..C-1."""
    array = integer_array(value, shape, field)
    if (row := first_row((array < 1) | (array > LABEL_LIMIT))) is not None:
        raise GraphError(f"{field}[{row}]: {int(array[row])} is not a class; dicts count classes from 1")
    return array - np.int32(1)


def _triplet_rows(rows: NDArray[np.int32], boxes: int, predicates: int) -> NDArray[np.int32]:
    """(R, 3) subject, object, predicate 1..P -> predicate 0..P-1."""
    check_range(rows[:, :2], boxes, "relations")
    if (row := first_row((rows[:, 2] < 1) | (rows[:, 2] > predicates))) is not None:
        raise GraphError(f"relations[{row}]: predicate {int(rows[row, 2])} is outside 1..{predicates}")
    return rows - np.array([0, 0, 1], dtype=np.int32)


def _check_vocabulary(graph: SceneGraph, predicates: int, what: str) -> None:
    found = len(graph.vocabulary.predicates)
    if found != predicates:
        raise MetricError(f"{what}: a vocabulary of {found} predicates, expected {predicates}")
    if len(graph.vocabulary.objects) > LABEL_LIMIT:
        raise MetricError(f"{what}: a vocabulary of more than {LABEL_LIMIT:,} objects")


def _check_keys(data: Any, known: tuple[str, ...], what: str) -> None:
    if not isinstance(data, Mapping):
        raise MetricError(f"{what}: expected a SceneGraph or a dict of arrays, found {type(data).__name__}")
    unknown = set(data) - set(known)
    if unknown:
        raise MetricError(f"{what}: unknown key {sorted(map(str, unknown))[0]!r} (known: {', '.join(known)})")
