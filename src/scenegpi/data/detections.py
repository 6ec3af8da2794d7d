"""COCO results JSON, as detectors write it: a list of {"image_id", "category_id", "bbox": [x, y, w, h], "score"}.

It holds no class names: give them (`names`), or class 7 is called "class 7".
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.checks import is_identifier
from scenegpi.data.builder import ColumnsBuilder
from scenegpi.data.class_names import Names, vocabulary_of
from scenegpi.data.coco import is_number
from scenegpi.data.columns import Columns
from scenegpi.data.json_stream import JsonStream
from scenegpi.data.limits import check_images
from scenegpi.errors import DataError, Report


def read_coco_results(path: Path, report: Report, names: Names | None = None) -> Columns:
    """A list of detections, grouped by image."""
    number: dict[int | str, int] = {}  # the images, in order of first appearance
    bad: set[int | str] = set()
    image, category, numbers = array("q"), array("q"), array("d")  # numbers: x, y, w, h, score of each row
    with JsonStream(path) as stream:
        if stream.peek() != "[":
            raise DataError(path, "expected a list of detections")
        for i, (_, row) in enumerate(stream.rows()):
            image_id = row.get("image_id") if isinstance(row, dict) else None
            if not is_identifier(image_id):
                report.error(None, f"[{i}].image_id", "expected a number or a string")
                continue
            at = number.setdefault(image_id, len(number))
            check_images(path, at, stream.size)
            problem = _detection_problem(row)
            if problem:
                report.error(image_id, f"[{i}].{problem[0]}", problem[1])
                bad.add(image_id)
                continue
            image.append(at)
            category.append(row["category_id"])
            numbers.extend((*row["bbox"], row.get("score", 1.0)))
        stream.end()
    report.skipped += len(bad)
    owner, categories = np.array(image, dtype=np.int64), np.array(category, dtype=np.int64)
    values = np.array(numbers).reshape(-1, 5)
    vocabulary, label_of = vocabulary_of(path, np.unique(categories).tolist(), names)
    builder = ColumnsBuilder(vocabulary, report)
    order, ends = np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner, minlength=len(number)))
    for at, image_id in enumerate(number):
        if image_id not in bad:
            mine = order[ends[at - 1] if at else 0 : ends[at]]
            boxes = values[mine, :4]
            with np.errstate(over="ignore"):  # what is not finite is a defect of the image
                boxes[:, 2:] += boxes[:, :2]
            builder.add(
                image_id=image_id,
                file=image_id if isinstance(image_id, str) and Path(image_id).suffix else None,
                boxes=boxes,
                labels=[label_of[key] for key in categories[mine].tolist()],
                scores=values[mine, 4],
            )
    return builder.build()


def _detection_problem(row: dict[str, Any]) -> tuple[str, str] | None:
    label, box, score = row.get("category_id"), row.get("bbox"), row.get("score", 1.0)
    if isinstance(label, bool) or not isinstance(label, int) or not is_identifier(label):
        return "category_id", f"expected a whole number, found {label!r:.60}"
    if not isinstance(box, list) or len(box) != 4 or not all(is_number(v) for v in box):
        return "bbox", f"expected [x, y, w, h], found {box!r:.60}"
    return None if is_number(score) else ("score", f"expected a number, found {score!r:.60}")
