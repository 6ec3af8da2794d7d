"""Visual Relationship Detection (Lu et al. 2016): annotations_train.json, annotations_test.json and the names.

An object of an image is a distinct (category, bbox); bbox = [ymin, ymax, xmin, xmax]; indices are 0-based.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scenegpi.data.graphs import SPLITS, Graphs
from scenegpi.data.limits import file_vocabulary
from scenegpi.data.named import Image, keyed_rows, named_graphs, whole
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.files import read_names, read_object


def read_vrd(folder: Path, report: Report) -> Graphs:
    """Both splits of a VRD folder, training images first. Sizes come from image_sizes.json, if present."""
    objects, predicates = (read_names(folder / f"{name}.json") for name in ("objects", "predicates"))
    vocabulary = file_vocabulary(folder, objects, predicates, "vrd")
    sizes_file = folder / "image_sizes.json"
    sizes = read_object(sizes_file, unique=True) if sizes_file.exists() else {}
    files = {split: path for split in ("train", "test") if (path := folder / f"annotations_{split}.json").exists()}
    if not files:
        raise DataError(folder, "expected annotations_train.json or annotations_test.json")

    def images() -> Iterator[Image]:
        for split, path in files.items():
            report.file = str(path)
            yield from (Image(*entry, SPLITS[split]) for entry in keyed_rows(path))

    return named_graphs(folder, report, images, partial(_fields, sizes=sizes), vocabulary)


def _fields(image: Image, sizes: dict[str, Any]) -> dict[str, Any]:
    size = sizes.get(str(image.key), {})
    if not isinstance(image.row, list):
        raise GraphError(f"annotations: expected a list, found {type(image.row).__name__}")
    if not isinstance(size, dict):
        raise GraphError(f"image_sizes: expected an object with width and height, found {size!r:.60}")
    seen: dict[tuple[int, ...], int] = {}
    relations: list[tuple[int, ...]] = []
    for i, row in enumerate(image.row):
        if not isinstance(row, dict):
            raise GraphError(f"[{i}]: expected an object")
        ends = [seen.setdefault(_object(row.get(end), f"[{i}].{end}"), len(seen)) for end in ("subject", "object")]
        relations.append((*ends, _whole(row.get("predicate"), f"[{i}].predicate")))
    return {
        "boxes": [(x1, y1, x2, y2) for _, y1, y2, x1, x2 in seen],
        "labels": [label for label, *_ in seen],
        "relations": relations,
        "image_id": image.key,
        "file": image.key,
        **{side: whole(size.get(side)) for side in ("width", "height")},
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
