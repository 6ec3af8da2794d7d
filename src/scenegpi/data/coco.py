"""COCO detection JSON with relations, in its public forms.

1. One file: `images`, `annotations` (bbox = [x, y, w, h]), `categories`, `rel_annotations` (subject_id and object_id
   are ids of annotations, predicate_id an id of `rel_categories`); or such a file in each of train/, valid/, test/.
2. A folder with train.json, val.json, test.json and rel.json: {"train": {image id: [[subject, object, predicate],
   ...]}, ..., "rel_categories": [names]}; subject and object count the image's annotations, predicate the names.
3. Results, as detectors write them: a list of {"image_id", "category_id", "bbox", "score"}. They hold no class names:
   give them (`names`), or class 7 is called "class 7".
A COCO file without relations is read as boxes. The long lists are kept as text, grouped by image.
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.checks import is_identifier
from scenegpi.data.class_names import Names, vocabulary_of
from scenegpi.data.graphs import NO_SPLIT, SPLITS, Graphs
from scenegpi.data.json_stream import JsonStream, RowStore
from scenegpi.data.limits import check_crowd, check_images, file_vocabulary
from scenegpi.data.named import corners, real, whole
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.files import read_object

BACKGROUND = "__background__"
ANNOTATIONS = "_annotations.coco.json"
LISTS = ("images", "annotations", "rel_annotations")
KEPT = ("categories", "rel_categories", "info")
CHUNK = 1000  # images that are parsed at once
Row = tuple[int, dict[str, Any]]  # its number in the file, and the row


def read_coco(path: Path, report: Report) -> Graphs:
    """One COCO file, with `rel_annotations` or without."""
    return _read([(path, NO_SPLIT, "")], report)


def read_coco_splits(folder: Path, report: Report) -> Graphs:
    """train/, valid/ (or val/) and test/, each with photos and `_annotations.coco.json` (SGG-Benchmark, Roboflow)."""
    files = split_files(folder)
    if not files:
        raise DataError(folder, f"train/{ANNOTATIONS} is missing")
    return _read([(path, SPLITS["val" if name == "valid" else name], f"{name}/") for name, path in files], report)


def split_files(folder: Path) -> list[tuple[str, Path]]:
    """The splits of a folder that have an annotation file, with it."""
    files = [(name, folder / name / ANNOTATIONS) for name in ("train", "valid", "val", "test")]
    return [(name, path) for name, path in files if path.is_file()]


def read_coco_folder(folder: Path, report: Report) -> Graphs:
    """Whichever of train.json, val.json and test.json exist, with rel.json."""
    relations = {"rel_categories": None} | read_object(folder / "rel.json", unique=True)
    files = [(folder / f"{name}.json", code, "") for name, code in SPLITS.items() if (folder / f"{name}.json").exists()]
    if not files:
        raise DataError(folder, "expected at least one of train.json, val.json, test.json")
    return _read(files, report, relations)


def _read(files: list[tuple[Path, int, str]], report: Report, rel_json: dict[str, Any] | None = None) -> Graphs:
    """Files with their splits and the prefixes of their photos' names, as one data set."""
    builder: Graphs | None = None
    for path, split, prefix in files:
        report.file = str(path)
        file = _CocoFile(path, report, rel_json)
        name = info.get("vocabulary") if isinstance(info := file.data.get("info"), dict) else None
        vocabulary = file_vocabulary(path, file.objects, file.predicates, name if isinstance(name, str) else "")
        if builder is None:
            builder = Graphs(vocabulary, report)
        if vocabulary != builder.vocabulary:
            raise DataError(path, "categories or rel_categories: differ from those of the other splits")
        file.add_to(builder, split, prefix)
    assert builder is not None
    return builder


def read_coco_results(path: Path, report: Report, names: Names | None = None) -> Graphs:
    """A list of detections, grouped by image."""
    images: dict[int | str, tuple[array[int], array[float]]] = {}  # category; x1, y1, x2, y2, score of each row
    bad: set[int | str] = set()
    with JsonStream(path) as stream:
        for i, (_, row) in enumerate(stream.rows()):
            image_id = row.get("image_id") if isinstance(row, dict) else None
            if not is_identifier(image_id):
                report.error(None, f"[{i}].image_id", "expected a number or a string")
                continue
            categories, numbers = images.setdefault(image_id, (array("q"), array("d")))
            check_images(path, len(images), stream.size)
            try:
                category = row.get("category_id")
                if not is_identifier(category) or not isinstance(category, int):
                    raise GraphError(f"[{i}].category_id: expected a whole number, found {category!r:.60}")
                numbers.extend((*corners(row.get("bbox"), f"[{i}].bbox"), real(row.get("score", 1.0), f"[{i}].score")))
                categories.append(category)
            except GraphError as error:
                report.error(image_id, *str(error).split(": ", 1))
                bad.add(image_id)
        stream.end()
    report.skipped += len(bad)
    vocabulary, label_of = vocabulary_of(path, sorted({key for found, _ in images.values() for key in found}), names)
    builder = Graphs(vocabulary, report)
    for image_id, (categories, numbers) in images.items():
        if image_id not in bad:
            values = np.array(numbers).reshape(-1, 5)
            file = image_id if isinstance(image_id, str) and Path(image_id).suffix else None
            labels = [label_of[key] for key in categories]
            builder.add(image_id=image_id, file=file, boxes=values[:, :4], labels=labels, scores=values[:, 4])
    return builder


class _CocoFile:
    """One file: its long lists by image, its short ones in `data`; `problems` are those of the current image.

    Args:
        rel_json: relations by split and image, in place of the file's own.
    """

    def __init__(self, path: Path, report: Report, rel_json: dict[str, Any] | None) -> None:
        self.path, self.report = path, report
        self.lists = {name: RowStore() for name in LISTS}
        self.data: dict[str, Any] = {}
        with JsonStream(path) as stream:
            for key in stream.entries():
                if key in LISTS:
                    self._store(stream, key)
                elif key in KEPT:
                    self.data[key] = stream.value()
                else:
                    stream.skip()
                self.data.setdefault(key, None)
            stream.end()
        if "images" not in self.data:
            raise DataError(path, "images: expected a list")
        self.objects, self.label_of = _categories(path, self.data, "categories")
        self.table: dict[str, Any] | None = None
        if rel_json is None:
            self.predicates, self.predicate_of = _categories(path, self.data, "rel_categories")
        else:
            rel_path = path.with_name("rel.json")
            self.predicates, self.predicate_of = _categories(rel_path, rel_json, "rel_categories")
            table = rel_json.get(path.stem, {})
            if not isinstance(table, dict):
                raise DataError(rel_path, f"{path.stem}: expected an object, image id -> list")
            self.table = dict(table)

    def _store(self, stream: JsonStream, key: str) -> None:
        if stream.peek() != "[":
            raise DataError(self.path, f"{key}: expected a list")
        store = self.lists[key] = RowStore()
        for number, (text, row) in enumerate(stream.rows()):
            image_id = row.get("image_id") if isinstance(row, dict) else None
            if key == "images":
                check_images(self.path, number, stream.size)
                store.add(number // CHUNK, number, text)
            elif is_identifier(image_id):
                store.add(image_id, number, text)
                check_images(self.path, len(store), stream.size)
            else:
                self.report.error(None, f"{key}[{number}].image_id", "expected a number or a string")

    def add_to(self, builder: Graphs, split: int, prefix: str) -> None:
        """All images, each with its annotations and relations."""
        for chunk in self.lists["images"]:
            for number, image in self.lists["images"].take(chunk):
                image_id = image.get("id") if isinstance(image, dict) else None
                if not is_identifier(image_id):
                    self.report.skip(None, f"images[{number}].id: expected a number or a string")
                    continue
                try:
                    fields = self._fields(image_id, image, number)
                except GraphError as error:
                    self.report.skip(image_id, error)
                    continue
                finally:
                    self._forget(image_id)
                if image.get("split") not in (None, *SPLITS):
                    said = f"{image['split']!r:.40} is not one of {', '.join(SPLITS)}"
                    self.report.warning(image_id, f"images[{number}].split", said)
                file = image.get("file_name")
                fields |= {"file": prefix + file if file else file, "image_id": image_id}
                builder.add(SPLITS.get(str(image.get("split")), split), **fields)
        for name in LISTS[1:] if self.table is None else LISTS[1:2]:
            for key in self.lists[name]:
                self.report.error(key, name, "the image is not in images")
        for key in self.table or ():
            self.report.error(key, f"rel.json {self.path.stem}", f"the image is not in {self.path.name}")

    def _forget(self, image_id: int | str) -> None:
        """Reports the rows left at the end, which belong to no image."""
        for name in LISTS[1:]:
            self.lists[name].drop(image_id)
        if self.table is not None:
            self.table.pop(str(image_id), None)

    def _fields(self, image_id: int | str, image: dict[str, Any], number: int) -> dict[str, Any]:
        """Fields of a graph (see SceneGraph)."""
        annotations, relations = (self.lists[name] for name in LISTS[1:])
        check_crowd(annotations.count(image_id), relations.count(image_id))
        rows = annotations.take(image_id)
        if not isinstance(image.get("file_name"), str | None):
            raise GraphError(f"images[{number}].file_name: expected a string")
        fields = {
            "boxes": [corners(row.get("bbox"), f"annotations[{i}].bbox") for i, row in rows],
            "labels": [_look_up(self.label_of, row, "category_id", f"annotations[{i}]") for i, row in rows],
            "scores": _optional(rows, "score", "annotations"),
            "attributes": [_attributes(row) for _, row in rows],
            **{side: whole(image.get(side)) for side in ("width", "height")},
        }
        if self.table is not None:
            return fields | {"relations": self._triples(self.table.get(str(image_id), []), len(rows))}
        return fields | self._relations(rows, relations.take(image_id))

    def _relations(self, rows: list[Row], links: list[Row]) -> dict[str, Any]:
        """Relations of an image, from `rel_annotations`."""
        place: dict[Any, int] = {}
        for i, (number, row) in enumerate(rows):
            key = row.get("id")
            if key is not None and (isinstance(key, bool) or not isinstance(key, int | float | str) or key in place):
                raise GraphError(f"annotations[{number}].id: {key!r:.40} is not an id, or is duplicated")
            if key is not None:
                place[key] = i
        tables = {"subject_id": place, "object_id": place, "predicate_id": self.predicate_of}
        triples = [
            tuple(_look_up(table, row, field, f"rel_annotations[{i}]") for field, table in tables.items())
            for i, row in links
        ]
        key = "predicate_score" if any("predicate_score" in row for _, row in links) else "score"
        return {"relations": triples, "relation_scores": _optional(links, key, "rel_annotations")}

    def _triples(self, found: Any, boxes: int) -> list[tuple[int, int, int]]:
        """Relations of an image, from rel.json."""
        if not isinstance(found, list):
            raise GraphError(f"rel.json {self.path.stem}: expected a list")
        check_crowd(0, len(found))
        triples = []
        for row in found:
            if not isinstance(row, list) or len(row) != 3 or not all(type(value) is int for value in row):
                raise GraphError(f"rel.json: expected [subject, object, predicate], found {row!r:.60}")
            subject, object_, predicate = row
            if not (0 <= subject < boxes and 0 <= object_ < boxes) or predicate not in self.predicate_of:
                limits = f"({boxes} boxes, {len(self.predicate_of)} predicates)"
                raise GraphError(f"rel.json: {row!r:.60} is out of range {limits}")
            triples.append((subject, object_, self.predicate_of[predicate]))
        return triples


def _look_up(table: dict[Any, int], row: dict[str, Any], field: str, where: str) -> int:
    value = row.get(field)
    if isinstance(value, int | float | str) and not isinstance(value, bool) and value in table:
        return table[value]
    what = {"category_id": "category", "predicate_id": "rel_category"}.get(field, "annotation of this image")
    raise GraphError(f"{where}.{field}: {value!r:.60} is not a known {what}")


def _optional(rows: list[Row], key: str, field: str) -> list[Any] | None:
    """The values of a key that all rows have, or none."""
    values = [row.get(key) for _, row in rows]
    if all(value is None for value in values):
        return None
    if None in values:
        raise GraphError(f"{field}[{rows[values.index(None)][0]}].{key}: missing, though others of the image have it")
    return values


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
            raise DataError(path, f"{field}[{i}]: expected a unique id and a name")
        if name != BACKGROUND or field == "categories":
            index[key] = len(names)
            names.append(name)
    return names, index


def _attributes(row: dict[str, Any]) -> Any:
    """Names with scores, or names; other tools' attributes (CVAT's "occluded") are ignored."""
    if "attribute_scores" in row:
        return row["attribute_scores"]
    names = row.get("attributes")
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else ()
