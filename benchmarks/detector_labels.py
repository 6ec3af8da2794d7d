"""Labels of detected boxes: the detector alone, the pixels alone, and both, P(c) = (V(c) D(c))^a up to a factor.

    python benchmarks/detector_labels.py --data VRD --photos VRD/images_train_256 [--limit 350]

Boxes are found by the default detector (extra [detect]) in photos whose pixels `vrd-photo` was not trained on; a box
that overlaps an annotated one by half takes its label for the truth. Printed: share of right labels, mean negative
log-likelihood for some powers a, and what the whole model makes of it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from scenegpi import PredictOptions, Predictor
from scenegpi.boxes import box_iou
from scenegpi.data import open_dataset
from scenegpi.prediction import Item
from scenegpi.prediction.evidence import POWER, detector_dist
from scenegpi.vision.photos import open_photo

FLOOR = 1e-6
POWERS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--photos", required=True, type=Path)
    parser.add_argument("--split", default="train")
    parser.add_argument("--limit", type=int, default=350)
    parser.add_argument("--model", default="vrd-photo")
    options = parser.parse_args()
    truth, pixels, detector, whole = collect(options)
    print(f"{len(truth):,} detected boxes that meet an annotated one, {options.limit} photos")
    rows = {"detector": detector, "pixels": pixels, "whole model": whole}
    for a in POWERS:
        rows[f"(V D)^{a}{' (used)' if a == POWER else ''}"] = (np.maximum(pixels, FLOOR) * detector) ** a
    for name, dist in rows.items():
        dist = dist / dist.sum(axis=1, keepdims=True)
        right = (dist.argmax(axis=1) == truth).mean()
        loss = -np.log(np.maximum(dist[np.arange(len(truth)), truth], FLOOR)).mean()
        print(f"{name:24s} right {100 * right:5.1f}%   -log p {loss:.3f}")


def collect(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Truth (n,), V, D and the whole model's distributions (n, C) of detected boxes that meet an annotated one."""
    data = open_dataset(options.data, options.split, images=options.photos)
    predictor = Predictor(options.model, options=PredictOptions(distributions=True))
    found: list[tuple[np.ndarray, ...]] = []
    photos = 0
    for graph in data:
        path = data.photo_path(graph)
        if path is None or not len(graph) or photos >= options.limit:
            continue
        photos += 1
        photo = open_photo(path)
        boxes = predictor.words(predictor.finder.detect(photo).graph())
        answer = next(predictor.stream([Item(photo, boxes)])).graph
        if not len(boxes) or answer is None or predictor.model.vision is None:
            continue
        height, width = photo.shape[:2]
        scale = [width / (graph.width or width), height / (graph.height or height)] * 2
        overlap = box_iou(boxes.boxes, graph.boxes * scale)
        met = overlap.max(axis=1) >= 0.5
        label_dist = predictor.model.vision.label_dist(photo, boxes)
        parts = (graph.labels[overlap.argmax(axis=1)], label_dist, detector_dist(boxes), answer.label_dist)
        found.append(tuple(np.asarray(part)[met] for part in parts))
    truth, pixels, detector, whole = (np.concatenate(part) for part in zip(*found, strict=True))
    return truth, pixels, detector, whole


if __name__ == "__main__":
    main()
