"""Predictions of Scene-Graph-Benchmark.pytorch on custom images: custom_prediction.json and custom_data_info.json.

{"0": {"bbox": [[x1, y1, x2, y2]], "bbox_labels", "bbox_scores", "rel_pairs": [[subject, object]], "rel_labels",
       "rel_scores", "rel_all_scores"}}      {"idx_to_files", "ind_to_classes", "ind_to_predicates"}

Labels and predicates count from 1; 0 is the background. The boxes are in pixels of the resized photo (shorter side 600,
longer at most 1000); where the photo is found they are given in its own pixels, else they stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scenegpi.data.columns import Columns
from scenegpi.data.images import ImageFolders, photo_size
from scenegpi.data.json_stream import JsonStream
from scenegpi.data.limits import check_images, too_many
from scenegpi.data.named import Image, corners, named_columns, number
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.files import read_object
from scenegpi.vocabulary import Vocabulary

INFO, PREDICTION = "custom_data_info.json", "custom_prediction.json"
SHORT, LONG = 600, 1000


def read_sgb_predictions(path: Path, report: Report, images: ImageFolders) -> Columns:
    """custom_prediction.json (or its folder), with custom_data_info.json beside it."""
    path = path / PREDICTION if path.is_dir() else path
    info = read_object(path.with_name(INFO))
    lists: dict[str, list[str]] = {}
    for key in ("idx_to_files", "ind_to_classes", "ind_to_predicates"):
        names = info.get(key)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DataError(path.with_name(INFO), f"{key}: expected a list of names")
        lists[key] = names
    try:
        vocabulary = Vocabulary(lists["ind_to_classes"][1:], lists["ind_to_predicates"][1:])
    except ValueError as error:
        raise DataError(path.with_name(INFO), str(error)) from None
    reader = _Reader(vocabulary, lists["idx_to_files"], images, report)
    return named_columns(path, report, partial(_images, path), reader.fields, vocabulary)


def _images(path: Path) -> Iterator[Image]:
    with JsonStream(path) as stream:
        if stream.peek() != "{":
            raise DataError(path, "expected a JSON object, number -> prediction")
        for i, key in enumerate(stream.entries(unique=True)):
            check_images(path, i, stream.size)
            yield Image(key, stream.value())
        stream.end()


class _Reader:
    def __init__(self, vocabulary: Vocabulary, files: list[str], images: ImageFolders, report: Report) -> None:
        self.vocabulary, self.files, self.images, self.report = vocabulary, files, images, report

    def fields(self, image: Image) -> dict[str, Any]:
        row = image.row
        key = str(image.key)
        at = number(int(key) if key.isascii() and key.isdigit() else None, len(self.files), "number of the image")
        boxes, labels, pairs, predicates = (_list(row, k) for k in ("bbox", "bbox_labels", "rel_pairs", "rel_labels"))
        crowded = too_many(len(boxes), len(pairs))
        if crowded:
            raise GraphError(": ".join(crowded))
        if len(labels) != len(boxes) or len(predicates) != len(pairs):
            raise GraphError("bbox_labels, rel_labels: expected one for each box, and one for each pair")
        name = Path(self.files[at].replace("\\", "/")).name
        scale, size = self._scale(name)
        words = self.vocabulary
        found: dict[str, Any] = {
            "boxes": [[scale * v for v in corners(each, f"bbox[{i}]", False)] for i, each in enumerate(boxes)],
            "labels": [_name(v, words.objects, "bbox_labels") for v in labels],
            "relations": [
                (*_pair(pair, len(boxes)), _name(p, words.predicates, "rel_labels"))
                for pair, p in zip(pairs, predicates, strict=True)
            ],
            "scores": row.get("bbox_scores"),
            "relation_scores": row.get("rel_scores"),
            "image_id": Path(name).stem,
            "file": name,
            **size,
        }
        if row.get("rel_all_scores"):
            found |= {"pairs": pairs, "pair_dist": row["rel_all_scores"]}
        return found

    def _scale(self, name: str) -> tuple[float, dict[str, int]]:
        photo = self.images.find(name)
        if photo is None:
            self.report.warning(name, "bbox", "the photo is not there: boxes stay in pixels of the resized photo")
            return 1.0, {}
        width, height = photo_size(photo)
        short = min(SHORT, round(LONG * min(width, height) / max(width, height)))
        return min(width, height) / short, {"width": width, "height": height}


def _list(row: Any, key: str) -> list[Any]:
    value = row.get(key) if isinstance(row, dict) else None
    if not isinstance(value, list):
        raise GraphError(f"{key}: expected a list")
    return value


def _name(value: Any, names: tuple[str, ...], field: str) -> str:
    """The name of a number from 1."""
    return names[number(value - 1 if isinstance(value, int) else value, len(names), field)]


def _pair(pair: Any, n: int) -> tuple[int, int]:
    if not isinstance(pair, list) or len(pair) != 2:
        raise GraphError(f"rel_pairs: expected two numbers, found {pair!r:.60}")
    return number(pair[0], n, "rel_pairs"), number(pair[1], n, "rel_pairs")
