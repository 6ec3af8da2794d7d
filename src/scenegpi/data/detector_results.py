"""What a detector gives in Python -> SceneGraph. None of the detectors' libraries is imported: the fields tell.

| given | fields that are read |
|---|---|
| `scenegpi.vision` `Detections` | boxes, labels, scores, names, size (width, height) |
| supervision `Detections` | xyxy, class_id, confidence, data["class_name"] |
| ultralytics `Results` | boxes.xyxy, boxes.cls, boxes.conf, names, orig_shape, path |
| torchvision dict | boxes, labels, scores |
| Detectron2 `Instances`, or the dict around them | pred_boxes.tensor, pred_classes, scores, image_size |
| arrays | (N, 4) x1, y1, x2, y2; (N, 5) and a score; (N, 6) and a class number |
| list of dicts | box [x1, y1, x2, y2] or bbox [x, y, w, h], or x1 .. y2 or xmin .. ymax by name; label; score |
| `SceneGraph` | as it is |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.checks import numbers
from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

Names = Mapping[int, str] | Sequence[str]
LABEL_KEYS = ("label", "class_name", "name", "category", "category_id", "class")
SCORE_KEYS = ("score", "confidence")
CORNERS = (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"))
NO_LABEL = "(no label)"
"""The only label of boxes that came without any."""


@dataclass
class _Found:
    """Fields as a detector named them: `of` says whose, for messages."""

    of: str
    boxes: Any
    classes: Any = None
    scores: Any = None
    names: Any = None
    size: Any = None
    file: Any = None
    labels: Any = None


def graph_of(
    objects: Any,
    names: Names | None = None,
    *,
    labels: Sequence[str] | None = None,
    width: int | None = None,
    height: int | None = None,
    image_id: int | str | None = None,
    file: str | None = None,
) -> SceneGraph:
    """The boxes of one image as a graph, whatever detector found them; GraphError that names the field otherwise.

    Args:
        objects: see above; a list with one result of a batch will do.
        names: class names, where the objects hold numbers only: by number, or a list.
        labels: one name for each box, in place of the objects' own.
        width, height, image_id, file: of the image, where the objects don't tell.
    """
    if isinstance(objects, SceneGraph):
        return objects
    found = _known(objects) or _array(objects)
    boxes = _boxes(found)
    n = len(boxes)
    if labels is not None:
        found.labels = list(labels)
    words, vocabulary = _labels(found, names, n)
    scores = None if found.scores is None else _column(found.scores, n, f"{found.of}: scores")
    tall, wide = found.size if found.size is not None else (None, None)
    return SceneGraph(
        boxes,
        words,
        vocabulary,
        scores=scores,
        width=width if width is not None or wide is None else int(wide),
        height=height if height is not None or tall is None else int(tall),
        image_id=image_id,
        file=file if file is not None else found.file,
    )


def is_detection(objects: Any) -> bool:
    """Whether this is a detector's result, and not plain boxes."""
    return isinstance(objects, SceneGraph) or _known(objects) is not None


def _known(objects: Any) -> _Found | None:
    if isinstance(objects, list | tuple) and objects and (first := _result(objects[0])) is not None:
        if len(objects) > 1:
            raise GraphError(
                f"results of {len(objects)} images; give those of one image, or stream them: "
                "predictor.stream(SceneGraph.from_detections(each) for each in results)"
            )
        return first
    return _result(objects) or _rows(objects)


def _result(objects: Any) -> _Found | None:
    """The result of one image, in the form that a detector gives it."""
    readers = (_detections, _supervision, _ultralytics, _torchvision, _detectron)
    return next((found for reader in readers if (found := reader(objects)) is not None), None)


def _detections(objects: Any) -> _Found | None:
    fields = ("boxes", "labels", "scores", "names", "size")
    if isinstance(objects, SceneGraph) or not all(hasattr(objects, field) for field in fields):
        return None
    boxes, labels, scores, names, (width, height) = (getattr(objects, field) for field in fields)
    return _Found("Detections", boxes, labels, scores, names=names, size=(height, width))


def _supervision(objects: Any) -> _Found | None:
    if not hasattr(objects, "xyxy") or not hasattr(objects, "class_id"):
        return None
    data = getattr(objects, "data", None) or {}
    words = data.get("class_name") if isinstance(data, Mapping) else None
    labels = None if words is None else [str(word) for word in np.asarray(words).tolist()]
    scores = getattr(objects, "confidence", None)
    return _Found("supervision Detections", objects.xyxy, objects.class_id, scores, labels=labels)


def _ultralytics(objects: Any) -> _Found | None:
    inner = getattr(objects, "boxes", None)
    if inner is None or not hasattr(inner, "xyxy"):
        return None
    return _Found(
        "ultralytics Results",
        inner.xyxy,
        getattr(inner, "cls", None),
        getattr(inner, "conf", None),
        names=getattr(objects, "names", None),
        size=getattr(objects, "orig_shape", None),
        file=str(path).replace("\\", "/").rpartition("/")[2] if (path := getattr(objects, "path", None)) else None,
    )


def _torchvision(objects: Any) -> _Found | None:
    if not isinstance(objects, Mapping) or "boxes" not in objects:
        return None
    classes = objects.get("labels")
    words = list(classes) if isinstance(classes, list | tuple) and all(isinstance(c, str) for c in classes) else None
    return _Found("dict", objects["boxes"], classes if words is None else None, objects.get("scores"), labels=words)


def _detectron(objects: Any) -> _Found | None:
    inner = objects.get("instances") if isinstance(objects, Mapping) else objects
    boxes = getattr(inner, "pred_boxes", None)
    if boxes is None:
        return None
    return _Found(
        "Detectron2 Instances",
        getattr(boxes, "tensor", boxes),
        getattr(inner, "pred_classes", None),
        getattr(inner, "scores", None),
        size=getattr(inner, "image_size", None),
    )


def _rows(objects: Any) -> _Found | None:
    if not isinstance(objects, list | tuple) or not objects or not isinstance(objects[0], Mapping):
        return None
    boxes, words, scores = [], [], []
    for i, row in enumerate(objects):
        if not isinstance(row, Mapping):
            raise GraphError(f"objects[{i}]: expected a dict, found {type(row).__name__}")
        boxes.append(_row_box(row, i))
        words.append(next((row[key] for key in LABEL_KEYS if key in row), None))
        scores.append(next((row[key] for key in SCORE_KEYS if key in row), None))
    for field, column in (("label", words), ("score", scores)):
        if None in column and any(value is not None for value in column):
            raise GraphError(f"objects[{column.index(None)}].{field}: missing, though others have it")
    named = all(isinstance(word, str) for word in words)
    classes = None if named or words[0] is None else words
    return _Found(
        "list of dicts", boxes, classes, None if scores[0] is None else scores, labels=words if named else None
    )


def _row_box(row: Mapping[str, Any], i: int) -> list[float]:
    box = row.get("box", row.get("xyxy"))
    if box is None and any(keys[0] in row for keys in CORNERS):
        box = row
    try:
        if isinstance(box, Mapping):
            keys = next(keys for keys in CORNERS if keys[0] in box or keys is CORNERS[-1])
            return [float(box[key]) for key in keys]
        if box is not None or "bbox" in row:
            x, y, w, h = (float(value) for value in (row["bbox"] if box is None else box))
            return [x, y, x + w, y + h] if box is None else [x, y, w, h]
    except (TypeError, ValueError, KeyError):
        found = row.get("bbox") if box is None else dict(box) if isinstance(box, Mapping) else box
        raise GraphError(f"objects[{i}].box: expected four numbers, found {found!r:.60}") from None
    raise GraphError(f"objects[{i}]: has neither box (x1, y1, x2, y2) nor bbox (x, y, w, h)")


def _array(objects: Any) -> _Found:
    values = numbers(objects, "boxes")
    if values.size == 0:
        return _Found("array", np.zeros((0, 4)))
    if values.ndim != 2 or values.shape[1] not in (4, 5, 6):
        kind = f"{type(objects).__name__} of shape {values.shape}"
        raise GraphError(f"boxes: a {kind}; expected (N, 4), (N, 5) or (N, 6), or a detector's result")
    scores, classes = (values[:, k] if values.shape[1] > k else None for k in (4, 5))
    return _Found("array", values[:, :4], classes, scores)


def _boxes(found: _Found) -> NDArray[np.float64]:
    boxes = numbers(found.boxes, f"{found.of}: boxes").astype(np.float64)
    if boxes.size == 0:
        return np.zeros((0, 4))
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise GraphError(f"{found.of}: boxes: shape {boxes.shape}, expected (N, 4) x1, y1, x2, y2")
    return boxes


def _column(values: Any, n: int, field: str) -> NDArray[Any]:
    column = numbers(values, field)
    if column.shape != (n,):
        raise GraphError(f"{field}: shape {column.shape} for {n} boxes")
    return column


def _labels(found: _Found, names: Names | None, n: int) -> tuple[list[str], Vocabulary]:
    """The name of each box, and all names in the order of their numbers."""
    if found.labels is not None:
        if len(found.labels) != n:
            raise GraphError(f"{found.of}: {len(found.labels)} labels for {n} boxes")
        return list(found.labels), _vocabulary(found.of, dict.fromkeys(found.labels))
    if found.classes is None:
        return [NO_LABEL] * n, Vocabulary([NO_LABEL])
    classes = _column(found.classes, n, f"{found.of}: classes")
    if classes.size and not (np.isfinite(classes).all() and (classes == np.floor(classes)).all()):
        raise GraphError(f"{found.of}: classes: expected whole numbers")
    given = names if names is not None else found.names
    keys = [int(c) for c in classes.tolist()]
    table = {i: f"class {i}" for i in sorted(set(keys))} if given is None else _table(given)
    unknown = next((number for number in keys if number not in table), None)
    if unknown is not None:
        raise GraphError(f"{found.of}: class {unknown} has no name among the {len(table)} given")
    return [table[number] for number in keys], _vocabulary(found.of, dict.fromkeys(table.values()))


def _table(names: Any) -> dict[int, str]:
    pairs = names.items() if isinstance(names, Mapping) else enumerate(names)
    try:
        return {int(number): str(name) for number, name in sorted(pairs, key=lambda pair: int(pair[0]))}
    except (TypeError, ValueError):
        raise GraphError("names: expected a list, or number -> name") from None


def _vocabulary(of: str, names: Mapping[str, None]) -> Vocabulary:
    try:
        return Vocabulary(list(names))
    except ValueError as error:
        raise GraphError(f"{of}: {error}") from None
