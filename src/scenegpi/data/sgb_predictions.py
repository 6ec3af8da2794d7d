"""Predictions of Scene-Graph-Benchmark.pytorch on custom images: custom_prediction.json and custom_data_info.json.

{"0": {"bbox": [[x1, y1, x2, y2]], "bbox_labels", "bbox_scores", "rel_pairs": [[subject, object]], "rel_labels",
       "rel_scores", "rel_all_scores"}}      {"idx_to_files", "ind_to_classes", "ind_to_predicates"}

Labels and predicates count from 1; 0 is the background. The boxes are in pixels of the resized photo (shorter side 600,
longer at most 1000); if the photo is found, they are converted to its own pixels, else they stay as they are.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from scenegpi.data.graphs import Graphs
from scenegpi.data.images import ImageFolders, photo_size
from scenegpi.data.limits import file_vocabulary
from scenegpi.data.named import Image, keyed_rows, named_graphs, number, numbered
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.files import read_object
from scenegpi.vocabulary import Vocabulary

INFO, PREDICTION = "custom_data_info.json", "custom_prediction.json"
SHORT, LONG = 600, 1000


def read_sgb_predictions(path: Path, report: Report, images: ImageFolders) -> Graphs:
    """custom_prediction.json (or its folder), with custom_data_info.json beside it."""
    path = path / PREDICTION if path.is_dir() else path
    info = read_object(path.with_name(INFO))
    lists: dict[str, list[str]] = {}
    for key in ("idx_to_files", "ind_to_classes", "ind_to_predicates"):
        names = info.get(key)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise DataError(path.with_name(INFO), f"{key}: expected a list of names")
        lists[key] = names
    names = lists["ind_to_classes"][1:], lists["ind_to_predicates"][1:]
    vocabulary = file_vocabulary(path.with_name(INFO), *names)
    fields = partial(_fields, vocabulary=vocabulary, files=lists["idx_to_files"], photos=images, report=report)
    return named_graphs(path, report, lambda: (Image(*entry) for entry in keyed_rows(path)), fields, vocabulary)


def _fields(
    image: Image, vocabulary: Vocabulary, files: list[str], photos: ImageFolders, report: Report
) -> dict[str, Any]:
    row, key = image.row, str(image.key)
    if not isinstance(row, dict):
        raise GraphError("prediction: expected an object")
    at = number(int(key) if key.isascii() and key.isdigit() else None, len(files), "number of the image")
    pairs, predicates = row.get("rel_pairs"), row.get("rel_labels")
    if not isinstance(pairs, list) or not isinstance(predicates, list) or len(pairs) != len(predicates):
        raise GraphError("rel_labels: expected one for each of rel_pairs")
    links = [[*(pair if isinstance(pair, list) else [pair]), p] for pair, p in zip(pairs, predicates, strict=True)]
    names = ("bbox", "bbox_labels", "rel_pairs")
    found = numbered(row.get("bbox"), row.get("bbox_labels"), links, vocabulary, names, first=1)
    file = Path(files[at].replace("\\", "/")).name
    found |= {"image_id": Path(file).stem, "file": file}
    found |= {"scores": row.get("bbox_scores"), "relation_scores": row.get("rel_scores")}
    if row.get("rel_all_scores"):
        found |= {"pairs": pairs, "pair_dist": row["rel_all_scores"]}
    photo = photos.find(file)
    if photo is None:
        report.warning(file, "bbox", "photo not found: boxes stay in pixels of the resized photo")
        return found
    width, height = photo_size(photo)
    scale = min(width, height) / min(SHORT, round(LONG * min(width, height) / max(width, height)))
    boxes = [[scale * side for side in box] for box in found["boxes"]]
    return found | {"boxes": boxes, "width": width, "height": height}
