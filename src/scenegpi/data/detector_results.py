"""Results of detectors in Python -> SceneGraph. No detector's library is imported; fields tell the kinds.

docs/detectors.md lists what is read of each kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scenegpi.checks import integer_array, numbers
from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

Names = Mapping[int, str] | Sequence[str]
LABEL_KEYS = ("label", "class_name", "name", "category", "category_id", "class")
SCORE_KEYS = ("score", "confidence")
CORNERS = (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"))
NO_LABEL = "(no label)"
"""The label of boxes that were given without labels."""
LAYOUTS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "ultralytics Results": (
        ("boxes.xyxy",),
        {
            "boxes": "boxes.xyxy",
            "classes": "boxes.cls",
            "scores": "boxes.conf",
            "names": "names",
            "shape": "orig_shape",
            "path": "path",
        },
    ),
    "ultralytics Boxes": (("xyxy", "cls"), {"boxes": "xyxy", "classes": "cls", "scores": "conf"}),
    "supervision Detections": (
        ("xyxy",),
        {"boxes": "xyxy", "classes": "class_id", "scores": "confidence", "labels": "data.class_name"},
    ),
    "Detectron2 Instances": (
        ("pred_boxes.tensor",),
        {"boxes": "pred_boxes.tensor", "classes": "pred_classes", "scores": "scores", "shape": "image_size"},
    ),
    "Detections": (
        ("boxes", "labels", "scores", "names", "size"),
        {"boxes": "boxes", "classes": "labels", "scores": "scores", "names": "names", "size": "size"},
    ),
    "": (("boxes",), {"boxes": "boxes", "classes": "labels", "scores": "scores"}),
}
"""By library: the fields that a result must have, and where each of `_Found` is in it. The first match counts."""


@dataclass
class _Found:
    """A result; `of` names its library in messages; `shape` is (height, width), `size` (width, height)."""

    of: str
    boxes: Any
    classes: Any = None
    scores: Any = None
    names: Any = None
    labels: Any = None
    shape: Any = None
    size: Any = None
    path: Any = None


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
        objects: any kind of result (docs/detectors.md); also a list that holds one, or a SceneGraph, kept as it is.
        names: class names for objects that hold numbers only: by number, or a list.
        labels: one name for each box, in place of the objects' own.
        width, height, image_id, file: of the image, if the objects don't hold them.
    """
    if isinstance(objects, SceneGraph):
        return objects
    found = _known(objects) or _array(objects)
    if labels is not None:
        found.labels = list(labels)
    own_file = str(found.path).replace("\\", "/").rpartition("/")[2] if found.path else None
    wide = tall = None
    try:
        if found.size is not None:
            wide, tall = found.size
        elif found.shape is not None:
            tall, wide = found.shape
        boxes = np.atleast_1d(numbers(found.boxes, "boxes"))
        inside = boxes.size and ((boxes >= 0) & (boxes <= 1)).all() and (boxes % 1).any()
        if inside and max(width or wide or 2, height or tall or 2) > 1:
            raise GraphError("boxes: expected pixels, these are fractions of the image")
        words, vocabulary = _labels(found, names, len(boxes))
        return SceneGraph(
            boxes,
            words,
            vocabulary,
            scores=None if found.scores is None else numbers(found.scores, "scores"),
            width=width if width is not None or wide is None else int(wide),
            height=height if height is not None or tall is None else int(tall),
            image_id=image_id,
            file=file if file is not None else own_file,
        )
    except ValueError as error:
        raise GraphError(f"{found.of}: {error}" if found.of else str(error)) from None


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
    """The result of one image, as a detector gives it."""
    if isinstance(objects, Mapping):
        objects = objects.get("instances", objects)
    for of, (needed, fields) in LAYOUTS.items():
        if all(_get(objects, path) is not None for path in needed) and not isinstance(objects, SceneGraph):
            return _Found(of, **{name: _get(objects, path) for name, path in fields.items()})
    return None


def _get(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return value


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
    return _Found("", boxes, classes, None if scores[0] is None else scores, labels=words if named else None)


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
        return _Found("", np.zeros((0, 4)))
    if values.ndim != 2 or values.shape[1] not in (4, 5, 6):
        kind = f"{type(objects).__name__} of shape {values.shape}"
        raise GraphError(f"boxes: a {kind}; expected (N, 4), (N, 5) or (N, 6), or a detector's result")
    scores, classes = (values[:, k] if values.shape[1] > k else None for k in (4, 5))
    return _Found("", values[:, :4], classes, scores)


def _labels(found: _Found, names: Names | None, n: int) -> tuple[list[str], Vocabulary]:
    """The name of each box, and all names in the order of their numbers."""
    classes, words = found.classes, found.labels
    if (
        words is None
        and isinstance(classes, list | tuple)
        and classes
        and all(isinstance(each, str) for each in classes)
    ):
        words = classes
    if words is not None:
        words = words.tolist() if hasattr(words, "tolist") else list(words)
        if len(words) != n:
            raise GraphError(f"{len(words)} labels for {n} boxes")
        return words, Vocabulary(list(dict.fromkeys(words)))
    if classes is None:
        return [NO_LABEL] * n, Vocabulary([NO_LABEL])
    keys = integer_array(classes, (n,), "classes").tolist()
    given = names if names is not None else found.names
    table = {i: f"class {i}" for i in sorted(set(keys))} if given is None else _table(given)
    unknown = next((number for number in keys if number not in table), None)
    if unknown is not None:
        raise GraphError(f"class {unknown} has no name among the {len(table)} given")
    return [table[number] for number in keys], Vocabulary(list(dict.fromkeys(table.values())))


def _table(names: Any) -> dict[int, str]:
    pairs = names.items() if isinstance(names, Mapping) else enumerate(names)
    try:
        return {int(number): str(name) for number, name in sorted(pairs, key=lambda pair: int(pair[0]))}
    except (TypeError, ValueError):
        raise GraphError("names: expected a list, or number -> name") from None
