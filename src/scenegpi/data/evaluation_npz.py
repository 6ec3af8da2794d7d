"""One npz file that holds ground truth and predictions, flat over images: how evaluators exchange test cases.

docs/metrics.md lists the arrays. Box indices are local to the image. PredCls and SGCls use the ground-truth boxes in
place of the predicted ones (a file for PredCls alone may lack pred_*). Nothing in the file is trusted: no pickles, no
array larger than plausible, all offsets and indices checked before use.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.checks import box_array, check_scores, frozen, integer_array, plain_floats
from scenegpi.data.limits import MAX_NAMES
from scenegpi.errors import DataError, GraphError, naming
from scenegpi.graph import SceneGraph
from scenegpi.npz import check_local, load_npz, offsets
from scenegpi.vocabulary import Vocabulary

PREDICTED = ("pred_boxes", "pred_classes", "obj_scores", "pred_box_ptr")
REQUIRED = ("gt_boxes", "gt_classes", "gt_rels", "rel_pairs", "rel_scores", "gt_box_ptr", "gt_rel_ptr", "rel_ptr")


class EvaluationNpz:
    """The file, read and checked whole. The id of image i is i.

    Args:
        path: the npz file; DataError with one line if anything about it is wrong.
        task: "predcls", "sgcls" or "sgdet": decides which boxes, labels and scores make a prediction.
    """

    def __init__(self, path: str | Path, task: str) -> None:
        self.path = Path(path)
        self.task = task
        arrays = load_npz(self.path, {*REQUIRED, *PREDICTED, "zeroshot"})
        for name in REQUIRED:
            if name not in arrays:
                raise DataError(self.path, f"{name}: no such array in the file")
        with naming(self.path, GraphError):
            self._take(arrays)

    def __len__(self) -> int:
        return len(self.gt_box_ptr) - 1

    def target(self, i: int) -> SceneGraph:
        """Image i's ground truth."""
        boxes = slice(self.gt_box_ptr[i], self.gt_box_ptr[i + 1])
        return SceneGraph.trusted(
            image_id=i,
            boxes=self.gt_boxes[boxes],
            labels=self.gt_labels[boxes],
            relations=self.gt_rels[self.gt_rel_ptr[i] : self.gt_rel_ptr[i + 1]],
            vocabulary=self.vocabulary,
        )

    def prediction(self, i: int) -> SceneGraph:
        """Image i's prediction, with the boxes or labels that the task gives."""
        boxes = slice(self.pred_box_ptr[i], self.pred_box_ptr[i + 1])
        pairs = slice(self.rel_ptr[i], self.rel_ptr[i + 1])
        return SceneGraph.trusted(
            image_id=i,
            boxes=self.pred_boxes[boxes],
            labels=self.pred_labels[boxes],
            scores=None if self.obj_scores is None else self.obj_scores[boxes],
            relations=_NO_RELATIONS,
            pairs=self.rel_pairs[pairs],
            pair_dist=self.rel_scores[pairs],
            vocabulary=self.vocabulary,
        )

    def _take(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.gt_boxes = box_array(arrays["gt_boxes"], "gt_boxes")
        n = len(self.gt_boxes)
        self.gt_labels = _classes(arrays["gt_classes"], n, "gt_classes")
        gt_rels = integer_array(arrays["gt_rels"], (-1, 3), "gt_rels")
        self.rel_pairs = integer_array(arrays["rel_pairs"], (-1, 2), "rel_pairs")
        self.rel_scores = _reals(arrays["rel_scores"], len(self.rel_pairs), 2, "rel_scores")
        predicates = self.rel_scores.shape[1] - 1
        if not 1 <= predicates <= MAX_NAMES:
            raise GraphError(f"rel_scores: {predicates + 1:,} columns, expected 1 + P with P in 1..{MAX_NAMES:,}")
        self.gt_box_ptr = offsets(arrays["gt_box_ptr"], "gt_box_ptr", None, n)
        images = len(self.gt_box_ptr) - 1
        self.gt_rel_ptr = offsets(arrays["gt_rel_ptr"], "gt_rel_ptr", images, len(gt_rels))
        self.rel_ptr = offsets(arrays["rel_ptr"], "rel_ptr", images, len(self.rel_pairs))
        check_local(gt_rels[:, :2], self.gt_rel_ptr, self.gt_box_ptr, "gt_rels")
        _check_range(gt_rels[:, 2], predicates, "gt_rels (predicate)")
        self.gt_rels = frozen(gt_rels - np.array([0, 0, 1], dtype=np.int32))
        self._take_predicted(arrays, images)
        check_local(self.rel_pairs, self.rel_ptr, self.pred_box_ptr, "rel_pairs")
        classes = 1 + int(max(labels.max(initial=0) for labels in (self.gt_labels, self.pred_labels)))
        self.zero_shot: NDArray[np.int64] | None = None
        if "zeroshot" in arrays:
            rows = integer_array(arrays["zeroshot"], (-1, 3), "zeroshot")
            _check_range(rows[:, :2].ravel(), MAX_NAMES, "zeroshot (class)")
            _check_range(rows[:, 2], predicates, "zeroshot (predicate)")
            self.zero_shot = rows.astype(np.int64) - 1
        self.vocabulary = Vocabulary(
            [f"class {i + 1}" for i in range(classes)], [f"predicate {i + 1}" for i in range(predicates)]
        )

    def _take_predicted(self, arrays: dict[str, NDArray[Any]], images: int) -> None:
        """Boxes, labels and scores of the predictions, by the task."""
        self.pred_boxes, self.pred_labels, self.pred_box_ptr = self.gt_boxes, self.gt_labels, self.gt_box_ptr
        self.obj_scores: NDArray[np.floating] | None = None
        if self.task == "predcls" and not np.size(arrays.get("pred_classes", ())):
            return
        for name in PREDICTED if self.task == "sgdet" else PREDICTED[1:]:
            if name not in arrays:
                raise GraphError(f"{name}: missing, but {self.task} needs it")
        labels = _classes(arrays["pred_classes"], arrays["pred_classes"].size, "pred_classes")
        scores = _reals(arrays["obj_scores"], len(labels), 1, "obj_scores")
        pointer = offsets(arrays["pred_box_ptr"], "pred_box_ptr", images, len(labels))
        if self.task == "sgdet":
            self.pred_boxes = box_array(arrays["pred_boxes"], "pred_boxes")
            if len(self.pred_boxes) != len(labels):
                raise GraphError(f"pred_boxes: {len(self.pred_boxes)} rows, but {len(labels)} pred_classes")
            self.pred_labels, self.obj_scores, self.pred_box_ptr = labels, scores, pointer
            return
        given, found = np.diff(self.gt_box_ptr), np.diff(pointer)
        wrong = np.flatnonzero((given != found) & (np.diff(self.rel_ptr) > 0))
        if len(wrong):
            i = int(wrong[0])
            raise GraphError(f"pred_box_ptr: image {i}: {self.task} gives {given[i]} boxes, found {found[i]}")
        if self.task == "sgcls":
            same = given == found
            into, out_of = np.repeat(same, given), np.repeat(same, found)
            self.pred_labels, self.obj_scores = self.gt_labels.copy(), np.zeros(len(into), dtype=scores.dtype)
            self.pred_labels[into], self.obj_scores[into] = labels[out_of], scores[out_of]  # others have no pairs
            frozen(self.pred_labels), frozen(self.obj_scores)


_NO_RELATIONS = frozen(np.zeros((0, 3), dtype=np.int32))


def _classes(array: NDArray[Any], n: int, name: str) -> NDArray[np.int32]:
    """(n,) classes 1..C -> 0..C-1."""
    labels = integer_array(array, (n,), name)
    _check_range(labels, MAX_NAMES, name)
    return frozen(labels - np.int32(1))


def _check_range(values: NDArray[np.int32], most: int, name: str) -> None:
    bad = (values < 1) | (values > most)
    if bad.any():
        row = int(bad.argmax())
        raise GraphError(f"{name}[{row}]: {int(values[row])} is outside 1..{most}")


def _reals(array: NDArray[Any], n: int, ndim: int, name: str) -> NDArray[np.floating]:
    """Finite numbers, n rows; float32 and float64 as they are, without a copy."""
    if array.dtype.kind not in "fiu":
        raise GraphError(f"{name}: expected numbers, found {array.dtype}")
    if array.ndim != ndim or len(array) != n:
        raise GraphError(f"{name}: shape {array.shape}, expected {n} rows{' and 1 + P columns' if ndim == 2 else ''}")
    array = plain_floats(array)
    check_scores(array, name)
    return frozen(array)
