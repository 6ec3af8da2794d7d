"""Label Studio's JSON: one task per image, boxes as rectangle labels, relations between them.

Its boxes are x, y, width, height in percent of the image; a relation goes from one region to another, with labels;
attributes are the text of a region. `export.data_sets` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from scenegpi.data.graphs import NO_SPLIT, SPLITS, Graphs
from scenegpi.data.named import Image, entries, is_real, key_of, list_rows, named_graphs, text
from scenegpi.errors import GraphError, Report

DIGITS = 6  # of pixels: percentages don't convert back exactly


def read_label_studio(path: Path, report: Report) -> Graphs:
    """Tasks as Label Studio exports them: the last annotation of each that was not cancelled, else a prediction."""
    return named_graphs(path, report, partial(_images, path), partial(_fields, report=report))


def _images(path: Path) -> Iterator[Image]:
    for row in list_rows(path):
        data = row.get("data") if isinstance(row, dict) else None
        about = data.get("scenegpi") if isinstance(data, dict) else None
        about = about if isinstance(about, dict) else {}
        yield Image(key_of(about if "id" in about else row, "id"), row, SPLITS.get(str(about.get("split")), NO_SPLIT))


def _fields(image: Image, report: Report) -> dict[str, Any]:
    data = image.row.get("data") if isinstance(image.row, dict) else None
    picture = data.get("image") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(picture, str):
        raise GraphError("data.image: expected the URL of a picture")
    about: dict[str, Any] = data["scenegpi"] if isinstance(data.get("scenegpi"), dict) else {}
    found = entries(_chosen(image.row), "result")
    regions = [row for row in found if row.get("type") == "rectanglelabels"]
    place = {row["id"]: i for i, row in enumerate(regions) if isinstance(row.get("id"), str)}
    if len(place) != len(regions):
        raise GraphError("result: a region has no id, or one that is duplicated")
    values = [row["value"] if isinstance(row.get("value"), dict) else {} for row in regions]
    sides = [_side(regions, about, side) for side in ("width", "height")]
    attributes: list[list[str]] = [[] for _ in regions]
    relations = []
    for i, row in enumerate(found):
        value = row.get("value")
        if row.get("type") == "textarea" and str(row.get("id")) in place and isinstance(value, dict):
            said: Any = value.get("text")
            attributes[place[str(row["id"])]] += said if isinstance(said, list) else [said]
        elif row.get("type") == "relation":
            ends = [place.get(str(row.get(end))) for end in ("from_id", "to_id")]
            if None in ends:
                raise GraphError(f"result[{i}]: the relation refers to a region that is not a box")
            names = row.get("labels")
            if not names or not isinstance(names, list):
                report.warning(image.key, f"result[{i}].labels", "a relation without a label is left out")
                continue
            step = -1 if row.get("direction") == "left" else 1
            relations += [(*ends[::step], text(name, f"result[{i}].labels")) for name in names]
    scores = [row.get("score") for row in regions]
    return {
        "boxes": [_box(value, sides, i) for i, value in enumerate(values)],
        "labels": [_label(value, i) for i, value in enumerate(values)],
        "scores": scores if scores and all(is_real(score) for score in scores) else None,
        "attributes": attributes,
        "relations": relations,
        "image_id": image.key,
        "file": about.get("file", picture_name(picture)),
        "width": sides[0],
        "height": sides[1],
    }


def picture_name(address: str) -> str:
    """The file name in the URL of a picture: after the last slash, and for local files after `?d=`."""
    return unquote(re.split(r"[/\\]|[?&]d=", address)[-1].split("&")[0])


def _chosen(task: dict[str, Any]) -> Any:
    for key in ("annotations", "predictions"):
        rows = task[key] if isinstance(task.get(key), list) else []
        kept = [row for row in rows if isinstance(row, dict) and not row.get("was_cancelled")]
        if kept:
            return kept[-1].get("result")
    return []


def _side(regions: list[dict[str, Any]], about: dict[str, Any], side: str) -> Any:
    sizes = {size for row in regions if isinstance(size := row.get(f"original_{side}"), int)}
    if len(sizes) > 1:
        raise GraphError(f"original_{side}: regions of one picture differ: {sorted(sizes)!r:.60}")
    return next(iter(sizes), about.get(side))


def _box(value: dict[str, Any], sides: list[Any], i: int) -> list[float]:
    numbers = [value.get(key) for key in ("x", "y", "width", "height")]
    if not all(is_real(number) for number in numbers) or not all(isinstance(side, int) for side in sides):
        raise GraphError(f"result[{i}].value: expected x, y, width and height in percent, and the size of the picture")
    if value.get("rotation"):
        raise GraphError(f"result[{i}].value.rotation: only upright boxes are read")
    x, y, w, h = (number * side / 100 for number, side in zip(numbers, sides * 2, strict=True))
    return [round(number, DIGITS) for number in (x, y, x + w, y + h)]


def _label(value: dict[str, Any], i: int) -> str:
    names = value.get("rectanglelabels")
    return text(names[0] if isinstance(names, list) and names else None, f"result[{i}].value.rectanglelabels")
