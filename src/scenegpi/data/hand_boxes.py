"""Boxes as people write them by hand: JSON, JSON lines or CSV, with names in the rows and no vocabulary.

    [{"box": [x1, y1, x2, y2], "label": "dog"}, ...]           one image; or each row names its photo ("file")
    {"objects": [...]}, {"boxes": [[...]], "labels": [...]}    one image, with "file", "width" and "height" if known
    {"photo.jpg": [...], ...}, [{"file": "photo.jpg", "boxes": ...}, ...], or one such object per line
    file,x1,y1,x2,y2,label,score                               CSV; only the corners are needed

Rows of boxes may tell the size of their image as width and height, the same in all of them.
Each image is read as `detector_results.graph_of` reads a detector's answer.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scenegpi.data.class_names import Names
from scenegpi.data.detector_results import LABEL_KEYS, graph_of
from scenegpi.data.graphs import Graphs
from scenegpi.data.limits import check_crowd, check_images, check_names
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.files import parse_json, read_json, read_text
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

MAX_BYTES = 2**26
FILE_KEYS = ("file", "filename", "file_name", "image", "photo", "path", "image_id")
SIDES = ("width", "height")
HOLDERS = ("objects", "boxes")
KEYS = ("box", "bbox", "x1", "xmin", *HOLDERS)
OTHERS = ("scenegpi", "vocabulary", "categories", "category_id", "images", "annotations", "relations", "relationships")
"""Keys of other formats, in their first bytes."""


def is_by_hand(head: bytes, suffix: str) -> bool:
    """Whether the first bytes of a file look like one of the forms above."""
    if suffix == ".csv":
        columns = {name.strip(' "').lower() for name in head.split(b"\n")[0].decode("utf-8", "replace").split(",")}
        return "imageid" not in columns and bool(columns & {"x1", "xmin"})
    if any(f'"{key}"'.encode() in head for key in OTHERS):
        return False
    return head[:1] in b"[{" and (head[1:].lstrip()[:1] == b"[" or any(f'"{key}"'.encode() in head for key in KEYS))


def read_hand_boxes(path: Path, report: Report, names: Names | None = None) -> Graphs:
    """All images of a file; one that is invalid is reported and left out."""
    graphs: list[SceneGraph] = []
    words: dict[str, None] = {}
    for file, found in _images(path):
        check_images(path, len(graphs), path.stat().st_size)
        try:
            graph = _graph(file, found, names)
        except GraphError as error:
            report.skip(file, error)
            continue
        graphs.append(graph)
        words |= dict.fromkeys(graph.vocabulary.objects)
        check_names(path, len(words), "labels")
    builder = Graphs(Vocabulary(list(words)), report)
    for graph in graphs:
        size: dict[str, Any] = {"width": graph.width, "height": graph.height}
        builder.add(file=graph.file, boxes=graph.boxes, labels=graph.names, scores=graph.scores, **size)
    return builder


def _graph(file: str | None, found: Any, names: Names | None) -> SceneGraph:
    size = {}
    if isinstance(found, Mapping):
        image = found.get("image")
        size = {side: (image if isinstance(image, Mapping) else found).get(side) for side in SIDES}
        if "boxes" not in found:
            found = next((found[key] for key in HOLDERS if key in found), found)
    if not isinstance(found, list | Mapping):
        raise GraphError(f"boxes: expected a list, found {type(found).__name__}")
    rows = found.get("boxes") if isinstance(found, Mapping) else found
    check_crowd(len(rows) if isinstance(rows, list) else 0)
    if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
        found = rows
    graph = graph_of(found, names, file=file, **size)
    return graph if graph.width or not isinstance(found, list) else _with_size(graph, found)


def _with_size(graph: SceneGraph, rows: list[Any]) -> SceneGraph:
    """The graph with the size that all rows tell, unless a box reaches beyond it: then it may be the box's."""
    told: list[Any] = [[row.get(side) if isinstance(row, Mapping) else None for side in SIDES] for row in rows]
    if not told or any(each != told[0] or type(side) is not int for each in told for side in each):
        return graph
    return graph if (graph.boxes[:, 2:] > told[0]).any() else graph.replace(width=told[0][0], height=told[0][1])


def _images(path: Path) -> Iterator[tuple[str | None, Any]]:
    """The photo that each image names, and its boxes in any of the forms."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        yield from _grouped(_csv_rows(path))
    elif suffix in (".jsonl", ".ndjson"):
        yield from _grouped(_lines(path))
    else:
        data = read_json(path, MAX_BYTES, unique=True)
        if isinstance(data, dict) and not any(key in data for key in HOLDERS):
            yield from ((str(name), rows) for name, rows in data.items())
        elif isinstance(data, list) and data and isinstance(data[0], dict):
            yield from _grouped(data)
        else:
            yield _file(data), data


def _grouped(rows: Iterable[Any]) -> Iterator[tuple[str | None, Any]]:
    """Rows that are images, one by one; rows that are boxes, together with those of the same photo."""
    boxes: dict[str | None, list[Any]] = {}
    for row in rows:
        if isinstance(row, Mapping) and any(key in row for key in HOLDERS):
            yield _file(row), row
        else:
            boxes.setdefault(_file(row), []).append(row)
    yield from boxes.items()


def _file(row: Any) -> str | None:
    if not isinstance(row, Mapping):
        return None
    name = next((row[key] for key in FILE_KEYS if row.get(key) not in (None, "", {})), None)
    if isinstance(name, Mapping):  # "image" as in the JSON form of a graph
        name = name.get("file")
    return None if name is None else str(name)


def _lines(path: Path) -> Iterator[Any]:
    for number, line in enumerate(read_text(path, MAX_BYTES).splitlines(), 1):
        if line.strip():
            try:
                yield parse_json(line)
            except GraphError as error:
                raise DataError(path, f"line {number}: {error}") from None


def _csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a CSV with their column names in lower case; empty cells are left out."""
    try:
        for row in csv.DictReader(io.StringIO(read_text(path, MAX_BYTES)), skipinitialspace=True):
            cells = {key.strip().lower(): value.strip() for key, value in row.items() if key and value}
            yield {key: _cell(key, value) for key, value in cells.items() if value}
    except (csv.Error, AttributeError) as error:
        raise DataError(path, f"not CSV: {error}") from None


def _cell(key: str, value: str) -> str | int:
    """The cell's text; a class number becomes a number, which needs names, and so does a size."""
    return int(value) if key in (*LABEL_KEYS, *SIDES) and value.isdecimal() and len(value) < 10 else value
