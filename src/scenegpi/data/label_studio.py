"""Graphs -> Label Studio's JSON: one task an image, boxes as rectangle labels, relations between them.

Its boxes are x, y, width, height in percent of the image; a relation goes from one region to another, with labels.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scenegpi.errors import DataError
from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph


def label_studio_task(graph: SceneGraph, number: int = 0) -> dict[str, Any]:
    """One image; DataError where its size is not known."""
    name = graph.file or str(graph.image_id if graph.image_id is not None else f"image {number}")
    if not graph.width or not graph.height:
        raise DataError(name, "Label Studio's boxes are in percent, which needs the image's width and height")
    size = {"original_width": graph.width, "original_height": graph.height, "image_rotation": 0}
    ways = {"from_name": "label", "to_name": "image", "type": "rectanglelabels"}
    result: list[dict[str, Any]] = []
    for i, ((x1, y1, x2, y2), label) in enumerate(zip(graph.boxes.tolist(), graph.names, strict=True)):
        value: dict[str, Any] = {"x": 100 * x1 / graph.width, "y": 100 * y1 / graph.height, "rotation": 0}
        value |= {"width": 100 * (x2 - x1) / graph.width, "height": 100 * (y2 - y1) / graph.height}
        result.append({"id": f"box{i}", **ways, **size, "value": value | {"rectanglelabels": [label]}})
        if graph.scores is not None:
            result[-1]["score"] = graph.scores.item(i)
    for s, o, p in graph.relations.tolist():
        ends = {"from_id": f"box{s}", "to_id": f"box{o}", "direction": "right"}
        result.append({"type": "relation", **ends, "labels": [graph.vocabulary.predicates[p]]})
    return {"data": {"image": name}, "annotations": [{"result": result}]}


def write_label_studio(target: Path, graphs: Iterable[SceneGraph], overwrite: bool = False) -> int:
    """A JSON file of tasks; returns the number of images."""
    count = 0
    with whole_file(target, overwrite) as part, part.open("w", encoding="utf-8") as handle:
        handle.write("[")
        for count, graph in enumerate(graphs, 1):
            text = json.dumps(label_studio_task(graph, count - 1), ensure_ascii=False, allow_nan=False)
            handle.write((",\n" if count > 1 else "\n") + text)
        handle.write("\n]\n")
    return count
