"""Rows of a hub data set with scene graphs (Parquet): `objects` and `relations` (or `relationships`).

    objects    list of {id, bbox: [x, y, w, h] or x, y, w, h, label | name | names | category | category_id, attributes}
    relations  list of {subject_id, object_id, predicate | predicate_id}
    image_id | id, file_name | file, width, height

A list of objects may also be an object of lists. Numbers in place of names are looked up in the file's metadata: class
labels, or the COCO categories of the description.
"""

from __future__ import annotations

from typing import Any

from scenegpi.data.limits import check_crowd
from scenegpi.data.named import corners, end, entries
from scenegpi.errors import GraphError
from scenegpi.files import parse_json

OBJECTS, LINKS = "objects", ("relations", "relationships")
ABOUT = {"image_id": ("image_id", "id"), "file": ("file_name", "file"), "width": ("width",), "height": ("height",)}
COLUMNS = (OBJECTS, *LINKS, *(name for names in ABOUT.values() for name in names))
LABELS = ("label", "name", "names", "category", "category_id")
PREDICATES = ("predicate", "predicate_id", "name", "label", "relation")
Tables = dict[str, dict[int, str]]


def hub_fields(row: dict[str, Any], names: Tables) -> dict[str, Any]:
    """Columns of one image -> fields of its graph (see SceneGraph), labels and predicates by name."""
    objects = _rows(row.get(OBJECTS), OBJECTS)
    links = _rows(first_of(row, LINKS), "relations")
    check_crowd(len(objects), len(links))
    boxes, labels, place = [], [], {}
    for i, each in enumerate(objects):
        bbox = each["bbox"] if "bbox" in each else [each.get(side) for side in "xywh"]
        boxes.append(corners(bbox, f"objects[{i}].bbox"))
        labels.append(_name(each, LABELS, names.get("objects", {}), f"objects[{i}]"))
        key = first_of(each, ("id", "object_id"))
        if not isinstance(key, int | str | None):
            raise GraphError(f"objects[{i}].id: expected a number or a string, found {key!r:.60}")
        place[i if key is None else key] = i
    if len(place) != len(objects):
        raise GraphError("objects: an id is duplicated")
    relations = [
        (
            _end(each, "subject", place, f"relations[{i}]"),
            _end(each, "object", place, f"relations[{i}]"),
            _name(each, PREDICATES, names.get("predicates", {}), f"relations[{i}]"),
        )
        for i, each in enumerate(links)
    ]
    attributes = [each.get("attributes") or () for each in objects]
    about = {key: first_of(row, found) for key, found in ABOUT.items()}
    return {"boxes": boxes, "labels": labels, "attributes": attributes, "relations": relations, **about}


def hub_names(metadata: dict[bytes, bytes] | None) -> Tables:
    """Numbers -> names of labels and predicates, from the metadata that the `datasets` library writes."""
    try:
        info = parse_json((metadata or {}).get(b"huggingface", b"{}"))["info"]
        text = str(info.get("description", ""))
        about, features = parse_json(text) if text.startswith("{") else {}, info.get("features")
    except (ValueError, KeyError, AttributeError, TypeError):
        return {}
    found = {"objects": about.get("categories"), "predicates": about.get("rel_categories")}
    tables = {kind: _categories(rows) for kind, rows in found.items()}
    for kind, columns, keys in (("objects", (OBJECTS,), LABELS), ("predicates", LINKS, PREDICATES)):
        for column in columns:
            inner = _feature(features.get(column) if isinstance(features, dict) else None)
            classes = next((inner[key]["names"] for key in keys if _is_class_label(inner.get(key))), ())
            tables[kind] = tables[kind] or dict(enumerate(classes))
    return tables


def _categories(rows: Any) -> dict[int, str]:
    """COCO's categories: number -> name."""
    named = (row for row in (rows if isinstance(rows, list) else []) if isinstance(row, dict))
    pairs = ((row.get("id"), row.get("name")) for row in named)
    return {key: name for key, name in pairs if isinstance(key, int) and isinstance(name, str)}


def first_of(row: dict[str, Any], keys: tuple[str, ...]) -> Any:
    """The value of the first of these keys that the row has; None without any."""
    return next((row[key] for key in keys if row.get(key) is not None), None)


def _feature(value: Any) -> dict[str, Any]:
    """The fields of a list of objects, however the library writes it."""
    while isinstance(value, list) or (isinstance(value, dict) and isinstance(value.get("feature"), dict | list)):
        value = value["feature"] if isinstance(value, dict) else value[0] if value else None
    return value if isinstance(value, dict) else {}


def _is_class_label(value: Any) -> bool:
    names = value.get("names") if isinstance(value, dict) else None
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def _rows(value: Any, field: str) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        lists = {key: each for key, each in value.items() if isinstance(each, list)}
        if len({len(each) for each in lists.values()}) > 1:
            raise GraphError(f"{field}: lists of different lengths")
        value = [dict(zip(lists, each, strict=True)) for each in zip(*lists.values(), strict=True)]
    return [] if value is None else entries(value, field)


def _name(row: dict[str, Any], keys: tuple[str, ...], names: dict[int, str], field: str) -> str:
    value = first_of(row, keys)
    value = value[0] if isinstance(value, list) and value else value
    name = names.get(value) if isinstance(value, int) else value
    if not isinstance(name, str) or not name:
        raise GraphError(f"{field}: expected a name, or a number that the metadata names, found {value!r:.60}")
    return name


def _end(row: dict[str, Any], side: str, place: dict[Any, int], field: str) -> int:
    value = row.get(f"{side}_id", row.get(side))
    value = value.get("object_id", value.get("id")) if isinstance(value, dict) else value
    return end(place, value, f"{field}.{side}_id")
