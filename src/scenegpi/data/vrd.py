"""Visual Relationship Detection (Lu et al. 2016): annotations_train.json, annotations_test.json and the names.

An object of an image is a distinct (category, bbox); bbox = [ymin, ymax, xmin, xmax]; indices are 0-based.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scenegpi.data.builder import ColumnsBuilder
from scenegpi.data.columns import SPLITS, Columns
from scenegpi.data.json_stream import JsonStream
from scenegpi.data.limits import check_images
from scenegpi.errors import DataError, Report
from scenegpi.files import read_names, read_object
from scenegpi.vocabulary import Vocabulary


class _RowError(Exception):
    """One invalid annotation: the field and what is wrong with it."""


def read_vrd(folder: Path, report: Report) -> Columns:
    """Both splits of a VRD folder, training images first. Sizes come from image_sizes.json where it is there."""
    try:
        objects, predicates = read_names(folder / "objects.json"), read_names(folder / "predicates.json")
        vocabulary = Vocabulary(objects, predicates, "vrd")
    except ValueError as error:
        raise DataError(folder, str(error)) from None
    sizes_file = folder / "image_sizes.json"
    sizes = read_object(sizes_file, unique=True) if sizes_file.exists() else {}
    builder = ColumnsBuilder(vocabulary, report)
    found = False
    for split in ("train", "test"):
        path = folder / f"annotations_{split}.json"
        if path.exists():
            found = True
            report.file = str(path)
            for name, rows in _images(path):
                _add_image(builder, report, name, rows, sizes, SPLITS[split])
    if not found:
        raise DataError(folder, "neither annotations_train.json nor annotations_test.json is there")
    return builder.build()


def _images(path: Path) -> Iterator[tuple[str, Any]]:
    """The images of one file with their annotations; a name that is there twice is an error."""
    with JsonStream(path) as stream:
        if stream.peek() != "{":
            raise DataError(path, "expected a JSON object")
        for i, name in enumerate(stream.entries(unique=True)):
            check_images(path, i, stream.size)
            yield name, stream.value()
        stream.end()


def _add_image(builder: ColumnsBuilder, report: Report, name: str, rows: Any, sizes: Any, split: int) -> None:
    seen: dict[tuple[int, ...], int] = {}
    relations = []
    problems: list[_RowError] = []
    width = height = None
    if not isinstance(rows, list):
        problems.append(_RowError("annotations", f"expected a list, found {type(rows).__name__}"))
        rows = []
    for i, row in enumerate(rows):
        try:
            if not isinstance(row, dict):
                raise _RowError(f"[{i}]", "expected an object")
            ends = [seen.setdefault(_object(row.get(end), f"[{i}].{end}"), len(seen)) for end in ("subject", "object")]
            relations.append((*ends, _whole(row.get("predicate"), f"[{i}].predicate")))
        except _RowError as error:
            problems.append(error)
    try:
        width, height = _size(sizes.get(name))
    except _RowError as error:
        problems.append(error)
    if problems:
        report.skip(name, problems)
        return
    builder.add(
        split,
        boxes=[(x1, y1, x2, y2) for _, y1, y2, x1, x2 in seen],
        labels=[key[0] for key in seen],
        relations=relations,
        image_id=name,
        file=name,
        width=width,
        height=height,
    )


def _object(value: Any, field: str) -> tuple[int, ...]:
    if not isinstance(value, dict):
        raise _RowError(field, "expected an object with category and bbox")
    box = value.get("bbox")
    if not isinstance(box, list) or len(box) != 4:
        raise _RowError(f"{field}.bbox", f"expected [ymin, ymax, xmin, xmax], found {box!r:.60}")
    return (_whole(value.get("category"), f"{field}.category"), *(_whole(v, f"{field}.bbox") for v in box))


def _whole(value: Any, field: str) -> int:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole:
        raise _RowError(field, f"expected a whole number, found {value!r:.60}")
    return int(value)


def _size(value: Any) -> tuple[int | None, int | None]:
    if value is None:
        return None, None
    if not isinstance(value, dict):
        raise _RowError("image_sizes", f"expected an object with width and height, found {value!r:.60}")
    return _whole(value.get("width"), "image_sizes.width"), _whole(value.get("height"), "image_sizes.height")
