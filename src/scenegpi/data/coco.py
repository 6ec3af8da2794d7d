"""COCO detection JSON with relations, in both public forms.

1. One file: `images`, `annotations` (bbox = [x, y, w, h]), `categories`, `rel_annotations` (subject_id and object_id
   are ids of annotations, predicate_id an id of `rel_categories`).
2. A folder with train.json, val.json, test.json and rel.json: {"train": {image id: [[subject, object, predicate],
   ...]}, ..., "rel_categories": [names]}; subject and object count the image's annotations, predicate the names.
A COCO file without relations is read as boxes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scenegpi.checks import is_identifier
from scenegpi.data.builder import ColumnsBuilder
from scenegpi.data.coco_file import CocoFile, Row, read_coco_file
from scenegpi.data.columns import NO_SPLIT, SPLITS, Columns
from scenegpi.data.limits import too_many
from scenegpi.errors import DataError, Report
from scenegpi.files import read_object
from scenegpi.graph_json import FLOAT_FIELDS, single
from scenegpi.vocabulary import Vocabulary

BACKGROUND = "__background__"
ANNOTATIONS = "_annotations.coco.json"


class _RowError(Exception):
    """One invalid row: the field and what is wrong with it."""


Relations = Callable[[Any, list[Row], list[_RowError]], dict[str, Any]]


def read_coco(path: Path, report: Report) -> Columns:
    """One COCO file, with `rel_annotations` or without."""
    file = read_coco_file(path, report)
    objects, label_of = _categories(path, file.data, "categories")
    predicates, predicate_of = _categories(path, file.data, "rel_categories")
    info = file.data.get("info")
    name = info.get("vocabulary", "") if isinstance(info, dict) else ""
    builder = ColumnsBuilder(_vocabulary(path, objects, predicates, name if isinstance(name, str) else ""), report)

    _add_images(file, label_of, builder, report, _relations_of(file, predicate_of))
    for image_id in file.orphans("rel_annotations"):
        report.error(image_id, "rel_annotations", "the image is not in images")
    return builder.build()


def _relations_of(file: CocoFile, predicate_of: dict[Any, int]) -> Relations:
    """What `rel_annotations` say of an image."""

    def of_image(image_id: Any, rows: list[Row], problems: list[_RowError]) -> dict[str, Any]:
        found = file.rows("rel_annotations", image_id)
        place: dict[Any, int] = {}
        for i, (number, row) in enumerate(rows):
            key = row.get("id")
            if key is not None and (isinstance(key, bool) or not isinstance(key, int | float | str) or key in place):
                problems.append(_RowError(f"annotations[{number}].id", f"{key!r:.40} is no id, or is duplicated"))
            elif key is not None:
                place[key] = i
        triples = []
        for number, row in found:
            where = f"rel_annotations[{number}]"
            ends = [
                _lookup(place, row, end, where, "is no annotation of this image", problems)
                for end in ("subject_id", "object_id")
            ]
            triples.append((*ends, _lookup(predicate_of, row, "predicate_id", where, "is no rel_category", problems)))
        key = "predicate_score" if any("predicate_score" in row for _, row in found) else "score"
        return {"relations": triples, "relation_scores": _optional(found, key, "rel_annotations", problems)}

    return of_image


def read_coco_splits(folder: Path, report: Report) -> Columns:
    """train/, valid/ (or val/) and test/, each with photos and `_annotations.coco.json` (SGG-Benchmark, Roboflow)."""
    builder: ColumnsBuilder | None = None
    for name, path in split_files(folder):
        report.file = str(path)
        file = read_coco_file(path, report)
        objects, label_of = _categories(path, file.data, "categories")
        predicates, predicate_of = _categories(path, file.data, "rel_categories")
        vocabulary = _vocabulary(path, objects, predicates, "")
        if builder is None:
            builder = ColumnsBuilder(vocabulary, report)
        if vocabulary != builder.vocabulary:
            raise DataError(path, "categories or rel_categories: differ from those of the other splits")
        split = SPLITS["val" if name.startswith("val") else name]
        _add_images(file, label_of, builder, report, _relations_of(file, predicate_of), split, f"{name}/")
        for image_id in file.orphans("rel_annotations"):
            report.error(image_id, "rel_annotations", "the image is not in images")
    if builder is None:
        raise DataError(folder, f"there is no train/{ANNOTATIONS}")
    return builder.build()


def split_files(folder: Path) -> list[tuple[str, Path]]:
    """The splits of a folder that have an annotation file, with it."""
    files = [(name, folder / name / ANNOTATIONS) for name in ("train", "valid", "val", "test")]
    return [(name, path) for name, path in files if path.is_file()]


def read_coco_folder(folder: Path, report: Report) -> Columns:
    """train.json, val.json, test.json (those that are there) with rel.json."""
    rel_path = folder / "rel.json"
    rels = read_object(rel_path, unique=True)
    names = rels.get("rel_categories")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError(rel_path, "rel_categories: expected a list of names")
    predicates = [name for name in names if name != BACKGROUND]
    first_of = {name: i for i, name in reversed(list(enumerate(predicates)))}
    predicate_of = {i: first_of[name] for i, name in enumerate(names) if name != BACKGROUND}
    files = [(split, folder / f"{split}.json") for split in SPLITS if (folder / f"{split}.json").exists()]
    if not files:
        raise DataError(folder, "none of train.json, val.json, test.json is there")
    builder: ColumnsBuilder | None = None
    first: list[str] = []
    for split, path in files:
        report.file = str(path)
        file = read_coco_file(path, report)
        objects, label_of = _categories(path, file.data, "categories")
        if builder is None:
            first = objects
            builder = ColumnsBuilder(_vocabulary(path, objects, predicates, ""), report)
        if objects != first:
            raise DataError(path, "categories: differ from those of the other splits")
        table = rels.get(split, {})
        if not isinstance(table, dict):
            raise DataError(rel_path, f"{split}: expected an object, image id -> list")

        left = dict(table)

        def of_image(
            image_id: Any, rows: list[Row], problems: list[_RowError], left: dict[str, Any] = left, split: str = split
        ) -> dict[str, Any]:
            found = left.pop(str(image_id), [])
            if not isinstance(found, list):
                problems.append(_RowError(f"rel.json {split}", "expected a list"))
                return {}
            crowded = too_many(0, len(found))
            if crowded:
                problems.append(_RowError(*crowded))
                return {}
            return {"relations": [_triple(row, len(rows), predicate_of, problems) for row in found]}

        _add_images(file, label_of, builder, report, of_image, SPLITS[split])
        for image_id in left:
            report.error(image_id, f"rel.json {split}", f"the image is not in {path.name}")
    assert builder is not None
    return builder.build()


def _add_images(
    source: CocoFile,
    label_of: dict[Any, int],
    builder: ColumnsBuilder,
    report: Report,
    relations_of: Relations,
    split: int = NO_SPLIT,
    prefix: str = "",
) -> None:
    if "images" not in source.data:
        raise DataError(source.path, "images: expected a list")
    for i, image in enumerate(source.images):
        image_id = image.get("id") if isinstance(image, dict) else None
        if not is_identifier(image_id):
            report.error(None, f"images[{i}].id", "expected a number or a string")
            report.skipped += 1
            continue
        crowded = too_many(source.annotations.count(image_id), source.rel_annotations.count(image_id))
        if crowded:
            source.drop(image_id)
            report.skip(image_id, [_RowError(*crowded)])
            continue
        rows = source.rows("annotations", image_id)
        problems: list[_RowError] = []
        file = image.get("file_name")
        if file is not None and not isinstance(file, str):
            problems.append(_RowError(f"images[{i}].file_name", "expected a string"))
        fields = {
            "boxes": [_box(row, number, problems) for number, row in rows],
            "labels": [
                _lookup(label_of, row, "category_id", f"annotations[{number}]", "is no category", problems)
                for number, row in rows
            ],
            "scores": _optional(rows, "score", "annotations", problems),
            "label_dist": _optional(rows, "distribution", "annotations", problems),
            "attributes": [_attributes(row) for _, row in rows],
            **relations_of(image_id, rows, problems),
            **_pairs(image),
        }
        if problems:
            report.skip(image_id, problems)
            continue
        for name in image.get("float32", ()) if isinstance(image.get("float32"), list) else ():
            if name in FLOAT_FIELDS and fields.get(name) is not None:
                fields[name] = single(fields[name])
        if image.get("split") not in (None, *SPLITS):
            report.warning(image_id, f"images[{i}].split", f"{image['split']!r:.40} is none of {', '.join(SPLITS)}")
        named = SPLITS.get(str(image.get("split")), split)
        size = {side: _whole(image.get(side)) for side in ("width", "height")}
        builder.add(
            named,
            image_id=None if image.get("no_id") else image_id,
            file=prefix + file if file else file,
            **size,
            **fields,
        )
    for image_id in source.orphans("annotations"):
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
        if name != BACKGROUND or field == "categories":
            index[key] = len(names)
            names.append(name)
    return names, index


def _vocabulary(path: Path, objects: list[str], predicates: list[str], name: str) -> Vocabulary:
    try:
        return Vocabulary(objects, predicates, name)
    except ValueError as error:
        raise DataError(path, str(error)) from None


def _box(row: dict[str, Any], number: int, problems: list[_RowError]) -> list[float]:
    for key in ("bbox_xyxy", "bbox"):
        box = row.get(key)
        if box is None:
            continue
        if not isinstance(box, list) or len(box) != 4 or not all(is_number(v) for v in box):
            break
        x, y, w, h = (float(v) for v in box)
        return [x, y, w, h] if key == "bbox_xyxy" else [x, y, x + w, y + h]
    found = f"{row.get('bbox')!r:.60}"
    problems.append(_RowError(f"annotations[{number}].bbox", f"expected four numbers, found {found}"))
    return [0.0] * 4


def is_number(value: Any) -> bool:
    """A JSON number that fits a float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _attributes(row: dict[str, Any]) -> Any:
    """Names with scores, or names; what else other tools call attributes (CVAT's "occluded") is passed over."""
    if "attribute_scores" in row:
        return row["attribute_scores"]
    names = row.get("attributes")
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else ()


def _whole(value: Any) -> Any:
    """100.0 is 100; anything else stays as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _lookup(
    table: dict[Any, int], row: dict[str, Any], field: str, where: str, what: str, problems: list[_RowError]
) -> int:
    value = row.get(field)
    if isinstance(value, int | float | str) and not isinstance(value, bool) and value in table:
        return table[value]
    problems.append(_RowError(f"{where}.{field}", f"{value!r:.60} {what}"))
    return 0


def _optional(rows: list[Row], key: str, field: str, problems: list[_RowError]) -> list[Any] | None:
    """The values of a key that all rows have, or none."""
    values = [row.get(key) for _, row in rows]
    given = [value is not None for value in values]
    if any(given) and not all(given):
        number = rows[given.index(False)][0]
        problems.append(_RowError(f"{field}[{number}].{key}", "missing, though others of the image have it"))
    return values if any(given) else None


def _pairs(image: dict[str, Any]) -> dict[str, Any]:
    """Pair distributions lie with their image (only this project writes them)."""
    pairs = image.get("pairs")
    return {} if pairs is None else {"pairs": pairs, "pair_dist": image.get("pair_dist")}


def _triple(row: Any, n: int, predicate_of: dict[int, int], problems: list[_RowError]) -> tuple[int, int, int]:
    whole = isinstance(row, list) and len(row) == 3 and all(isinstance(v, int) and not isinstance(v, bool) for v in row)
    if not whole:
        problems.append(_RowError("rel.json", f"expected [subject, object, predicate], found {row!r:.60}"))
        return 0, 0, 0
    subject, object_, predicate = row
    if not (0 <= subject < n and 0 <= object_ < n) or predicate not in predicate_of:
        limits = f"({n} boxes, {len(predicate_of)} predicates)"
        problems.append(_RowError("rel.json", f"{row!r:.60} is out of range {limits}"))
        return 0, 0, 0
    return subject, object_, predicate_of[predicate]
