"""YOLO txt: one file per image with lines `class xc yc w h [confidence]`, in fractions of the image."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan, nan
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.class_names import NAME_FILES, Names, read_names_file, vocabulary_of
from scenegpi.data.graphs import NO_SPLIT, SPLITS, Graphs
from scenegpi.data.images import ImageFolders, Sizes
from scenegpi.data.limits import check_crowd
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.files import check_file, read_text

SPLIT_FOLDERS = {"train": SPLITS["train"], "val": SPLITS["val"], "valid": SPLITS["val"], "test": SPLITS["test"]}
NO_LABELS = ("readme", "license", "requirements")
MAX_BYTES = 2**23  # per image


def label_folders(path: Path) -> list[tuple[Path, int]]:
    """Folders of txt files, with their split: the folder itself, `labels`, `train/labels` or `labels/train`."""
    found = [(path, NO_SPLIT), (path / "labels", NO_SPLIT)]
    for name, split in SPLIT_FOLDERS.items():
        found += [(path / name / "labels", split), (path / "labels" / name, split)]
    return [(folder, split) for folder, split in found if folder.is_dir() and next(_label_files(folder), None)]


def read_yolo(
    path: Path, report: Report, images: ImageFolders, names: Names | None = None, sizes: Path | None = None
) -> Graphs:
    """A folder of txt files, the root of a data set with splits, or one txt file."""
    if path.is_dir():
        files = [(file, split) for folder, split in label_folders(path) for file in sorted(_label_files(folder))]
    else:
        check_file(path, empty=True)
        files = [(path, NO_SPLIT)]
    if not files:
        raise DataError(path, "holds no txt file with labels")
    folder = path if path.is_dir() else path.parent
    if names is None:
        near = (place / name for place in (folder, *list(folder.resolve().parents)[:2]) for name in NAME_FILES)
        names = next((read_names_file(file) for file in near if file.is_file()), None)
    beside = {file.parent.parent / "images" for file, _ in files} | {
        file.parent.parent.parent / "images" / file.parent.name for file, _ in files
    }
    images = ImageFolders([*images.folders, *sorted(place for place in beside if place.is_dir())])
    rows = {file: _rows(file, report) for file, _ in files}
    found = sorted({int(key) for each in rows.values() if each is not None for key in np.unique(each[:, 0])})
    vocabulary, label_of = vocabulary_of(path, found, names)
    builder = Graphs(vocabulary, report)
    lookup = Sizes(images, sizes, report)
    for file, split in files:
        table = rows.pop(file)
        if table is None:
            report.skipped += 1
            continue
        report.file = str(file)
        width, height = lookup.of(file.stem)
        photo = images.find(file.stem)
        with np.errstate(over="ignore", invalid="ignore"):  # boxes that are not finite are a defect of the image
            half = table[:, 3:5] / 2
            boxes = np.hstack([table[:, 1:3] - half, table[:, 1:3] + half]) * ([width, height] * 2)
        builder.add(
            split,
            image_id=file.stem,
            file=photo.name if photo else None,
            width=width,
            height=height,
            boxes=boxes,
            labels=[label_of[key] for key in table[:, 0].astype(np.int64).tolist()],
            scores=None if np.isnan(table[:, 5]).all() else np.where(np.isnan(table[:, 5]), 1.0, table[:, 5]),
        )
    return builder


def _label_files(folder: Path) -> Iterator[Path]:
    """The txt files of a folder, without class names and read-me files."""
    for file in folder.glob("*.txt"):
        if file.is_file() and file.name not in NAME_FILES and not file.name.lower().startswith(NO_LABELS):
            yield file


def _rows(path: Path, report: Report) -> NDArray[np.float64] | None:
    """(N, 6) class, xc, yc, w, h, confidence (NaN where not given); None where a line is invalid."""
    try:
        lines = read_text(path, MAX_BYTES, empty=True).splitlines()
        check_crowd(sum(1 for line in lines if line.strip()))
    except (DataError, GraphError) as error:
        where, said = ("file", error.message) if isinstance(error, DataError) else str(error).split(": ", 1)
        report.error(path.stem, where, said, str(path))
        return None
    rows = {number: _numbers(line) for number, line in enumerate(lines, 1) if line.strip()}
    for number in (number for number, row in rows.items() if row is None):
        said = f"expected: class xc yc w h [confidence], found {lines[number - 1].strip()!r:.60}"
        report.error(path.stem, f"line {number}", said, str(path))
    return None if None in rows.values() else np.array([*rows.values()], dtype=np.float64).reshape(-1, 6)


def _numbers(line: str) -> list[float] | None:
    """Class, xc, yc, w, h and confidence (NaN where not given) of a line, or None if it is invalid."""
    try:
        row = [float(part) for part in line.split(None, 6)]  # a seventh part is an error
    except ValueError:
        return None
    fine = len(row) in (5, 6) and not any(map(isnan, row)) and row[0].is_integer() and 0 <= row[0] < 2**31
    return [*row, nan][:6] if fine else None
