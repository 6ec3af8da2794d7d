"""Open Images relationship CSV: one relation a row, boxes in fractions of the image.

    ImageID, LabelName1, LabelName2, XMin1, XMax1, YMin1, YMax1, XMin2, XMax2, YMin2, YMax2, RelationshipLabel

Class names come from a descriptions CSV (`/m/04yx4,Man`) beside it, where there is one. An object is a distinct
(label, box) of its image. Fractions become pixels by the photo's size, or by a sizes file; where neither is there, a
canvas of 1024 x 1024 stands in, with a warning.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from scenegpi.data.builder import ColumnsBuilder
from scenegpi.data.columns import NO_SPLIT, SPLITS, Columns
from scenegpi.data.images import ImageFolders
from scenegpi.data.sizes import Sizes
from scenegpi.errors import DataError, Report
from scenegpi.files import MAX_BYTES, check_file, reason
from scenegpi.vocabulary import Vocabulary

BOXES = [("XMin1", "YMin1", "XMax1", "YMax1"), ("XMin2", "YMin2", "XMax2", "YMax2")]
Object = tuple[str, tuple[float, ...]]  # label and box
SPLIT_WORDS = {**SPLITS, "validation": SPLITS["val"]}
COLUMNS = ("ImageID", "LabelName1", "LabelName2", *BOXES[0], *BOXES[1], "RelationshipLabel")


def read_open_images(path: Path, report: Report, images: ImageFolders, sizes: Path | None = None) -> Columns:
    """All images of one CSV file, in order of first appearance; the file's name may tell the split."""
    described = _descriptions(path.parent)
    rows: dict[str, list[tuple[Object, Object, str]]] = defaultdict(list)
    bad: set[str] = set()
    names: dict[str, str] = {}  # one string object a name, however many rows repeat it
    for line, row in _rows(path):
        missing = next((name for name in COLUMNS if not row.get(name)), None)
        if missing:
            report.error(row.get("ImageID"), f"line {line}: {missing}", "missing")
            bad.add(row.get("ImageID") or "")
            continue
        try:
            boxes = [tuple(float(row[name]) for name in box) for box in BOXES]
        except ValueError:
            report.error(row["ImageID"], f"line {line}: XMin1..YMax2", "expected numbers")
            bad.add(row["ImageID"])
            continue
        words = [described.get(row[name], row[name]) for name in ("LabelName1", "LabelName2")]
        subject, object_ = ((names.setdefault(word, word), box) for word, box in zip(words, boxes, strict=True))
        predicate = row["RelationshipLabel"]
        rows[row["ImageID"]].append((subject, object_, names.setdefault(predicate, predicate)))
    objects = {end[0] for found in rows.values() for row in found for end in row[:2]}
    predicates = {row[2] for found in rows.values() for row in found}
    builder = ColumnsBuilder(Vocabulary(sorted(objects), sorted(predicates), "open-images"), report)
    lookup = Sizes(images, sizes, report)
    words = re.split(r"[^a-z]+", path.stem.lower())
    split = next((code for name, code in SPLIT_WORDS.items() if name in words), NO_SPLIT)
    report.skipped += len(bad)
    for image_id, found in rows.items():
        if image_id not in bad:
            _add_image(builder, lookup.of(image_id), image_id, found, split)
    return builder.build()


def _add_image(
    builder: ColumnsBuilder, size: tuple[int, int], image_id: str, rows: list[tuple[Object, Object, str]], split: int
) -> None:
    seen: dict[Object, int] = {}
    relations = [
        (
            seen.setdefault(subject, len(seen)),
            seen.setdefault(object_, len(seen)),
            builder.vocabulary.predicate_index[predicate],
        )
        for subject, object_, predicate in rows
    ]
    builder.add(
        split,
        boxes=[[v * s for v, s in zip(box, (*size, *size), strict=True)] for _, box in seen],
        labels=[builder.vocabulary.object_index[label] for label, _ in seen],
        relations=relations,
        image_id=image_id,
        file=f"{image_id}.jpg",
        width=size[0],
        height=size[1],
    )


def _rows(path: Path) -> Any:
    check_file(path, MAX_BYTES)
    try:
        with path.open(newline="", encoding="utf-8-sig") as handle:
            reader = csv.DictReader(handle)
            absent = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
            if absent:
                raise DataError(path, f"column {absent[0]!r} is missing (is this an Open Images relationship file?)")
            for row in reader:
                yield reader.line_num, row
    except OSError as error:
        raise DataError(path, f"cannot be read ({reason(error)})") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(path, f"not a CSV file ({error})") from None


def _descriptions(folder: Path) -> dict[str, str]:
    """Machine ids -> words, from any *class-descriptions*.csv or *attributes-description*.csv of the folder."""
    names: dict[str, str] = {}
    for path in sorted(folder.glob("*description*.csv")):
        try:
            check_file(path, MAX_BYTES)
            with path.open(newline="", encoding="utf-8-sig") as handle:
                names |= {row[0]: row[1] for row in csv.reader(handle) if len(row) == 2 and row[1]}
        except (OSError, csv.Error, UnicodeDecodeError) as error:
            raise DataError(path, f"not a CSV file ({error})") from None
    return names
