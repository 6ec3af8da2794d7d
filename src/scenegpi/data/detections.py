"""COCO results JSON, as detectors write it: a list of {"image_id", "category_id", "bbox": [x, y, w, h], "score"}.

It holds no class names: give them (`names`), or class 7 is called "class 7".
"""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.checks import is_identifier
from scenegpi.data.class_names import Names, vocabulary_of
from scenegpi.data.graphs import Graphs
from scenegpi.data.json_stream import JsonStream
from scenegpi.data.limits import check_images
from scenegpi.data.named import is_real
from scenegpi.errors import Report


def read_coco_results(path: Path, report: Report, names: Names | None = None) -> Graphs:
    """A list of detections, grouped by image."""
    images: dict[int | str, tuple[array[int], array[float]]] = {}  # category; x, y, w, h, score of each row
    bad: set[int | str] = set()
    with JsonStream(path) as stream:
        for i, (_, row) in enumerate(stream.rows()):
            image_id = row.get("image_id") if isinstance(row, dict) else None
            if not is_identifier(image_id):
                report.error(None, f"[{i}].image_id", "expected a number or a string")
                continue
            categories, numbers = images.setdefault(image_id, (array("q"), array("d")))
            check_images(path, len(images), stream.size)
            problem = _detection_problem(row)
            if problem:
                report.error(image_id, f"[{i}].{problem[0]}", problem[1])
                bad.add(image_id)
                continue
            categories.append(row["category_id"])
            numbers.extend((*row["bbox"], row.get("score", 1.0)))
        stream.end()
    report.skipped += len(bad)
    vocabulary, label_of = vocabulary_of(path, sorted({key for found, _ in images.values() for key in found}), names)
    builder = Graphs(vocabulary, report)
    for image_id, (categories, numbers) in images.items():
        if image_id not in bad:
            values = np.array(numbers).reshape(-1, 5)
            builder.add(
                image_id=image_id,
                file=image_id if isinstance(image_id, str) and Path(image_id).suffix else None,
                boxes=np.hstack([values[:, :2], values[:, :2] + values[:, 2:4]]),
                labels=[label_of[key] for key in categories],
                scores=values[:, 4],
            )
    return builder


def _detection_problem(row: dict[str, Any]) -> tuple[str, str] | None:
    label, box, score = row.get("category_id"), row.get("bbox"), row.get("score", 1.0)
    if isinstance(label, bool) or not isinstance(label, int) or not is_identifier(label):
        return "category_id", f"expected a whole number, found {label!r:.60}"
    if not isinstance(box, list) or len(box) != 4 or not all(map(is_real, box)):
        return "bbox", f"expected [x, y, w, h], found {box!r:.60}"
    return None if is_real(score) else ("score", f"expected a number, found {score!r:.60}")
