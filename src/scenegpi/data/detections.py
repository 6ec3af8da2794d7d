"""What detectors write: boxes with labels and scores, no relations.

COCO results JSON is a list of {"image_id", "category_id", "bbox": [x, y, w, h], "score"}. YOLO txt is one file an
image with lines `class xc yc w h [confidence]` in fractions of the image. Neither holds class names: give them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scenegpi.data.builder import ColumnsBuilder
from scenegpi.data.columns import Columns
from scenegpi.data.errors import DataError, Report
from scenegpi.data.files import check_file, read_json, reason
from scenegpi.data.images import ImageFolders
from scenegpi.data.sizes import Sizes
from scenegpi.vocabulary import Vocabulary

Names = Mapping[int, str]
NAME_FILES = ("classes.txt", "obj.names", "names.txt", "data.yaml", "data.yml")


def read_names_file(path: Path) -> Names:
    """Class names: one a line; a JSON list or object; COCO JSON with `categories`; the `names` of a YOLO data.yaml."""
    check_file(path)
    if path.suffix == ".json":
        data = read_json(path)
        if isinstance(data, dict) and isinstance(data.get("categories"), list):
            rows = [row for row in data["categories"] if isinstance(row, dict)]
            data = {row.get("id"): row.get("name") for row in rows}
        pairs = (
            list(enumerate(data)) if isinstance(data, list) else list(data.items()) if isinstance(data, dict) else []
        )
    else:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(path, f"cannot be read ({error})") from None
        is_yaml = path.suffix in (".yaml", ".yml")
        pairs = (
            _yaml_names(text)
            if is_yaml
            else list(enumerate(line.strip() for line in text.splitlines() if line.strip()))
        )
    try:
        names = {int(key): name for key, name in pairs}
    except (TypeError, ValueError):
        names = {}
    if not names or not all(isinstance(name, str) and name for name in names.values()):
        raise DataError(path, "expected class names: one a line, a JSON list, or number -> name")
    return names


def _yaml_names(text: str) -> list[tuple[Any, Any]]:
    """The `names` entry in the three ways people write it: [a, b], a dash a line, or `0: a` a line."""
    inline = re.search(r"^names:\s*\[(.*?)\]", text, re.S | re.M)
    if inline:
        return list(enumerate(item.strip().strip("'\"") for item in inline[1].split(",") if item.strip()))
    block = re.search(r"^names:\s*\n((?:[ \t]*(?:-|\d+:).*\n?)+)", text, re.M)
    if not block:
        return []
    lines = [line.strip() for line in block[1].splitlines() if line.strip()]
    if lines[0].startswith("-"):
        return list(enumerate(line[1:].strip().strip("'\"") for line in lines))
    return [(key, name.strip().strip("'\"")) for key, _, name in (line.partition(":") for line in lines)]


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
    vocabulary, label_of = _classes(path, ids, names)
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
    if not isinstance(box, list) or len(box) != 4 or not all(_number(v) for v in box):
        return "bbox", f"expected [x, y, w, h], found {box!r:.60}"
    return None if _number(score) else ("score", f"expected a number, found {score!r:.60}")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def read_yolo(
    path: Path, report: Report, images: ImageFolders, names: Names | None = None, sizes: Path | None = None
) -> Columns:
    """A folder of txt files (or one of them). Files that hold class names are not taken for images."""
    files = [path] if path.is_file() else sorted(p for p in path.glob("*.txt") if p.name not in NAME_FILES)
    if names is None:
        folder = path if path.is_dir() else path.parent
        near = (place / name for place in (folder, folder.parent) for name in NAME_FILES)
        names = next((read_names_file(file) for file in near if file.is_file()), None)
    found = {file: _yolo_file(file, report) for file in files}
    ids = sorted({int(row[0]) for rows in found.values() for row in rows or ()})
    vocabulary, label_of = _classes(path, ids, names)
    builder = ColumnsBuilder(vocabulary, report)
    lookup = Sizes(images, sizes, report)
    for file, rows in found.items():
        if rows is None:
            report.skipped += 1
            continue
        report.file = str(file)
        width, height = lookup.of(file.stem)
        photo = images.find(file.stem)
        scored = [len(row) == 6 for row in rows]
        builder.add(
            image_id=file.stem,
            file=photo.name if photo else None,
            width=width,
            height=height,
            boxes=[_from_fractions(row, width, height) for row in rows],
            labels=[label_of[int(row[0])] for row in rows],
            scores=[row[5] if len(row) == 6 else 1.0 for row in rows] if any(scored) else None,
        )
    return builder.build()


def _from_fractions(row: list[float], width: int, height: int) -> list[float]:
    _, xc, yc, w, h = row[:5]
    return [(xc - w / 2) * width, (yc - h / 2) * height, (xc + w / 2) * width, (yc + h / 2) * height]


def _yolo_file(path: Path, report: Report) -> list[list[float]] | None:
    """Rows of class, xc, yc, w, h and maybe confidence; None where a line makes no sense."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        text = reason(error) if isinstance(error, OSError) else "not text"
        report.error(path.stem, "file", f"cannot be read ({text})", str(path))
        return None
    rows = []
    for number, line in enumerate(lines, 1):
        parts = line.split()
        if not parts:
            continue
        try:
            row = [float(part) for part in parts]
        except ValueError:
            row = []
        if len(row) not in (5, 6) or not 0 <= row[0] < 2**31 or row[0] != int(row[0]):
            report.error(
                path.stem, f"line {number}", f"expected 'class xc yc w h [confidence]', found {line!r:.60}", str(path)
            )
            return None
        rows.append(row)
    return rows


def _classes(path: Path, ids: Sequence[int], names: Names | None) -> tuple[Vocabulary, dict[int, int]]:
    """The vocabulary, and class number -> label. Without names, class 7 is called "class 7"."""
    if names is None:
        names = {i: f"class {i}" for i in ids}
    unnamed = next((i for i in ids if i not in names), None)
    if unnamed is not None:
        raise DataError(path, f"category {unnamed}: has no name among the {len(names)} given")
    order = sorted(names)
    try:
        return Vocabulary([names[i] for i in order]), {key: i for i, key in enumerate(order)}
    except ValueError as error:
        raise DataError(path, str(error)) from None
