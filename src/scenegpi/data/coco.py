"""COCO detection JSON with relations, in both public forms.

1. One file: `images`, `annotations` (bbox = [x, y, w, h]), `categories`, `rel_annotations` (subject_id and object_id
   are ids of annotations, predicate_id an id of `rel_categories`).
2. A folder with train.json, val.json, test.json and rel.json: {"train": {image id: [[subject, object, predicate],
   ...]}, ..., "rel_categories": [names]}; subject and object count the image's annotations, predicate the names.
A COCO file without relations is read as boxes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.data.builder import ColumnsBuilder
from scenegpi.data.columns import NO_SPLIT, SPLITS, Columns
from scenegpi.data.errors import DataError, Report
from scenegpi.data.files import read_object
from scenegpi.graph_json import FLOAT_FIELDS
from scenegpi.vocabulary import Vocabulary

NOTHING = ("__background__", "background", "no relation")
Relations = Callable[[Any, list[dict[str, Any]]], dict[str, Any]]


class _RowError(Exception):
    """One row that makes no sense: the field and what is wrong with it."""


def read_coco(path: Path, report: Report) -> Columns:
    """One COCO file, with `rel_annotations` or without."""
    data = read_object(path)
    objects, label_of = _categories(path, data, "categories")
    predicates, predicate_of = _categories(path, data, "rel_categories")
    info = data.get("info")
    name = info.get("vocabulary", "") if isinstance(info, dict) else ""
    builder = ColumnsBuilder(_vocabulary(path, objects, predicates, name if isinstance(name, str) else ""), report)
    relations = _grouped(path, data, "rel_annotations", report)

    def of_image(image_id: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
        place = {row["id"]: i for i, row in enumerate(rows) if "id" in row}
        found = relations.pop(image_id, [])
        fields: dict[str, Any] = {
            "relations": [
                (
                    _lookup(place, row, "subject_id", "is no annotation of this image"),
                    _lookup(place, row, "object_id", "is no annotation of this image"),
                    _lookup(predicate_of, row, "predicate_id", "is no rel_category"),
                )
                for row in found
            ],
            "relation_scores": _optional(found, "score"),
        }
        return fields

    _add_images(path, data, label_of, builder, report, of_image)
    for image_id in relations:
        report.error(image_id, "rel_annotations", "the image is not in images")
    return builder.build()


def read_coco_folder(folder: Path, report: Report) -> Columns:
    """train.json, val.json, test.json (those that are there) with rel.json."""
    rel_path = folder / "rel.json"
    rels = read_object(rel_path)
    names = rels.get("rel_categories")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError(rel_path, "rel_categories: expected a list of names")
    predicates = [name for name in names if name not in NOTHING]
    predicate_of = {i: predicates.index(name) for i, name in enumerate(names) if name not in NOTHING}
    files = [(split, folder / f"{split}.json") for split in SPLITS if (folder / f"{split}.json").exists()]
    if not files:
        raise DataError(folder, "none of train.json, val.json, test.json is there")
    builder: ColumnsBuilder | None = None
    first: list[str] = []
    for split, path in files:
        report.file = str(path)
        data = read_object(path)
        objects, label_of = _categories(path, data, "categories")
        if builder is None:
            first = objects
            builder = ColumnsBuilder(_vocabulary(path, objects, predicates, ""), report)
        if objects != first:
            raise DataError(path, "categories: differ from those of the other splits")
        table = rels.get(split, {})
        if not isinstance(table, dict):
            raise DataError(rel_path, f"{split}: expected an object, image id -> list")

        def of_image(
            image_id: Any, rows: list[dict[str, Any]], table: dict[str, Any] = table, split: str = split
        ) -> dict[str, Any]:
            found = table.get(str(image_id), [])
            if not isinstance(found, list):
                raise _RowError(f"rel.json {split}", "expected a list")
            return {"relations": [_triple(row, len(rows), predicate_of) for row in found]}

        _add_images(path, data, label_of, builder, report, of_image, SPLITS[split])
    assert builder is not None
    return builder.build()


def _add_images(
    path: Path,
    data: dict[str, Any],
    label_of: dict[Any, int],
    builder: ColumnsBuilder,
    report: Report,
    relations_of: Relations,
    split: int = NO_SPLIT,
) -> None:
    annotations = _grouped(path, data, "annotations", report)
    images = data.get("images")
    if not isinstance(images, list):
        raise DataError(path, "images: expected a list")
    for i, image in enumerate(images):
        image_id = image.get("id") if isinstance(image, dict) else None
        if isinstance(image_id, bool) or not isinstance(image_id, int | str):
            report.error(None, f"images[{i}].id", "expected a number or a string")
            report.skipped += 1
            continue
        rows = annotations.pop(image_id, [])
        try:
            file = image.get("file_name")
            if file is not None and not isinstance(file, str):
                raise _RowError(f"images[{i}].file_name", "expected a string")
            fields = {
                "boxes": [_box(row) for row in rows],
                "labels": [_lookup(label_of, row, "category_id", "is no category") for row in rows],
                "scores": _optional(rows, "score"),
                "label_dist": _optional(rows, "distribution"),
                **relations_of(image_id, rows),
                **_pairs(image),
            }
        except _RowError as error:
            report.error(image_id, *error.args)
            report.skipped += 1
            continue
        for name in image.get("float32", ()) if isinstance(image.get("float32"), list) else ():
            if name in FLOAT_FIELDS and fields.get(name) is not None:
                fields[name] = _single(fields[name])
        named = SPLITS.get(str(image.get("split")), split)
        size = {side: image.get(side) for side in ("width", "height")}
        builder.add(named, image_id=None if image.get("no_id") else image_id, file=file, **size, **fields)
    for image_id in annotations:
        report.error(image_id, "annotations", "the image is not in images")


def _categories(path: Path, data: dict[str, Any], field: str) -> tuple[list[str], dict[Any, int]]:
    """Names in file order, and id -> index. rel_categories may also be a plain list of names."""
    rows = data.get(field, [] if field == "rel_categories" else None)
    if not isinstance(rows, list):
        raise DataError(path, f"{field}: expected a list")
    names: list[str] = []
    index: dict[Any, int] = {}
    for i, row in enumerate(rows):
        key, name = (row.get("id", i), row.get("name")) if isinstance(row, dict) else (i, row)
        if not isinstance(name, str) or isinstance(key, bool) or not isinstance(key, int | str) or key in index:
            raise DataError(path, f"{field}[{i}]: expected an id of its own and a name")
        if name not in NOTHING:
            index[key] = len(names)
            names.append(name)
    return names, index


def _vocabulary(path: Path, objects: list[str], predicates: list[str], name: str) -> Vocabulary:
    try:
        return Vocabulary(objects, predicates, name)
    except ValueError as error:
        raise DataError(path, str(error)) from None


def _grouped(path: Path, data: dict[str, Any], field: str, report: Report) -> dict[Any, list[dict[str, Any]]]:
    rows = data.get(field, [])
    if not isinstance(rows, list):
        raise DataError(path, f"{field}: expected a list")
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for i, row in enumerate(rows):
        image_id = row.get("image_id") if isinstance(row, dict) else None
        if isinstance(image_id, bool) or not isinstance(image_id, int | str):
            report.error(None, f"{field}[{i}].image_id", "expected a number or a string")
        else:
            groups[image_id].append(row)
    return groups


def _box(row: dict[str, Any]) -> list[float]:
    for key in ("bbox_xyxy", "bbox"):
        box = row.get(key)
        if box is None:
            continue
        if not isinstance(box, list) or len(box) != 4 or not all(_number(v) for v in box):
            break
        x, y, w, h = (float(v) for v in box)
        return [x, y, w, h] if key == "bbox_xyxy" else [x, y, x + w, y + h]
    raise _RowError("annotations.bbox", f"expected four numbers, found {row.get('bbox')!r:.60}")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _lookup(table: dict[Any, int], row: dict[str, Any], field: str, what: str) -> int:
    value = row.get(field)
    if isinstance(value, int | str) and not isinstance(value, bool) and value in table:
        return table[value]
    raise _RowError(field, f"{value!r:.60} {what}")


def _optional(rows: list[dict[str, Any]], key: str) -> list[Any] | None:
    values = [row.get(key) for row in rows]
    return values if values and all(value is not None for value in values) else None


def _pairs(image: dict[str, Any]) -> dict[str, Any]:
    """Pair distributions lie with their image (only this project writes them)."""
    pairs = image.get("pairs")
    return {} if pairs is None else {"pairs": pairs, "pair_dist": image.get("pair_dist")}


def _single(values: Any) -> Any:
    try:
        return np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError):
        return values  # SceneGraph says what is wrong with it


def _triple(row: Any, n: int, predicate_of: dict[int, int]) -> tuple[int, int, int]:
    whole = isinstance(row, list) and len(row) == 3 and all(isinstance(v, int) and not isinstance(v, bool) for v in row)
    if not whole:
        raise _RowError("rel.json", f"expected [subject, object, predicate], found {row!r:.60}")
    subject, object_, predicate = row
    if not (0 <= subject < n and 0 <= object_ < n) or predicate not in predicate_of:
        raise _RowError("rel.json", f"{row} is out of range ({n} boxes, {len(predicate_of)} predicates)")
    return subject, object_, predicate_of[predicate]
