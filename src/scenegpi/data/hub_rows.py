"""Rows of a hub data set with scene graphs (Parquet): `objects` and `relations` (or `relationships`).

    objects    list of {id, bbox: [x, y, w, h] or x, y, w, h, label | name | names | category | category_id, attributes}
    relations  list of {subject_id, object_id, predicate | predicate_id}
    image_id | id, file_name | file, width, height

A list of objects may also be an object of lists. Numbers in place of names are looked up in the file's metadata: class
labels, or the COCO categories of the description.
"""

from __future__ import annotations

import json
from typing import Any

from scenegpi.data.limits import check_crowd
from scenegpi.data.named import corners
from scenegpi.errors import GraphError

OBJECTS, LINKS = "objects", ("relations", "relationships")
ABOUT = {"image_id": ("image_id", "id"), "file": ("file_name", "file"), "width": ("width",), "height": ("height",)}
COLUMNS = (OBJECTS, *LINKS, *(name for names in ABOUT.values() for name in names))
LABELS = ("label", "name", "names", "category", "category_id")
PREDICATES = ("predicate", "predicate_id", "name", "label", "relation")
Names = dict[str, dict[int, str]]


def hub_fields(row: dict[str, Any], names: Names) -> dict[str, Any]:
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


def hub_names(metadata: dict[bytes, bytes] | None) -> Names:
    """Numbers -> names of labels and predicates, from the metadata that the `datasets` library writes."""
    try:
        info = json.loads((metadata or {}).get(b"huggingface", b"{}"))["info"]
        about = json.loads(info.get("description") or "{}") if str(info.get("description", "")).startswith("{") else {}
        features = info.get("features", {})
    except (ValueError, KeyError, AttributeError, TypeError):
        return {}
    found: Names = {}
    for kind, columns, keys in (("objects", (OBJECTS,), LABELS), ("predicates", LINKS, PREDICATES)):
        table = about.get("categories" if kind == "objects" else "rel_categories") if isinstance(about, dict) else None
        rows = table if isinstance(table, list) else []
        named = {
            r["id"]: r["name"] for r in rows if isinstance(r, dict) and isinstance(r.get("name"), str) and "id" in r
        }
        for column in columns:
            inner = _feature(features.get(column) if isinstance(features, dict) else None)
            classes = next((inner[key]["names"] for key in keys if _is_class_label(inner.get(key))), None)
            named = named or dict(enumerate(classes or ()))
        found[kind] = named
    return found


def first_of(row: dict[str, Any], keys: tuple[str, ...]) -> Any:
    """The value of the first of these keys that the row has; None without any."""
    return next((row[key] for key in keys if row.get(key) is not None), None)


def _feature(value: Any) -> dict[str, Any]:
    """The fields of a list of objects, however the library writes it."""
    while isinstance(value, list) or (isinstance(value, dict) and isinstance(value.get("feature"), dict | list)):
        value = value["feature"] if isinstance(value, dict) else value[0] if value else None
    return value if isinstance(value, dict) else {}


def _is_class_label(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("names"), list)


def _rows(value: Any, field: str) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        lists = {key: each for key, each in value.items() if isinstance(each, list)}
        if len({len(each) for each in lists.values()}) > 1:
            raise GraphError(f"{field}: lists of different lengths")
        value = [dict(zip(lists, each, strict=True)) for each in zip(*lists.values(), strict=True)]
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise GraphError(f"{field}: expected a list of objects")
    return value


def _name(row: dict[str, Any], keys: tuple[str, ...], names: dict[int, str], field: str) -> str:
    value = first_of(row, keys)
    value = value[0] if isinstance(value, list) and value else value
    name = names.get(value) if isinstance(value, int) else value
    if not isinstance(name, str) or not name:
        raise GraphError(f"{field}: expected a name, or a number that the metadata names, found {value!r:.60}")
    return name


def _end(row: dict[str, Any], end: str, place: dict[Any, int], field: str) -> int:
    value = row.get(f"{end}_id", row.get(end))
    value = value.get("object_id", value.get("id")) if isinstance(value, dict) else value
    if not isinstance(value, int | str) or value not in place:
        raise GraphError(f"{field}.{end}_id: {value!r:.60} is not an object of this image")
    return place[value]
