"""Panoptic scene graphs: psg.json, of which the boxes are read (a box around each mask, things and stuff alike).

{"data": [{"image_id", "file_name", "width", "height", "annotations": [{"bbox": [x1, y1, x2, y2], "category_id"}],
           "relations": [[subject, object, predicate]], "pan_seg_file_name", "segments_info"}],
 "thing_classes", "stuff_classes", "predicate_classes": [names], "test_image_ids": [...]}

All numbers count from 0; category_id counts the things, then the stuff. Masks stay in their files.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scenegpi.data.columns import SPLITS
from scenegpi.data.graphs import Graphs
from scenegpi.data.json_stream import JsonStream
from scenegpi.data.limits import file_vocabulary
from scenegpi.data.named import Image, about, entries, key_of, named_graphs, numbered, section_rows
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.vocabulary import Vocabulary

LISTS = ("thing_classes", "stuff_classes", "predicate_classes", "test_image_ids")


def read_psg(path: Path, report: Report) -> Graphs:
    """One psg.json."""
    short = _short(path)
    vocabulary = _vocabulary(path, short)
    test = {str(key) for key in short["test_image_ids"]}
    return named_graphs(path, report, partial(_images, path, test), partial(_fields, vocabulary=vocabulary), vocabulary)


def psg_vocabulary(path: Path) -> Vocabulary:
    """The names of a psg.json, things before stuff."""
    return _vocabulary(path, _short(path))


def _vocabulary(path: Path, short: dict[str, list[Any]]) -> Vocabulary:
    return file_vocabulary(path, short["thing_classes"] + short["stuff_classes"], short["predicate_classes"], "psg")


def _short(path: Path) -> dict[str, list[Any]]:
    """The lists beside the images."""
    found: dict[str, list[Any]] = {name: [] for name in LISTS}
    with JsonStream(path) as stream:
        for key in stream.entries():
            if key not in LISTS:
                stream.skip()
                continue
            value = stream.value()
            kinds = str if key != LISTS[-1] else str | int
            if not isinstance(value, list) or not all(isinstance(each, kinds) for each in value):
                raise DataError(path, f"{key}: expected a list of names")
            found[key] = value
        stream.end()
    return found


def _images(path: Path, test: set[str]) -> Iterator[Image]:
    for row in section_rows(path, "data"):
        key = key_of(row, "image_id")
        yield Image(key, row, SPLITS["test" if str(key) in test else "train"])


def _fields(image: Image, vocabulary: Vocabulary) -> dict[str, Any]:
    row = image.row
    if not isinstance(row, dict):
        raise GraphError("data: expected an object")
    objects = entries(row.get("annotations"), "annotations")
    boxes, labels = ([each.get(key) for each in objects] for key in ("bbox", "category_id"))
    found = numbered(boxes, labels, row.get("relations"), vocabulary, ("bbox", "category_id", "relations"))
    return found | about(image.key, row.get("file_name"), row)
