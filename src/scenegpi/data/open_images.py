"""Open Images relationship CSV: one relation per row, boxes in fractions of the image.

    ImageID, LabelName1, LabelName2, XMin1, XMax1, YMin1, YMax1, XMin2, XMax2, YMin2, YMax2, RelationshipLabel

Class names come from a descriptions CSV (`/m/04yx4,Man`) beside it, if present. An object is a distinct
(label, box) of its image. Fractions become pixels by the photo's size, or by a sizes file; without
either, a size of 1024 x 1024 is assumed, with a warning.
"""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.graphs import Graphs
from scenegpi.data.images import ImageFolders, Sizes
from scenegpi.data.limits import check_crowd, check_images, check_names
from scenegpi.data.named import split_of
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.files import MAX_BYTES, check_file, open_file, reading
from scenegpi.vocabulary import Vocabulary

MAX_LINE, MAX_DESCRIPTIONS = 2**16, 2**25
BOXES = ("XMin1", "YMin1", "XMax1", "YMax1", "XMin2", "YMin2", "XMax2", "YMax2")
COLUMNS = ("ImageID", "LabelName1", "LabelName2", *BOXES, "RelationshipLabel")


def read_open_images(path: Path, report: Report, images: ImageFolders, sizes: Path | None = None) -> Graphs:
    """All images of one CSV file, in order of first appearance; the file's name may tell the split."""
    check_file(path, MAX_BYTES)
    size = path.stat().st_size
    described = _descriptions(path.parent)
    labels: dict[str, int] = {}
    predicates: dict[str, int] = {}
    table: dict[str, array[float]] = {}  # of each row two labels, a predicate (by first appearance) and eight corners
    bad: set[str] = set()
    for line, row in _rows(path):
        image_id, label1, label2, *corners, predicate = row
        try:
            values = [float(number) for number in corners] if all(row) else None
        except ValueError:
            values = None
        if values is None:
            where, what = ("XMin1..YMax2", "expected numbers") if all(row) else (COLUMNS[row.index("")], "missing")
            report.error(image_id or None, f"line {line}: {where}", what)
            bad.add(image_id)
            continue
        ends = [labels.setdefault(described.get(name, name), len(labels)) for name in (label1, label2)]
        relation = predicates.setdefault(predicate, len(predicates))
        table.setdefault(image_id, array("d")).extend((*ends, relation, *values))
        check_images(path, len(table), size, each=64)
        check_names(path, len(labels), "LabelName1, LabelName2")
        check_names(path, len(predicates), "RelationshipLabel")
    vocabulary = Vocabulary(sorted(labels), sorted(predicates), "open-images")
    label_of = np.array([vocabulary.object_index[name] for name in labels], dtype=np.int64)
    predicate_of = np.array([vocabulary.predicate_index[name] for name in predicates], dtype=np.int64)
    builder = Graphs(vocabulary, report)
    lookup = Sizes(images, sizes, report)
    split = split_of(path)
    report.skipped += len(bad)
    for image_id, found in table.items():
        if image_id not in bad:
            rows = np.array(found).reshape(-1, 11)
            rows[:, :2] = label_of[rows[:, :2].astype(np.int64)]
            rows[:, 2] = predicate_of[rows[:, 2].astype(np.int64)]
            _add_image(builder, lookup.of(image_id), image_id, rows, split)
    return builder


def _add_image(builder: Graphs, size: tuple[int, int], image_id: str, rows: NDArray[np.float64], split: int) -> None:
    """An object is a distinct label and box of its image, in order of first appearance."""
    try:
        check_crowd(0, len(rows))
    except GraphError as error:
        builder.report.skip(image_id, error)
        return
    seen: dict[tuple[float, ...], int] = {}
    relations = []
    for label1, label2, predicate, *corners in rows.tolist():
        ends = ((label1, *corners[:4]), (label2, *corners[4:]))
        relations.append((*(seen.setdefault(end, len(seen)) for end in ends), int(predicate)))
    objects = np.array(list(seen))
    with np.errstate(over="ignore"):  # boxes that are not finite are a defect of the image
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
    """The values of COLUMNS on each line that is not blank, with its number; "" for missing ones."""
    with reading(path), _text(path, MAX_BYTES) as handle:
        try:
            reader = csv.reader(_lines(handle))
            header = {name: i for i, name in enumerate(next(reader, []))}
            absent = [name for name in COLUMNS if name not in header]
            if absent:
                raise DataError(path, f"column {absent[0]!r} is missing (is this an Open Images relationship file?)")
            places = [header[name] for name in COLUMNS]
            for row in filter(None, reader):
                row += [""] * (1 + max(places) - len(row))
                yield reader.line_num, [row[place] for place in places]
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
