"""The vision part of a photo model, exported: what a `Predictor` asks of it, without torch; loaded when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.files import parse_json
from scenegpi.graph import SceneGraph
from scenegpi.onnx.format import Form
from scenegpi.onnx.session import Session
from scenegpi.vision.detect import Detections
from scenegpi.vision.photos import Photo, pixels_and_boxes
from scenegpi.vocabulary import Vocabulary


class _Part:
    """A file of one form that is opened when it is first needed.

    Args:
        file: gives its path.
    """

    form: Form

    def __init__(self, file: Callable[[], Path]) -> None:
        self._file = file

    @cached_property
    def _session(self) -> Session:
        return Session(self._file(), self.form)


class OnnxVision(_Part):
    """Names what is in the boxes of a photo."""

    form = "vision"

    def label_dist(self, photo: Any, graph: SceneGraph) -> NDArray[np.float32]:
        """P(label) of each box, calibrated: (N, C)."""
        image, boxes = pixels_and_boxes(photo, graph)
        found: NDArray[np.float32] = self._session.run(["label_dist"], {"image": image, "boxes": boxes})[0]
        return found


class OnnxFinder(_Part):
    """Finds and names the things in a photo."""

    form = "finder"

    @cached_property
    def names(self) -> Sequence[str]:
        """Its labels."""
        return Vocabulary.from_dict(parse_json(self._session.metadata["vocabulary"])).objects

    def detect(self, photo: Photo) -> Detections:
        """Boxes in pixels of the photo, (H, W, 3) bytes, with `label_dist`; best first."""
        boxes, sure, dist = self._session.run(["boxes", "sure", "label_dist"], {"image": photo})
        label = dist.argmax(axis=1)
        sure = sure.astype(np.float64)
        score = sure * dist[np.arange(len(dist)), label]
        return Detections(boxes, label, score, self.names, (photo.shape[1], photo.shape[0]), dist, sure)
