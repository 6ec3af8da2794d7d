"""Visual Genome in the layout of Xu et al. 2017: VG-SGG.h5, VG-SGG-dicts.json, image_data.json.

Files with attributes are called VG-SGG-with-attri.h5 and VG-SGG-dicts-with-attri.json (Tang et al. 2020).

    pixel box = (xc - w/2, yc - h/2, xc + w/2, yc + h/2) * max(width, height) / 1024

Everything is checked at once, as arrays, when the file is opened; an image with a defect is reported and left out.
Files differ in dtypes, shapes ((R, 1) or (R,)), sentinels (any negative number) and optional datasets; all are read.
`boxes_pixel`, which only this project writes, holds corners that rounding at scale 1024 would change.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.graphs import Columns
from scenegpi.data.hdf5 import read_hdf5
from scenegpi.data.limits import file_vocabulary
from scenegpi.data.named import list_rows
from scenegpi.data.visual_genome_check import VisualGenome
from scenegpi.errors import DataError, Report
from scenegpi.files import read_object
from scenegpi.vocabulary import Vocabulary

DROPPED_IDS = (1592, 1722, 4616, 4617)  # listed in image_data.json, absent from the h5 file
POINTERS = ("img_to_first_box", "img_to_last_box", "img_to_first_rel", "img_to_last_rel")
BOXES = ("boxes_1024", "boxes_512")
SHAPES = {"labels": (1, 0), **dict.fromkeys(BOXES, (2, 4)), "predicates": (1, 0), "relationships": (2, 2)}
SHAPES |= dict.fromkeys((*POINTERS, "split"), (1, 0)) | {"attributes": (2, 0), "boxes_pixel": (2, 4)}


def read_visual_genome(path: Path, report: Report) -> Columns:
    """All images of the three files in a folder, or beside an h5 file, in the order of the h5 file."""
    h5, dicts, image_data = visual_genome_files(path)
    vocabulary, attributes = read_dicts(dicts)
    raw = _read_h5(h5)
    images = _read_image_data(image_data, len(raw["img_to_first_box"]))
    return VisualGenome(h5, image_data, raw, vocabulary, attributes, *images, report).columns()


def visual_genome_files(path: Path) -> tuple[Path, Path, Path]:
    """The h5 file, the dictionaries and image_data.json of a folder, or beside an h5 file."""
    folder = path if path.is_dir() else path.parent

    def one(kind: str, usual: str, *patterns: str) -> Path:
        if (folder / usual).exists():
            return folder / usual
        found = sorted(file for pattern in patterns for file in folder.glob(pattern))
        if len(found) != 1:
            said = f"expected one file ({kind}), found {len(found)}" if found else f"no such file ({kind})"
            raise DataError(folder / usual, said)
        return found[0]

    h5 = path if not path.is_dir() else one("h5 file", "VG-SGG.h5", "*.h5", "*.hdf5")
    return (
        h5,
        one("dictionaries", f"VG-SGG-dicts{h5.stem.removeprefix('VG-SGG')}.json", "*dicts*.json"),
        one("image sizes", "image_data.json", "image_data*.json"),
    )


def read_dicts(path: Path) -> tuple[Vocabulary, list[str]]:
    """The vocabulary, and the names of attributes: `idx_to_label`, or `label_to_idx` alone, and so on."""
    data = read_object(path, unique=True)
    objects, predicates = (_names(path, data, kind) for kind in ("label", "predicate"))
    there = "idx_to_attribute" in data or "attribute_to_idx" in data
    attributes = _names(path, data, "attribute") if there else []
    file_vocabulary(path, attributes)  # checks that these are unique names
    name = data["name"] if isinstance(data.get("name"), str) else f"vg{len(objects)}"
    return file_vocabulary(path, objects, predicates, name), attributes


def _names(path: Path, data: dict[str, Any], kind: str) -> list[str]:
    field, backward = f"idx_to_{kind}", data.get(f"{kind}_to_idx")
    table = data.get(field)
    if table is None and isinstance(backward, dict):
        field = f"{kind}_to_idx"
        table = {str(index): name for name, index in backward.items() if name != "__background__"}
    if not isinstance(table, dict):
        raise DataError(path, f"{field}: missing, or not an object")
    table = {index: name for index, name in table.items() if index != "0"}
    try:
        return [table[str(i)] for i in range(1, len(table) + 1)]
    except KeyError as error:
        raise DataError(path, f"{field}: the numbers must run from 1 to {len(table)}, {error} is missing") from None


def _read_image_data(path: Path, n: int) -> tuple[list[Any], list[Any], NDArray[np.int64]]:
    """Ids, file names and (N, 2) sizes of the n images of the h5 file."""
    rows = []
    for i, row in enumerate(list_rows(path)):
        if not isinstance(row, dict):
            raise DataError(path, f"[{i}]: expected an object")
        image_id = row.get("image_id", row.get("id"))
        size = (_side(row.get("width")), _side(row.get("height")))
        rows.append((image_id, row.get("file_name", f"{image_id}.jpg"), size))
    if len(rows) != n:
        rows = [row for row in rows if row[0] not in DROPPED_IDS]
    if len(rows) != n:
        raise DataError(path, f"{len(rows):,} images, but the h5 file has {n:,}")
    if not rows:
        raise DataError(path, "contains no images")
    ids, files, sizes = map(list, zip(*rows, strict=True))
    return ids, files, np.array(sizes, dtype=np.int64)


def _side(value: Any) -> int:
    """A side in pixels; 0 for anything else."""
    whole = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 2**31
    return int(value) if whole and value == int(value) else 0


def _read_h5(path: Path) -> dict[str, NDArray[Any]]:
    """The datasets as arrays of the shapes (B, 4), (B,), (R,), (R, 2), (N,); DataError if one is missing or invalid."""
    raw = read_hdf5(path, SHAPES, either=BOXES)
    for name in ("labels", "predicates", "relationships", *POINTERS):
        if name not in raw:
            raise DataError(path, f"dataset {name!r} is missing")
    boxes = next((name for name in BOXES if name in raw), None)
    if boxes is None:
        raise DataError(path, f"dataset {BOXES[0]!r} is missing")
    raw["scale"] = np.array(1024 if boxes == BOXES[0] else 512)
    raw["boxes"] = raw.pop(boxes)
    for group in (("labels", "boxes"), ("predicates", "relationships"), POINTERS):
        lengths = {len(raw[name]) for name in group}
        if len(lengths) > 1:
            found = ", ".join(f"{name} {len(raw[name]):,}" for name in group)
            raise DataError(path, f"datasets that must have the same length do not: {found}")
    for name, like in {"attributes": "labels", "boxes_pixel": "labels", "split": POINTERS[0]}.items():
        if name in raw and len(raw[name]) != len(raw[like]):
            raise DataError(path, f"{name}: {len(raw[name]):,} rows, expected {len(raw[like]):,}")
    return raw
