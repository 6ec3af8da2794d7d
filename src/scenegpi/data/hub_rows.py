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

from scenegpi.data.named import corners
from scenegpi.errors import GraphError

OBJECTS, LINKS = "objects", ("relations", "relationships")
ABOUT = {"id": ("image_id", "id"), "file": ("file_name", "file"), "width": ("width",), "height": ("height",)}
COLUMNS = (OBJECTS, *LINKS, *(name for names in ABOUT.values() for name in names))
LABELS = ("label", "name", "names", "category", "category_id")
PREDICATES = ("predicate", "predicate_id", "name", "label", "relation")
Names = dict[str, dict[int, str]]


def hub_data(row: dict[str, Any], names: Names) -> dict[str, Any]:
    """Columns of one image -> its JSON form."""
    objects, place = [], {}
    for i, each in enumerate(_rows(row.get(OBJECTS), OBJECTS)):
        bbox = each["bbox"] if "bbox" in each else [each.get(side) for side in "xywh"]
        found: dict[str, Any] = {"box": corners(bbox, f"objects[{i}].bbox")}
        found["label"] = _name(each, LABELS, names.get("objects", {}), f"objects[{i}]")
        if each.get("attributes"):
            found["attributes"] = each["attributes"]
        objects.append(found)
        place[next((each[key] for key in ("id", "object_id") if each.get(key) is not None), i)] = i
    if len(place) != len(objects):
        raise GraphError("objects: an id is duplicated")
    relations = []
    links = next((row[key] for key in LINKS if row.get(key) is not None), None)
    for i, each in enumerate(_rows(links, "relations")):
        ends = {end: _end(each, end, place, f"relations[{i}]") for end in ("subject", "object")}
        relations.append(ends | {"predicate": _name(each, PREDICATES, names.get("predicates", {}), f"relations[{i}]")})
    about = {key: next((row[n] for n in found if row.get(n) is not None), None) for key, found in ABOUT.items()}
    image = {key: value for key, value in about.items() if value is not None}
    return {"image": image, "objects": objects, "relations": relations}


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
    value = next((row[key] for key in keys if row.get(key) is not None), None)
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
