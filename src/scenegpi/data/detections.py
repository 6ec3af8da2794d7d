"""COCO results JSON, as detectors write it: a list of {"image_id", "category_id", "bbox": [x, y, w, h], "score"}.

It holds no class names: give them (`names`), or class 7 is called "class 7".
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from scenegpi.data.builder import ColumnsBuilder
from scenegpi.data.class_names import Names, vocabulary_of
from scenegpi.data.coco import is_number
from scenegpi.data.columns import Columns
from scenegpi.errors import DataError, Report
from scenegpi.files import read_json


def read_coco_results(path: Path, report: Report, names: Names | None = None) -> Columns:
    """A list of detections, grouped by image."""
    rows = read_json(path)
    if not isinstance(rows, list):
        raise DataError(path, f"expected a list of detections, found {type(rows).__name__}")
    groups: dict[int | str, list[tuple[int, list[float], float]]] = defaultdict(list)
    bad: set[int | str] = set()
    for i, row in enumerate(rows):
        image_id = row.get("image_id") if isinstance(row, dict) else None
        if isinstance(image_id, bool) or not isinstance(image_id, int | str):
            report.error(None, f"[{i}].image_id", "expected a number or a string")
            continue
        groups.setdefault(image_id, [])
        problem = _detection_problem(row)
        if problem:
            report.error(image_id, f"[{i}].{problem[0]}", problem[1])
            bad.add(image_id)
            continue
        x, y, w, h = (float(v) for v in row["bbox"])
        groups[image_id].append((row["category_id"], [x, y, x + w, y + h], float(row.get("score", 1.0))))
    ids = sorted({label for found in groups.values() for label, _, _ in found})
    vocabulary, label_of = vocabulary_of(path, ids, names)
    builder = ColumnsBuilder(vocabulary, report)
    report.skipped += len(bad)
    for image_id, found in groups.items():
        if image_id not in bad:
            builder.add(
                image_id=image_id,
                file=image_id if isinstance(image_id, str) and Path(image_id).suffix else None,
                boxes=[box for _, box, _ in found],
                labels=[label_of[label] for label, _, _ in found],
                scores=[score for _, _, score in found],
            )
    return builder.build()


def _detection_problem(row: dict[str, Any]) -> tuple[str, str] | None:
    label, box, score = row.get("category_id"), row.get("bbox"), row.get("score", 1.0)
    if isinstance(label, bool) or not isinstance(label, int):
        return "category_id", f"expected a whole number, found {label!r:.60}"
    if not isinstance(box, list) or len(box) != 4 or not all(is_number(v) for v in box):
        return "bbox", f"expected [x, y, w, h], found {box!r:.60}"
    return None if is_number(score) else ("score", f"expected a number, found {score!r:.60}")
