"""Images whose objects and relations are given by name, with no list of the names: read twice, never held whole.

A format gives `images`, which starts again at each call, and `fields`, which turns one of its rows into the fields of a
graph (see SceneGraph): labels and predicates by name. Anything invalid is a GraphError "field: message".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenegpi.data.columns import NO_SPLIT, SPLITS
from scenegpi.data.graphs import Graphs
from scenegpi.data.json_stream import JsonStream
from scenegpi.data.limits import check_crowd, check_images, check_names, file_vocabulary
from scenegpi.errors import GraphError, Report
from scenegpi.vocabulary import Vocabulary


@dataclass(frozen=True)
class Image:
    """One row of a file: what it is called there, its content, and its split."""

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
        del report.defects[told:]  # what the first pass said, the second says again
        report.warnings = warnings
    builder = Graphs(vocabulary, report)
    for image in images():
        try:
            found = fields(image)
            found["labels"] = [_place(word, vocabulary.object_index, "label") for word in found["labels"]]
            found["relations"] = [
                (s, o, _place(word, vocabulary.predicate_index, "predicate")) for s, o, word in found["relations"]
            ]
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


def _place(word: str, index: Any, field: str) -> int:
    if word not in index:
        raise GraphError(f"{field}: {word!r:.60} is not in the vocabulary")
    return int(index[word])


def list_rows(path: Path) -> Iterator[Any]:
    """The entries of a file that is one JSON list, one for each image."""
    with JsonStream(path) as stream:
        for i, (_, row) in enumerate(stream.rows()):
            check_images(path, i, stream.size)
            yield row
        stream.end()


def keyed_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """The entries of a file that is one JSON object, key -> image; a key that is there twice is an error."""
    with JsonStream(path) as stream:
        for i, key in enumerate(stream.entries(unique=True)):
            check_images(path, i, stream.size)
            yield key, stream.value()
        stream.end()


def section_rows(path: Path, section: str) -> Iterator[Any]:
    """The entries of a list in a file that is one JSON object; its other fields are passed over."""
    with JsonStream(path) as stream:
        for key in stream.entries():
            if key != section:
                stream.skip()
                continue
            for i, (_, row) in enumerate(stream.rows()):
                check_images(path, i, stream.size)
                yield row
        stream.end()


def key_of(row: Any, name: str) -> int | str | None:
    """What an image is called by a field of its row; None where that is no number or name."""
    key = row.get(name) if isinstance(row, dict) else None
    return key if isinstance(key, int | str) and not isinstance(key, bool) else None


def about(key: int | str | None, file: Any, row: dict[str, Any]) -> dict[str, Any]:
    """The fields of a graph that say which image it is; its size is in `row`, if anywhere."""
    return {"image_id": key, "file": file, "width": row.get("width"), "height": row.get("height")}


def numbered(
    boxes: Any, labels: Any, links: Any, words: Vocabulary, names: tuple[str, str, str], first: int = 0
) -> Any:
    """Fields of a graph from corners, numbers of labels, and rows of subject, object and number of a predicate.

    `names` are those of the three in the file; labels and predicates count from `first`.
    """
    for value, name in zip((boxes, labels, links), names, strict=True):
        if not isinstance(value, list):
            raise GraphError(f"{name}: expected a list")
    check_crowd(len(boxes), len(links))
    if len(labels) != len(boxes) or not all(isinstance(row, list) and len(row) == 3 for row in links):
        raise GraphError(f"{names[2]}: expected rows of three; {names[1]}: one for each box")

    def named(value: Any, known: tuple[str, ...], field: str) -> str:
        return known[number(value - first if isinstance(value, int) else value, len(known), field)]

    n = len(boxes)
    return {
        "boxes": [corners(each, f"{names[0]}[{i}]", False) for i, each in enumerate(boxes)],
        "labels": [named(each, words.objects, f"{names[1]}[{i}]") for i, each in enumerate(labels)],
        "relations": [
            (*(number(end, n, f"{names[2]}[{i}]") for end in (s, o)), named(p, words.predicates, f"{names[2]}[{i}]"))
            for i, (s, o, p) in enumerate(links)
        ],
    }


def split_of(path: Path) -> int:
    """The split that a file's name tells: train_sceneGraphs.json, test_hico.json."""
    words = path.stem.lower().replace("-", "_").split("_")
    known = {**SPLITS, "valid": SPLITS["val"], "validation": SPLITS["val"], "trainval": SPLITS["train"]}
    return next((known[word] for word in words if word in known), NO_SPLIT)


def entries(value: Any, field: str) -> list[dict[str, Any]]:
    """A list of objects; GraphError on anything else, and on more than an image may have."""
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise GraphError(f"{field}: expected a list of objects")
    check_crowd(0, len(value), field)
    return value


def box(row: dict[str, Any], field: str, sides: str = "xywh") -> list[float]:
    """x1, y1, x2, y2 of an object with x, y and w, h."""
    return corners([row.get(side) for side in sides], field)


def corners(values: Any, field: str, xywh: bool = True) -> list[float]:
    """Four numbers, x, y, w, h or x1, y1, x2, y2 -> x1, y1, x2, y2."""
    if not isinstance(values, list) or len(values) != 4 or not all(is_real(value) for value in values):
        raise GraphError(f"{field}: expected four numbers, found {values!r:.60}")
    x, y, w, h = map(float, values)
    return [x, y, x + w, y + h] if xywh else [x, y, w, h]


def is_real(value: Any) -> bool:
    """A JSON number that fits a float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def whole(value: Any) -> Any:
    """100.0 is 100; anything else stays as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def text(value: Any, field: str) -> str:
    """A name as it is."""
    if not isinstance(value, str) or not value.strip():
        raise GraphError(f"{field}: expected a name, found {value!r:.60}")
    return value


def word(value: Any, field: str) -> str:
    """A name in small letters, with single spaces, as the tools of the field clean it."""
    return " ".join(text(value, field).lower().split())


def words(value: Any, field: str) -> list[str]:
    """A list of names, or none; empty ones are passed over."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise GraphError(f"{field}: expected a list of names, found {value!r:.60}")
    return [word(each, field) for each in value if each != ""]


def number(value: Any, stop: int, field: str) -> int:
    """A whole number of 0..stop-1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < stop:
        raise GraphError(f"{field}: expected a number of 0..{stop - 1}, found {value!r:.60}")
    return value


def end(place: dict[Any, int], value: Any, field: str) -> int:
    """The object of an id."""
    known = isinstance(value, int | str) and not isinstance(value, bool) and value in place
    if not known:
        raise GraphError(f"{field}: {value!r:.60} is not an object of this image")
    return place[value]
