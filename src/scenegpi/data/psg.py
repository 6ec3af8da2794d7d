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

from scenegpi.data.columns import SPLITS, Columns
from scenegpi.data.json_stream import JsonStream
from scenegpi.data.limits import check_images, too_many
from scenegpi.data.named import Image, corners, entries, named_columns, number
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.vocabulary import Vocabulary

LISTS = ("thing_classes", "stuff_classes", "predicate_classes", "test_image_ids")


def read_psg(path: Path, report: Report) -> Columns:
    """One psg.json."""
    short = _short(path)
    try:
        vocabulary = Vocabulary(short["thing_classes"] + short["stuff_classes"], short["predicate_classes"], "psg")
    except ValueError as error:
        raise DataError(path, str(error)) from None
    test = {str(key) for key in short["test_image_ids"]}
    return named_columns(
        path, report, partial(_images, path, test), partial(_fields, vocabulary=vocabulary), vocabulary
    )


def _short(path: Path) -> dict[str, list[Any]]:
    """The lists beside the images."""
    found: dict[str, list[Any]] = {name: [] for name in LISTS}
    with JsonStream(path) as stream:
        if stream.peek() != "{":
            raise DataError(path, "expected a JSON object")
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
    with JsonStream(path) as stream:
        for key in stream.entries():
            if key != "data":
                stream.skip()
                continue
            for i, (_, row) in enumerate(stream.rows()):
                check_images(path, i, stream.size)
                given = row.get("image_id") if isinstance(row, dict) else None
                split = SPLITS["test" if str(given) in test else "train"]
                yield Image(given if isinstance(given, int | str) else i, row, split)


def _fields(image: Image, vocabulary: Vocabulary) -> dict[str, Any]:
    row = image.row
    if not isinstance(row, dict):
        raise GraphError("data: expected an object")
    objects = entries(row.get("annotations"), "annotations")
    links = row.get("relations")
    if not isinstance(links, list) or not all(isinstance(each, list) and len(each) == 3 for each in links):
        raise GraphError("relations: expected a list of [subject, object, predicate]")
    crowded = too_many(len(objects), len(links))
    if crowded:
        raise GraphError(": ".join(crowded))
    n = len(objects)
    return {
        "boxes": [corners(each.get("bbox"), f"annotations[{i}].bbox", False) for i, each in enumerate(objects)],
        "labels": [
            vocabulary.objects[
                number(each.get("category_id"), len(vocabulary.objects), f"annotations[{i}].category_id")
            ]
            for i, each in enumerate(objects)
        ],
        "relations": [
            (
                number(s, n, f"relations[{i}]"),
                number(o, n, f"relations[{i}]"),
                vocabulary.predicates[number(p, len(vocabulary.predicates), f"relations[{i}]")],
            )
            for i, (s, o, p) in enumerate(links)
        ],
        "image_id": image.key,
        "file": row.get("file_name"),
        "width": row.get("width"),
        "height": row.get("height"),
    }
