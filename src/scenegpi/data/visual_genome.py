"""Visual Genome in the layout of Xu et al. 2017: VG-SGG.h5, VG-SGG-dicts.json, image_data.json.

    pixel box = (xc - w/2, yc - h/2, xc + w/2, yc + h/2) * max(width, height) / 1024

Everything is checked at once, as arrays, when the file is opened; an image with a defect is reported and left out.
Files differ in dtypes, shapes ((R, 1) or (R,)), sentinels (any negative number) and optional datasets; all are read.
Datasets that only this project writes (docs/formats.md) carry what the layout can't hold: exact pixel boxes, scores,
distributions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from scenegpi.data.columns import Columns
from scenegpi.data.visual_genome_check import ABSENT, CheckedFile
from scenegpi.errors import DataError, Report
from scenegpi.files import check_file, read_json, read_object, reason
from scenegpi.vocabulary import Vocabulary

DROPPED_IDS = (1592, 1722, 4616, 4617)  # listed in image_data.json, absent from the h5 file
MAX_ROWS, MAX_BYTES = 10_000_000, 2**31  # Visual Genome has 1.1 million boxes
POINTERS = ("img_to_first_box", "img_to_last_box", "img_to_first_rel", "img_to_last_rel")


def read_visual_genome(h5: Path, dicts: Path, image_data: Path, report: Report) -> Columns:
    """All images of the three files, in the order of the h5 file."""
    vocabulary = read_dicts(dicts)
    raw = _read_h5(h5)
    n = len(raw["img_to_first_box"])
    image_ids, files, sizes = _read_image_data(image_data, n)
    return CheckedFile(raw, vocabulary, image_ids, files, sizes, report, h5, image_data).columns()


def read_dicts(path: Path) -> Vocabulary:
    """The vocabulary: `idx_to_label` / `idx_to_predicate`, or the inverse tables where only these are there."""
    data = read_object(path, unique=True)
    objects = _names(path, data, "idx_to_label", "label_to_idx")
    predicates = _names(path, data, "idx_to_predicate", "predicate_to_idx")
    try:
        name = data.get("name")
        return Vocabulary(objects, predicates, name if isinstance(name, str) else f"vg{len(objects)}")
    except ValueError as error:
        raise DataError(path, str(error)) from None


def _names(path: Path, data: dict[str, Any], forward: str, backward: str) -> list[str]:
    table = data.get(forward)
    field = forward
    if table is None and isinstance(data.get(backward), dict):
        table = {str(index): name for name, index in data[backward].items() if name != "__background__"}
        field = backward
    if not isinstance(table, dict):
        raise DataError(path, f"{forward}: missing, or not an object")
    table = {index: name for index, name in table.items() if index != "0"}
    try:
        return [table[str(i)] for i in range(1, len(table) + 1)]
    except KeyError as error:
        raise DataError(path, f"{field}: the numbers must run from 1 to {len(table)}, {error} is missing") from None


def _read_image_data(path: Path, n: int) -> tuple[list[Any], list[Any], NDArray[np.int64]]:
    rows = read_json(path)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DataError(path, "expected a list of objects, one an image")
    if len(rows) != n:
        rows = [row for row in rows if row.get("image_id") not in DROPPED_IDS]
    if len(rows) != n:
        raise DataError(path, f"{len(rows):,} images, but the h5 file has {n:,}")
    ids = [row.get("image_id", row.get("id")) for row in rows]
    files = [row.get("file_name", f"{image_id}.jpg") for row, image_id in zip(rows, ids, strict=True)]
    sides = [_sides([row.get(side) for row in rows]) for side in ("width", "height")]
    return ids, files, np.column_stack(sides)


def _sides(values: list[Any]) -> NDArray[np.int64]:
    """(N,) sides in pixels, 0 for what is no side of a picture."""
    if set(map(type, values)) == {int} and min(values) > 0 and max(values) < 2**31:
        return np.array(values, dtype=np.int64)
    return np.array([_size(value) for value in values], dtype=np.int64)


def _size(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**31 or value != int(value):
        return 0
    return int(value)


def _read_h5(path: Path) -> dict[str, NDArray[Any]]:
    """The datasets as arrays of the shapes (B, 4), (B,), (R,), (R, 2), (N,); DataError where one is missing or odd."""
    check_file(path)
    try:
        with h5py.File(path, "r") as file:
            boxes = next((name for name in ("boxes_1024", "boxes_512") if name in file), "boxes_1024")
            raw = {
                "labels": _dataset(path, file, "labels", 1),
                "boxes": _dataset(path, file, boxes, 2, 4),
                "predicates": _dataset(path, file, "predicates", 1),
                "relationships": _dataset(path, file, "relationships", 2, 2),
                **{name: _dataset(path, file, name, 1) for name in POINTERS},
            }
            raw["scale"] = np.array(1024 if boxes == "boxes_1024" else 512)
            optional = {"split": (1,), "boxes_pixel": (2, 4), "scores": (1,), "predicate_scores": (1,)}
            optional |= {"label_dist": (2,), "pairs": (2, 2), "pair_dist": (2,), "img_to_first_pair": (1,)}
            optional |= {f"absent_{name}": (1,) for name in ABSENT}
            for name, shape in optional.items():
                if name in file:
                    raw[name] = _dataset(path, file, name, *shape)
    except DataError:
        raise
    except OSError as error:
        raise DataError(path, f"not a readable HDF5 file ({reason(error).splitlines()[0]})") from None
    except (RuntimeError, ValueError, KeyError, TypeError, MemoryError, OverflowError, SystemError) as error:
        raise DataError(path, f"broken HDF5 file ({str(error)[:200]})") from None
    for group in (("labels", "boxes"), ("predicates", "relationships"), POINTERS):
        lengths = {len(raw[name]) for name in group}
        if len(lengths) > 1:
            found = ", ".join(f"{name} {len(raw[name]):,}" for name in group)
            raise DataError(path, f"datasets that must be equally long are not: {found}")
    images, boxes = POINTERS[0], "labels"
    likes = {"split": images, "boxes_pixel": boxes, "scores": boxes, "label_dist": boxes}
    likes |= {"predicate_scores": "predicates", **{f"absent_{name}": images for name in ABSENT}}
    for name, like in likes.items():
        if name in raw and len(raw[name]) != len(raw[like]):
            raise DataError(path, f"{name}: {len(raw[name]):,} rows, expected {len(raw[like]):,}")
    return raw


def _dataset(path: Path, file: Any, name: str, ndim: int, width: int = 0) -> NDArray[Any]:
    if name not in file:
        raise DataError(path, f"dataset {name!r} is missing")
    if isinstance(file.get(name, getlink=True), h5py.ExternalLink):
        raise DataError(path, f"{name}: the data must lie in this file")
    data = file[name]
    if data.file.filename != file.filename:  # a link to a link to elsewhere
        raise DataError(path, f"{name}: the data must lie in this file")
    if not isinstance(data, h5py.Dataset) or data.dtype.kind not in "iufb":
        raise DataError(path, f"{name}: expected numbers")
    if data.shape is None or data.is_virtual or data.external:
        raise DataError(path, f"{name}: the data must lie in this file")
    if data.size > MAX_ROWS * max(width, 1) and name not in ("label_dist", "pair_dist"):
        raise DataError(path, f"{name}: shape {data.shape} is more than this reader takes")
    if data.size * data.dtype.itemsize > MAX_BYTES:
        raise DataError(path, f"{name}: shape {data.shape} is more than this reader takes")
    array = data[()]
    if ndim == 1 and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.size == 0 and ndim == 2 and width:
        array = array.reshape(0, width)
    if array.ndim != ndim or (width and array.shape[1] != width):
        raise DataError(path, f"{name}: unexpected shape {data.shape}")
    return np.asarray(array)
