"""Images whose objects and relations are given by name, with no list of the names: read twice, never held whole.

A format gives `images`, which starts again at each call, and `fields`, which turns one of its rows into the fields of a
graph (see SceneGraph): labels and predicates by name. Anything invalid is a GraphError "field: message".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenegpi.data.graphs import NO_SPLIT, SPLITS, Graphs
from scenegpi.data.json_stream import JsonStream
from scenegpi.data.limits import check_crowd, check_images, check_names, file_vocabulary
from scenegpi.errors import GraphError, Report
from scenegpi.vocabulary import Vocabulary


@dataclass(frozen=True)
class Image:
    """One row of a file: its id or name there, its content, and its split."""

    key: int | str | None
    row: Any
    split: int = NO_SPLIT


Fields = Callable[[Image], dict[str, Any]]


def named_graphs(
    path: Path,
    report: Report,
    images: Callable[[], Iterator[Image]],
    fields: Fields,
    vocabulary: Vocabulary | None = None,
    name: str = "",
) -> Graphs:
    """The graphs of all images; without a vocabulary, a first pass collects the names."""
    if vocabulary is None:
        told, warnings = len(report.defects), report.warnings
        vocabulary = _vocabulary(path, images, fields, name)
        del report.defects[told:]  # the second pass reports them again
        report.warnings = warnings
    builder = Graphs(vocabulary, report)
    for image in images():
        try:
            found = fields(image)
        except GraphError as error:
            report.skip(image.key, error)
            continue
        builder.add(image.split, **found)
    return builder


def _vocabulary(path: Path, images: Callable[[], Iterator[Image]], fields: Fields, name: str) -> Vocabulary:
    objects: set[str] = set()
    predicates: set[str] = set()
    for image in images():
        try:
            found = fields(image)
        except GraphError:
            continue  # it is reported when it is read again
        objects.update(found["labels"])
        predicates.update(word for _, _, word in found["relations"])
        check_names(path, len(objects), "labels")
        check_names(path, len(predicates), "predicates")
    return file_vocabulary(path, sorted(objects), sorted(predicates), name)


def list_rows(path: Path, section: str | None = None) -> Iterator[Any]:
    """The entries of a file that is one JSON list, or of one list in a file that is an object; one for each image."""
    with JsonStream(path) as stream:
        for key in (None,) if section is None else stream.entries():
            if key != section:
                stream.skip()
                continue
            for i, (_, row) in enumerate(stream.rows()):
                check_images(path, i, stream.size)
                yield row
        stream.end()


def keyed_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """The entries of a file that is one JSON object, key -> image; a duplicated key is an error."""
    with JsonStream(path) as stream:
        for i, key in enumerate(stream.entries(unique=True)):
            check_images(path, i, stream.size)
            yield key, stream.value()
        stream.end()


def key_of(row: Any, name: str) -> int | str | None:
    """The id or name of an image in a field of its row; None if it is neither a whole number nor text."""
    key = row.get(name) if isinstance(row, dict) else None
    return key if isinstance(key, int | str) and not isinstance(key, bool) else None


def about(key: int | str | None, file: Any, row: dict[str, Any]) -> dict[str, Any]:
    """The fields of a graph that identify its image; `row` may hold its size."""
    return {"image_id": key, "file": file, "width": row.get("width"), "height": row.get("height")}


def numbered(
    boxes: Any, labels: Any, links: Any, words: Vocabulary, names: tuple[str, str, str], first: int = 0
) -> dict[str, Any]:
    """Fields of a graph from corners, numbers of labels, and rows of subject, object and number of a predicate.

    `names` are the three fields' names in the file; labels and predicates count from `first`.
    """
    for value, name in zip((boxes, labels, links), names, strict=True):
        if not isinstance(value, list):
            raise GraphError(f"{name}: expected a list")
    check_crowd(len(boxes), len(links))
    if len(labels) != len(boxes) or not all(isinstance(row, list) and len(row) == 3 for row in links):
        raise GraphError(f"{names[1]}, {names[2]}: expected one label for each box, and rows of three numbers")
    n, objects, predicates = len(boxes), len(words.objects), len(words.predicates)
    box, label, link = (f"{name}[{{}}]".format for name in names)
    return {
        "boxes": [corners(each, box(i), xywh=False) for i, each in enumerate(boxes)],
        "labels": [number(each, objects, label(i), first) for i, each in enumerate(labels)],
        "relations": [
            (number(s, n, link(i)), number(o, n, link(i)), number(p, predicates, link(i), first))
            for i, (s, o, p) in enumerate(links)
        ],
    }


def split_of(path: Path) -> int:
    """The split named in a file's name: train_sceneGraphs.json, test_hico.json."""
    words = path.stem.lower().replace("-", "_").split("_")
    known = {**SPLITS, "valid": SPLITS["val"], "validation": SPLITS["val"], "trainval": SPLITS["train"]}
    return next((known[word] for word in words if word in known), NO_SPLIT)


def entries(value: Any, field: str) -> list[dict[str, Any]]:
    """A list of objects; GraphError on anything else, or if it is too long."""
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise GraphError(f"{field}: expected a list of objects")
    check_crowd(0, len(value), field)
    return value


def box(row: dict[str, Any], field: str) -> list[float]:
    """x1, y1, x2, y2 of an object with x, y, w and h."""
    return corners([row.get(side) for side in "xywh"], field)


def corners(values: Any, field: str, xywh: bool = True) -> list[float]:
    """Four numbers, x, y, w, h or x1, y1, x2, y2 -> x1, y1, x2, y2."""
    if not isinstance(values, list) or len(values) != 4 or not all(is_real(value) for value in values):
        raise GraphError(f"{field}: expected four numbers, found {values!r:.60}")
    x, y, w, h = map(float, values)
    return [x, y, x + w, y + h] if xywh else [x, y, w, h]


def is_real(value: Any) -> bool:
    """A JSON number that fits a float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def real(value: Any, field: str) -> float:
    """A JSON number that fits a float; GraphError on anything else."""
    if not is_real(value):
        raise GraphError(f"{field}: expected a number, found {value!r:.60}")
    return float(value)


def whole(value: Any) -> Any:
    """100.0 is 100; anything else stays as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text(value: Any, field: str) -> str:
    """A name as it is."""
    if not isinstance(value, str) or not value.strip():
        raise GraphError(f"{field}: expected a name, found {value!r:.60}")
    return value


def word(value: Any, field: str) -> str:
    """A name in lower case, with single spaces, as other tools clean it."""
    return " ".join(text(value, field).lower().split())


def words(value: Any, field: str) -> list[str]:
    """A list of names; None is an empty list, empty names are skipped."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise GraphError(f"{field}: expected a list of names, found {value!r:.60}")
    return [word(each, field) for each in value if each != ""]


def number(value: Any, count: int, field: str, first: int = 0) -> int:
    """A whole number of first..first + count - 1 -> 0..count - 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not first <= value < first + count:
        raise GraphError(f"{field}: expected a number from {first} to {first + count - 1}, found {value!r:.60}")
    return value - first


def end(place: dict[Any, int], value: Any, field: str) -> int:
    """The index of the object with this id."""
    known = isinstance(value, int | str) and not isinstance(value, bool) and value in place
    if not known:
        raise GraphError(f"{field}: {value!r:.60} is not an object of this image")
    return place[value]
