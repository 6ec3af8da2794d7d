"""Visual Relationship Detection (Lu et al. 2016): annotations_train.json, annotations_test.json and the names.

An object of an image is a distinct (category, bbox); bbox = [ymin, ymax, xmin, xmax]; indices are 0-based.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenegpi.data.columns import SPLITS
from scenegpi.data.graphs import Graphs
from scenegpi.data.limits import file_vocabulary
from scenegpi.data.named import keyed_rows, whole
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.files import read_names, read_object


def read_vrd(folder: Path, report: Report) -> Graphs:
    """Both splits of a VRD folder, training images first. Sizes come from image_sizes.json where it is there."""
    objects, predicates = (read_names(folder / f"{name}.json") for name in ("objects", "predicates"))
    builder = Graphs(file_vocabulary(folder, objects, predicates, "vrd"), report)
    sizes_file = folder / "image_sizes.json"
    sizes = read_object(sizes_file, unique=True) if sizes_file.exists() else {}
    files = {split: path for split in ("train", "test") if (path := folder / f"annotations_{split}.json").exists()}
    if not files:
        raise DataError(folder, "neither annotations_train.json nor annotations_test.json is there")
    for split, path in files.items():
        report.file = str(path)
        for name, rows in keyed_rows(path):
            try:
                fields = _fields(rows, sizes.get(name, {}))
            except GraphError as error:
                report.skip(name, error)
                continue
            builder.add(SPLITS[split], image_id=name, file=name, **fields)
    return builder


def _fields(rows: Any, size: Any) -> dict[str, Any]:
    """Fields of a graph (see SceneGraph)."""
    if not isinstance(rows, list):
        raise GraphError(f"annotations: expected a list, found {type(rows).__name__}")
    if not isinstance(size, dict):
        raise GraphError(f"image_sizes: expected an object with width and height, found {size!r:.60}")
    seen: dict[tuple[int, ...], int] = {}
    relations: list[tuple[int, ...]] = []
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise GraphError(f"[{i}]: expected an object")
        ends = [seen.setdefault(_object(row.get(end), f"[{i}].{end}"), len(seen)) for end in ("subject", "object")]
        relations.append((*ends, _whole(row.get("predicate"), f"[{i}].predicate")))
    return {
        "boxes": [(x1, y1, x2, y2) for _, y1, y2, x1, x2 in seen],
        "labels": [key[0] for key in seen],
        "relations": relations,
        "width": whole(size.get("width")),
        "height": whole(size.get("height")),
    }


def _object(value: Any, field: str) -> tuple[int, ...]:
    if not isinstance(value, dict):
        raise GraphError(f"{field}: expected an object with category and bbox")
    box = value.get("bbox")
    if not isinstance(box, list) or len(box) != 4:
        raise GraphError(f"{field}.bbox: expected [ymin, ymax, xmin, xmax], found {box!r:.60}")
    return (_whole(value.get("category"), f"{field}.category"), *(_whole(v, f"{field}.bbox") for v in box))


def _whole(value: Any, field: str) -> int:
    if isinstance(value, bool) or not isinstance(whole(value), int):
        raise GraphError(f"{field}: expected a whole number, found {value!r:.60}")
    return int(value)
