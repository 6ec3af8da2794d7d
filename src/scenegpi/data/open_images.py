"""Open Images relationship CSV: one relation per row, boxes in fractions of the image.

    ImageID, LabelName1, LabelName2, XMin1, XMax1, YMin1, YMax1, XMin2, XMax2, YMin2, YMax2, RelationshipLabel

Class names come from a descriptions CSV (`/m/04yx4,Man`) beside it, where there is one. An object is a distinct
(label, box) of its image. Fractions become pixels by the photo's size, or by a sizes file; where neither is there, a
canvas of 1024 x 1024 stands in, with a warning.
"""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.builder import ColumnsBuilder
from scenegpi.data.columns import NO_SPLIT, SPLITS, Columns
from scenegpi.data.images import ImageFolders, Sizes
from scenegpi.data.limits import check_images, check_names, too_many
from scenegpi.errors import DataError, Report
from scenegpi.files import MAX_BYTES, check_file, open_file, reason
from scenegpi.vocabulary import Vocabulary

SPLIT_WORDS = {**SPLITS, "validation": SPLITS["val"]}
MAX_LINE, MAX_DESCRIPTIONS = 2**16, 2**25
BOXES = ("XMin1", "YMin1", "XMax1", "YMax1", "XMin2", "YMin2", "XMax2", "YMax2")
COLUMNS = ("ImageID", "LabelName1", "LabelName2", *BOXES, "RelationshipLabel")


def read_open_images(path: Path, report: Report, images: ImageFolders, sizes: Path | None = None) -> Columns:
    """All images of one CSV file, in order of first appearance; the file's name may tell the split."""
    check_file(path, MAX_BYTES)
    described = _descriptions(path.parent)
    table = _Table(path)
    bad: set[str] = set()
    for line, row in _rows(path):
        image_id, label1, label2, *numbers, predicate = row
        if not all(row):
            report.error(image_id or None, f"line {line}: {COLUMNS[row.index('')]}", "missing")
            bad.add(image_id)
            continue
        try:
            values = [float(number) for number in numbers]
        except ValueError:
            report.error(image_id, f"line {line}: XMin1..YMax2", "expected numbers")
            bad.add(image_id)
            continue
        table.add(image_id, (described.get(label1, label1), described.get(label2, label2)), predicate, values)
    builder = ColumnsBuilder(table.vocabulary(), report)
    lookup = Sizes(images, sizes, report)
    words = re.split(r"[^a-z]+", path.stem.lower())
    split = next((code for name, code in SPLIT_WORDS.items() if name in words), NO_SPLIT)
    report.skipped += len(bad)
    for image_id, names, corners in table.images():
        if image_id not in bad:
            _add_image(builder, lookup.of(image_id), image_id, names, corners, split)
    return builder.build()


class _Table:
    """The rows as numbers: images, labels and predicates in order of first appearance, and eight corners each."""

    def __init__(self, path: Path) -> None:
        self.path, self.size = path, path.stat().st_size
        self.image_number: dict[str, int] = {}
        self.label_number: dict[str, int] = {}
        self.predicate_number: dict[str, int] = {}
        self.rows = array("i")  # image, two labels, predicate
        self.corners = array("d")

    def add(self, image_id: str, labels: tuple[str, str], predicate: str, corners: list[float]) -> None:
        image = self.image_number.setdefault(image_id, len(self.image_number))
        first, second = (self.label_number.setdefault(label, len(self.label_number)) for label in labels)
        relation = self.predicate_number.setdefault(predicate, len(self.predicate_number))
        check_images(self.path, image, self.size, each=64)
        check_names(self.path, max(first, second), "LabelName1, LabelName2")
        check_names(self.path, relation, "RelationshipLabel")
        self.rows.extend((image, first, second, relation))
        self.corners.extend(corners)

    def vocabulary(self) -> Vocabulary:
        return Vocabulary(sorted(self.label_number), sorted(self.predicate_number), "open-images")

    def images(self) -> Iterator[tuple[str, NDArray[np.int32], NDArray[np.float64]]]:
        """Each image with (R, 3) its labels and predicates, as numbers of the vocabulary, and (R, 8) corners."""
        rows = np.frombuffer(self.rows, dtype=np.int32).reshape(-1, 4)
        corners = np.frombuffer(self.corners).reshape(-1, 8)
        for column, number in ((1, self.label_number), (2, self.label_number), (3, self.predicate_number)):
            place = np.empty(len(number), dtype=np.int32)
            place[[number[name] for name in sorted(number)]] = np.arange(len(number))
            rows[:, column] = place[rows[:, column]]
        order = np.argsort(rows[:, 0], kind="stable")
        ends = np.cumsum(np.bincount(rows[:, 0], minlength=len(self.image_number)))
        for image_id, start, end in zip(self.image_number, [0, *ends[:-1].tolist()], ends.tolist(), strict=False):
            mine = order[start:end]
            yield image_id, rows[mine, 1:], corners[mine]


def _add_image(
    builder: ColumnsBuilder,
    size: tuple[int, int],
    image_id: str,
    names: NDArray[np.int32],
    corners: NDArray[np.float64],
    split: int,
) -> None:
    """An object is a distinct label and box of its image, in order of first appearance."""
    crowded = too_many(0, len(names))
    if crowded:
        builder.report.error(image_id, *crowded)
        builder.report.skipped += 1
        return
    seen: dict[tuple[float, ...], int] = {}
    relations = []
    for (label1, label2, predicate), row in zip(names.tolist(), corners.tolist(), strict=True):
        ends = ((label1, *row[:4]), (label2, *row[4:]))
        relations.append((*(seen.setdefault(end, len(seen)) for end in ends), predicate))
    objects = np.array(list(seen))
    with np.errstate(over="ignore"):  # what is not finite is a defect of the image
        boxes = objects[:, 1:] * (size * 2)
    builder.add(
        split,
        boxes=boxes,
        labels=objects[:, 0].astype(np.int64),
        relations=relations,
        image_id=image_id,
        file=f"{image_id}.jpg",
        width=size[0],
        height=size[1],
    )


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The values of COLUMNS on each line that is not blank, with its number; "" for what is missing."""
    with _text(path, MAX_BYTES) as handle:
        try:
            reader = csv.reader(_lines(handle))
            header = {name: i for i, name in enumerate(next(reader, []))}
            absent = [name for name in COLUMNS if name not in header]
            if absent:
                raise DataError(path, f"column {absent[0]!r} is missing (is this an Open Images relationship file?)")
            places = [header[name] for name in COLUMNS]
            for row in reader:
                if len(row) > max(places):
                    yield reader.line_num, [row[place] for place in places]
                elif row:
                    yield reader.line_num, [row[place] if place < len(row) else "" for place in places]
        except OSError as error:
            raise DataError(path, f"cannot be read ({reason(error)})") from None
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(path, f"not a CSV file ({error})") from None


def _text(path: Path, max_bytes: int) -> TextIO:
    return io.TextIOWrapper(open_file(path, max_bytes), encoding="utf-8-sig", newline="")


def _lines(handle: TextIO) -> Iterator[str]:
    while line := handle.readline(MAX_LINE):
        if len(line) == MAX_LINE:
            raise csv.Error(f"a line of more than {MAX_LINE:,} characters")
        yield line


def _descriptions(folder: Path) -> dict[str, str]:
    """Machine ids -> words, from any *class-descriptions*.csv or *attributes-description*.csv of the folder."""
    names: dict[str, str] = {}
    for path in sorted(folder.glob("*description*.csv")):
        with _text(path, MAX_DESCRIPTIONS) as handle:
            try:
                for row in csv.reader(_lines(handle)):
                    if len(row) == 2 and row[1]:
                        names[row[0]] = row[1]
                        check_names(path, len(names), "descriptions")
            except (OSError, csv.Error, UnicodeDecodeError) as error:
                raise DataError(path, f"not a CSV file ({error})") from None
    return names
