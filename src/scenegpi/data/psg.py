"""Panoptic scene graphs: psg.json, and predictions in SGBench's JSON, whose numbers refer to the lists of a psg.json.

psg.json, of which the boxes are read (a box around each mask, things and stuff alike); masks stay in their files:

{"data": [{"image_id", "file_name", "width", "height", "annotations": [{"bbox": [x1, y1, x2, y2], "category_id"}],
           "relations": [[subject, object, predicate]], "pan_seg_file_name", "segments_info"}],
 "thing_classes", "stuff_classes", "predicate_classes": [names], "test_image_ids": [...]}

SGBench, triplets best first and without scores:

{"version": 1, "images": [{"id", "bboxes": [[x1, y1, x2, y2]], "categories": [...], "triplets": [[s, o, predicate]]}]}

That is the documented form; version 1.0 of the package reads "annotation": [{"bbox", "category"}] instead. Both are
read. All numbers count from 0; a category counts the things, then the stuff.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scenegpi.data.graphs import SPLITS, Graphs
from scenegpi.data.json_stream import JsonStream
from scenegpi.data.limits import file_vocabulary
from scenegpi.data.named import Image, about, entries, key_of, list_rows, named_graphs, numbered
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.vocabulary import Vocabulary

LISTS = ("thing_classes", "stuff_classes", "predicate_classes", "test_image_ids")
SGBENCH = ("bboxes", "categories", "triplets")


def read_psg(path: Path, report: Report) -> Graphs:
    """One psg.json."""
    vocabulary, test = _lists(path)

    def images() -> Iterator[Image]:
        for row in list_rows(path, "data"):
            key = key_of(row, "image_id")
            yield Image(key, row, SPLITS["test" if str(key) in test else "train"])

    return named_graphs(path, report, images, partial(_psg_fields, vocabulary=vocabulary), vocabulary)


def read_sgbench(path: Path, report: Report, vocabulary: Vocabulary | None = None) -> Graphs:
    """One file of predictions, with the numbers of `vocabulary` or of the psg.json beside it."""
    if vocabulary is None:
        truth = path.with_name("psg.json")
        if not truth.is_file():
            raise DataError(path, "contains numbers without names: put the psg.json that they refer to beside it")
        vocabulary, _ = _lists(truth)

    def images() -> Iterator[Image]:
        return (Image(key_of(row, "id"), row) for row in list_rows(path, "images"))

    return named_graphs(path, report, images, partial(_sgbench_fields, vocabulary=vocabulary), vocabulary)


def _lists(path: Path) -> tuple[Vocabulary, set[str]]:
    """The names of a psg.json, things before stuff, and the ids of its test images."""
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
    things, stuff, predicates, test = found.values()
    return file_vocabulary(path, things + stuff, predicates, "psg"), set(map(str, test))


def _psg_fields(image: Image, vocabulary: Vocabulary) -> dict[str, Any]:
    row = image.row
    if not isinstance(row, dict):
        raise GraphError("data: expected an object")
    objects = entries(row.get("annotations"), "annotations")
    boxes, labels = ([each.get(key) for each in objects] for key in ("bbox", "category_id"))
    found = numbered(boxes, labels, row.get("relations"), vocabulary, ("bbox", "category_id", "relations"))
    return found | about(image.key, row.get("file_name"), row)


def _sgbench_fields(image: Image, vocabulary: Vocabulary) -> dict[str, Any]:
    if image.key is None:
        raise GraphError("id: expected the id of an image in the ground truth")
    boxes, categories, triplets = (image.row.get(name) for name in SGBENCH)
    if "annotation" in image.row:
        objects = entries(image.row["annotation"], "annotation")
        boxes, categories = ([each.get(name) for each in objects] for name in ("bbox", "category"))
    return numbered(boxes, categories, triplets, vocabulary, SGBENCH) | about(image.key, None, {})
