"""Any detector in an ONNX file: recognized by what it takes and gives, run by onnxruntime without torch.

    detector = OnnxDetector("rtdetr.onnx")                  # names=[...] where the file does not tell them
    found = detector.detect(open_photo("street.jpg"))

The file is not trusted: it is opened by `Session`, and what it gives is checked before it is used. Names and shapes of
what it gives for a grey picture tell which detector it is:

| output | of | picture |
|---|---|---|
| `labels`, `boxes`, `scores`; a second input `orig_target_sizes` | RT-DETR, D-FINE, DEIM | stretched, RGB from 0 to 1 |
| (1, cells, 5 + C), offsets from a grid, or decoded | YOLOX | in the corner, BGR from 0 to 255 |
| (1, 3 cells, 5 + C), centre and size | YOLOv5, YOLOv7 | centred, RGB from 0 to 1 |
| (1, cells, 5 + C), centre and size, no objectness | YOLOv6 | centred, RGB from 0 to 1 |
| (1, 4 + C, cells), centre and size | YOLOv8, v9, 11, 12 | centred, RGB from 0 to 1 |
| (1, K, 6), corners, score, label | YOLOv10, YOLO26, exports with NMS | centred, RGB from 0 to 1 |
| (K, 7), image, corners, label, score | YOLOv7 with NMS | centred, RGB from 0 to 1 |

"Cells" are those of the strides 8, 16, 32 (or 64 as well) over the input; C is the number of labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from scenegpi.data.class_names import YAML_BYTES, yaml_names
from scenegpi.data.coco_names import COCO_PLACES
from scenegpi.data.limits import check_names
from scenegpi.errors import DataError
from scenegpi.onnx.session import Session
from scenegpi.vision.detect import Detections, finished
from scenegpi.vision.photos import Photo

Array = NDArray[Any]
Outputs = Mapping[str, Array]
STRIDES = ((8, 16, 32), (8, 16, 32, 64))
NAMED = ("boxes", "labels", "scores")
RAW_OFFSET = 16
"""In cells: offsets from a grid are nearer to it than this, centres in pixels are mostly farther from 0."""
SIDE, MOST_SIDE = 640, 2048
"""Of the input, where the file leaves it open; and at most."""
MOST_ROWS = 1 << 18
GREY = 114
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


class Candidates(NamedTuple):
    """Boxes (K, 4) x1, y1, x2, y2 in pixels of the input, labels (K,), scores (K,)."""

    boxes: Array
    labels: Array
    scores: Array


@dataclass(frozen=True)
class Layout:
    """How a picture is laid into the input, and how the outputs are read.

    Args:
        read: outputs -> candidates.
        classes: how many labels it has, where the outputs tell.
        fit: "stretched", or scaled evenly and "centred" or in the "corner", the rest grey.
        iou: overlap above which the worse of two boxes of one label is dropped; 1 where the file does that itself.
    """

    read: Callable[[Outputs], Candidates]
    classes: int | None = None
    fit: Literal["stretched", "centred", "corner"] = "centred"
    iou: float = 1.0


class OnnxDetector:
    """Photo -> boxes with the labels of a file.

    Args:
        file: a path, or the bytes of such a file.
        names: its labels by number; by default as its metadata says, or COCO's 80.
        floor: least score that is reported.
    """

    def __init__(
        self, file: str | Path | bytes, names: Sequence[str] | Mapping[int, str] | None = None, floor: float = 0.25
    ) -> None:
        self.floor = floor
        self._session = Session(file)
        self._where = self._session.where
        self._image, self._type, (self.width, self.height), self._sizes = self._input()
        grey = np.full((self.height, self.width, 3), GREY, dtype=np.uint8)
        found = self._run(self._tensor(grey, "centred"), (self.width, self.height))
        layout = recognized(found, self.width, self.height)
        task = self._session.metadata.get("task", "detect")
        if layout is None or task != "detect" or (layout.fit == "stretched") != (self._sizes is not None):
            raise self._unknown()
        self.layout: Layout = layout
        self.names: Sequence[str] = self._names(names)

    def detect(self, photo: Photo) -> Detections:
        """Boxes in pixels of the photo, (H, W, 3) bytes; best first."""
        height, width = photo.shape[:2]
        laid, scale, shift = self._laid(photo)
        found = self.layout.read(self._run(self._tensor(laid, self.layout.fit), (width, height)))
        good = np.asarray(found.scores >= self.floor)
        labels, boxes = np.asarray(found.labels)[good], np.asarray(found.boxes, dtype=np.float64)[good]
        wrong = labels[~((labels >= 0) & (labels < len(self.names)))]
        if len(wrong):
            raise DataError(self._where, f"label {wrong[0]:g}, and names of {len(self.names)}; give all with --names")
        boxes = (boxes - np.tile(shift, 2)) / np.tile(scale, 2)
        score = np.clip(np.asarray(found.scores, dtype=np.float64)[good], 0, 1)
        return finished(boxes, labels.astype(np.int64), score, self.names, (width, height), self.layout.iou)

    def _laid(self, photo: Photo) -> tuple[Photo, NDArray[np.float64], NDArray[np.float64]]:
        """The photo laid into the input; x, y of the photo are (those of the input - shift) / scale."""
        height, width = photo.shape[:2]
        image, ours = Image.fromarray(photo), np.array([self.width, self.height])
        if self.layout.fit == "stretched":  # such a file gives boxes in pixels of the photo
            return self._resized(image, self.width, self.height), np.ones(2), np.zeros(2)
        factor = min(self.width / width, self.height / height)
        across, down = (max(round(side * factor), 1) for side in (width, height))
        laid = np.full((self.height, self.width, 3), GREY, dtype=np.uint8)
        left, top = (0, 0) if self.layout.fit == "corner" else (ours - [across, down]) // 2
        laid[top : top + down, left : left + across] = self._resized(image, across, down)
        return laid, np.array([across / width, down / height]), np.array([left, top], dtype=np.float64)

    @staticmethod
    def _resized(image: Image.Image, width: int, height: int) -> Photo:
        return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=2.0))

    def _tensor(self, picture: Photo, fit: str) -> NDArray[Any]:
        """(H, W, 3) bytes -> (1, 3, H, W) as the file wants it: BGR bytes for YOLOX, else RGB from 0 to 1."""
        values = picture[..., ::-1] if fit == "corner" else picture / np.float32(255)
        return np.ascontiguousarray(values.transpose(2, 0, 1)[None], dtype=self._type)

    def _run(self, tensor: NDArray[Any], size: tuple[int, int]) -> dict[str, NDArray[Any]]:
        given = {self._image: tensor}
        if self._sizes is not None:
            given[self._sizes] = np.array([size], dtype=np.int64)
        names = list(self._session.outputs)
        found = dict(zip(names, self._session.run(names, given), strict=True))
        for name, value in found.items():
            if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu" or value.size > MOST_ROWS * 128:
                raise DataError(self._where, f"output {name!r:.60}: no array of numbers, or a very large one")
        return found

    def _input(self) -> tuple[str, Any, tuple[int, int], str | None]:
        """Name, type, width and height of the picture's input; name of the input of sizes, where there is one."""
        inputs, types = self._session.inputs, self._session.types
        pictures = [n for n, shape in inputs.items() if len(shape) == 4 and shape[1] == 3 and types[n] in TYPES]
        others = [name for name in inputs if name not in pictures]
        sized = [n for n in others if len(inputs[n]) == 2 and inputs[n][1] == 2 and types[n] == "tensor(int64)"]
        if len(pictures) != 1 or sized != others or len(sized) > 1:
            raise self._unknown()
        batch, _, *sides = (side if isinstance(side, int) else None for side in inputs[pictures[0]])
        told = re.findall(r"[0-9]{1,5}", self._session.metadata.get("imgsz", "")[:40]) or [SIDE]
        height, width = (side or int(wanted) for side, wanted in zip(sides, (told[0], told[-1]), strict=True))
        if batch not in (None, 1) or not (32 <= height <= MOST_SIDE and 32 <= width <= MOST_SIDE):
            raise DataError(
                self._where,
                f"takes {batch or 1} pictures of {width} x {height}; expected 1, of 32 to {MOST_SIDE} pixels",
            )
        return pictures[0], TYPES[types[pictures[0]]], (width, height), next(iter(sized), None)

    def _names(self, given: Sequence[str] | Mapping[int, str] | None) -> Sequence[str]:
        """The labels by number: given, of the file, or COCO's where their number may be right."""
        count, text = self.layout.classes, self._session.metadata.get("names", "")
        table: Mapping[int, str] = {}
        if given is not None:
            table = given if isinstance(given, Mapping) else dict(enumerate(given))
        elif text:
            if len(text) > YAML_BYTES:
                raise DataError(self._where, "metadata names: longer than any list of labels")
            table = yaml_names(self._where, f"names: {text}")
        elif count in (None, len(COCO_PLACES)):
            table = COCO_PLACES
        else:
            raise DataError(self._where, f"{count} labels without names; give them with --names FILE")
        check_names(self._where, max(table, default=0), "names")
        names = tuple(table.get(k, f"class {k}") for k in range(max(table, default=-1) + 1))
        if not names or (count is not None and len(names) != count):
            raise DataError(self._where, f"names of {len(names)} labels, and the file has {count or 'some'}")
        return names

    def _unknown(self) -> DataError:
        parts = [f"{name} {list(shape)}" for name, shape in self._session.inputs.items()]
        out = [f"{name} {list(shape)}" for name, shape in self._session.outputs.items()]
        task = self._session.metadata.get("task")
        told = f", task {task!r:.30}" if task else ""
        known = "no detector that is known here (docs/detectors.md): "
        return DataError(self._where, f"{known}inputs {', '.join(parts)}; outputs {', '.join(out)}{told}")


def recognized(found: Outputs, width: int, height: int) -> Layout | None:
    """The layout of what a file gave for a grey picture of this size; None for any other."""
    if set(NAMED) <= set(found):
        boxes, labels, scores = (found[name] for name in NAMED)
        if boxes.ndim == 3 and boxes.shape[::2] == (1, 4) and labels.shape == scores.shape == boxes.shape[:2]:
            return Layout(lambda out: Candidates(*(out[name][0] for name in NAMED)), fit="stretched")
        return None
    if len(found) != 1:
        return None
    (values,) = found.values()
    if values.ndim == 2 and values.shape[1] == 7:
        return Layout(lambda out: _columns(_only(out), 1, 5, 6))
    if values.ndim != 3 or len(values) != 1 or not np.issubdtype(values.dtype, np.floating):
        return None
    _, rows, columns = values.shape
    for strides in STRIDES:
        cells = sum(-(-width // s) * -(-height // s) for s in strides)
        if columns == cells and rows > 4:
            return Layout(lambda out: _centred(_only(out)[0].T, objectness=False), rows - 4, iou=0.6)
        if rows == 3 * cells and columns > 5:
            return Layout(lambda out: _centred(_only(out)[0]), columns - 5, iou=0.6)
        if rows == cells and columns > 5:
            return _of_cells(values[0], strides, width, height)
    if columns == 6:
        return Layout(lambda out: _columns(_only(out)[0], 0, 5, 4))
    return None


def _of_cells(rows: Array, strides: tuple[int, ...], width: int, height: int) -> Layout:
    """One row per cell: YOLOX with or without its decoding, or YOLOv6, whose objectness is always 1."""
    classes = rows.shape[1] - 5
    if float(np.median(np.abs(rows[:, :2]))) > RAW_OFFSET:
        if (rows[:, 4] == 1).all():
            return Layout(lambda out: _centred(_only(out)[0]), classes, iou=0.6)
        return Layout(lambda out: _centred(_only(out)[0]), classes, "corner", 0.6)
    corner, step = _grid(strides, width, height)

    def read(out: Outputs) -> Candidates:
        raw = _only(out)[0]
        size = np.exp(np.minimum(raw[:, 2:4], 20)) * step
        return _centred(np.concatenate([(raw[:, :2] + corner) * step, size, raw[:, 4:]], 1))

    return Layout(read, classes, "corner", 0.6)


def _grid(strides: tuple[int, ...], width: int, height: int) -> tuple[Array, Array]:
    """Column and row of each cell (cells, 2), and its stride (cells, 1), level by level."""
    corners, steps = [], []
    for stride in strides:
        y, x = np.mgrid[: -(-height // stride), : -(-width // stride)]
        corners.append(np.stack([x, y], -1).reshape(-1, 2))
        steps.append(np.full((x.size, 1), stride))
    return np.concatenate(corners).astype(np.float32), np.concatenate(steps).astype(np.float32)


def _centred(rows: Array, objectness: bool = True) -> Candidates:
    """Rows of centre, size, (objectness,) score of each label."""
    scores = rows[:, 4:5] * rows[:, 5:] if objectness else rows[:, 4:]
    labels = scores.argmax(axis=1)
    half = rows[:, 2:4] / 2
    boxes = np.concatenate([rows[:, :2] - half, rows[:, :2] + half], axis=1)
    return Candidates(boxes, labels, scores[np.arange(len(scores)), labels])


def _columns(rows: Array, box: int, label: int, score: int) -> Candidates:
    return Candidates(rows[:, box : box + 4], rows[:, label], rows[:, score])


def _only(out: Outputs) -> Array:
    return next(iter(out.values()))
