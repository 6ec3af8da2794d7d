"""GQA scene graphs: train_sceneGraphs.json, val_sceneGraphs.json.

{image id: {"width", "height", "objects": {object id: {"name", "x", "y", "w", "h", "attributes": [names],
                                                       "relations": [{"name", "object": object id}]}}}}
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scenegpi.data.graphs import Graphs
from scenegpi.data.named import Image, about, box, end, entries, keyed_rows, named_graphs, split_of, word, words
from scenegpi.errors import DataError, GraphError, Report

PATTERN = "*sceneGraphs*.json"


def read_gqa(path: Path, report: Report) -> Graphs:
    """One file, or all of a folder."""
    files = sorted(path.glob(PATTERN)) if path.is_dir() else [path]
    if not files:
        raise DataError(path, f"no file matches {PATTERN}")

    def images() -> Iterator[Image]:
        return (Image(*entry, split_of(file)) for file in files for entry in keyed_rows(file))

    return named_graphs(path, report, images, _fields, name="gqa")


def _fields(image: Image) -> dict[str, Any]:
    row = image.row
    objects = row.get("objects") if isinstance(row, dict) else None
    if not isinstance(objects, dict) or not all(isinstance(each, dict) for each in objects.values()):
        raise GraphError("objects: expected an object, id -> object")
    place = {key: i for i, key in enumerate(objects)}
    relations = [
        (
            place[key],
            end(place, link.get("object"), f"objects.{key}.relations"),
            word(link.get("name"), "relations.name"),
        )
        for key, each in objects.items()
        for link in entries(each.get("relations", []), f"objects.{key}.relations")
    ]
    return {
        "boxes": [box(each, f"objects.{key}") for key, each in objects.items()],
        "labels": [word(each.get("name"), f"objects.{key}.name") for key, each in objects.items()],
        "attributes": [words(each.get("attributes"), f"objects.{key}.attributes") for key, each in objects.items()],
        "relations": relations,
        **about(image.key, f"{image.key}.jpg", row),
    }
