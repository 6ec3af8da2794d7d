"""Any detector in an ONNX file: recognised by its inputs and outputs, run by onnxruntime without torch.

    found = OnnxDetector("rtdetr.onnx").detect(open_photo("street.jpg"))

Its outputs for a grey picture tell which kind it is (the table is in docs/detectors.md). "Cells" are those of strides
8, 16, 32 (and maybe 64) over the input. The file is not trusted: its outputs are checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from scenegpi.data.class_names import YAML_BYTES, in_order, yaml_names
from scenegpi.data.coco_names import COCO_PLACES
from scenegpi.errors import DataError
from scenegpi.onnx.session import Session
from scenegpi.vision.detect import Detections, finished
from scenegpi.vision.photos import Photo

Array = NDArray[Any]
Outputs = Mapping[str, Array]
STRIDES = ((8, 16, 32), (8, 16, 32, 64))
NAMED = ("boxes", "labels", "scores")
RAW_OFFSET = 16
"""Offsets from a cell are mostly smaller than this, centres in pixels mostly larger."""
SIDE, MOST_SIDE = 640, 2048
"""Side of the input if the file leaves it open; and the largest that is accepted."""
MOST_VALUES = 1 << 25
OVERLAP = 0.6
"""IoU above which the worse of two boxes with one label is dropped, for files without suppression of their own."""
GREY = 114
TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16}


class Layout(NamedTuple):
    """How a picture is fitted into the input, and how the outputs are read.

    `read` gives boxes (K, 4) x1, y1, x2, y2 in pixels of the input, labels (K,) and scores (K,); `classes` is the
    number of labels, if the outputs determine it; `fit` is "stretched", or scaled evenly and "centred" or in the
    "corner", the rest grey; of two boxes with one label that overlap by more than `iou` the worse is dropped.
    """

    read: Callable[[Outputs], tuple[Array, Array, Array]]
    classes: int | None = None
    fit: Literal["stretched", "centred", "corner"] = "centred"
    iou: float = 1.0


class OnnxDetector:
    """Photo -> boxes with the labels of a file.

    Args:
        file: a path, or the bytes of such a file.
        names: its labels by number; by default those of its metadata, or COCO's 80.
        floor: minimum score that is reported.
    """

    def __init__(
        self, file: str | Path | bytes, names: Sequence[str] | Mapping[int, str] | None = None, floor: float = 0.25
    ) -> None:
        self.floor, self._session = floor, Session(file)
        self._where = self._session.where
        self._image, self._sizes = self._input_names()
        self.width, self.height = self._input_size()
        found = self._run(np.full((self.height, self.width, 3), GREY, dtype=np.uint8), "centred", (SIDE, SIDE))
        layout = recognized(found, self.width, self.height)
        task = self._session.metadata.get("task", "detect")
        if layout is None or task != "detect" or (layout.fit == "stretched") != (self._sizes is not None):
            raise self._unknown()
        self.layout: Layout = layout
        self.names = self._names(names)

    def detect(self, photo: Photo) -> Detections:
        """Boxes in pixels of the photo, (H, W, 3) bytes; best first."""
        size = (photo.shape[1], photo.shape[0])
        laid, scale, shift = self._laid(photo)
        boxes, labels, scores = self.layout.read(self._run(laid, self.layout.fit, size))
        good = scores >= self.floor
        wrong = labels[good & ~((labels >= 0) & (labels < len(self.names)))]
        if len(wrong):
            raise DataError(self._where, f"label {wrong[0]:g}, but only {len(self.names)} names; name all with --names")
        boxes = (boxes[good].astype(np.float64) - np.tile(shift, 2)) / np.tile(scale, 2)
        return finished(boxes, labels[good], np.clip(scores[good], 0, 1), self.names, size, self.layout.iou)

    def _laid(self, photo: Photo) -> tuple[Photo, Array, Array]:
        """The photo fitted into the input; x, y of the photo are (those of the input - shift) / scale."""
        ours, theirs = np.array([self.width, self.height]), np.array([photo.shape[1], photo.shape[0]])
        stretched = self.layout.fit == "stretched"
        inner = ours if stretched else np.maximum(np.rint(theirs * (ours / theirs).min()).astype(int), 1)
        image = Image.fromarray(photo).resize(inner.tolist(), Image.Resampling.BILINEAR, reducing_gap=2.0)
        if stretched:  # such a file gives boxes in pixels of the photo
            return np.asarray(image), np.ones(2), np.zeros(2)
        left, top = (0, 0) if self.layout.fit == "corner" else (ours - inner) // 2
        laid = np.full((self.height, self.width, 3), GREY, dtype=np.uint8)
        laid[top : top + inner[1], left : left + inner[0]] = np.asarray(image)
        return laid, inner / theirs, np.array([left, top])

    def _run(self, picture: Photo, fit: str, size: tuple[int, int]) -> dict[str, Array]:
        """The outputs for (H, W, 3) bytes, as the file expects them: BGR bytes for YOLOX, else RGB from 0 to 1."""
        values = picture[..., ::-1] if fit == "corner" else picture / np.float32(255)
        kind = TYPES[self._session.types[self._image]]
        given = {self._image: np.ascontiguousarray(values.transpose(2, 0, 1)[None], dtype=kind)}
        if self._sizes is not None:
            given[self._sizes] = np.array([size], dtype=np.int64)
        names = list(self._session.outputs)
        found = dict(zip(names, self._session.run(names, given), strict=True))
        for name, value in found.items():
            if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu" or value.size > MOST_VALUES:
                raise DataError(self._where, f"output {name!r:.60}: not an array of numbers, or too large")
        return found

    def _input_names(self) -> tuple[str, str | None]:
        """The names of the input for the picture, and of the input for its size, or None."""
        inputs, types = self._session.inputs, self._session.types
        pictures = [n for n, shape in inputs.items() if len(shape) == 4 and shape[1] == 3 and types[n] in TYPES]
        others = [name for name in inputs if name not in pictures]
        sized = [n for n in others if len(inputs[n]) == 2 and inputs[n][1] == 2 and types[n] == "tensor(int64)"]
        if len(pictures) != 1 or sized != others or len(sized) > 1:
            raise self._unknown()
        return pictures[0], next(iter(sized), None)

    def _input_size(self) -> tuple[int, int]:
        """Width and height of the picture."""
        batch, _, *sides = (side if isinstance(side, int) else None for side in self._session.inputs[self._image])
        told = re.findall(r"[0-9]{1,5}", self._session.metadata.get("imgsz", "")[:40]) or [SIDE]
        height, width = (side or int(wanted) for side, wanted in zip(sides, (told[0], told[-1]), strict=True))
        if batch not in (None, 1) or not (32 <= height <= MOST_SIDE and 32 <= width <= MOST_SIDE):
            said = f"takes {batch or 1} pictures of {width} x {height}; expected 1, of 32 to {MOST_SIDE} pixels"
            raise DataError(self._where, said)
        return width, height

    def _names(self, given: Sequence[str] | Mapping[int, str] | None) -> Sequence[str]:
        """The labels by number: given, from the file, or COCO's if the file has 80 or does not say."""
        count, text = self.layout.classes, self._session.metadata.get("names", "")
        if given is not None:
            table = given if isinstance(given, Mapping) else dict(enumerate(given))
        elif len(text) > YAML_BYTES:
            raise DataError(self._where, "metadata names: longer than any list of labels")
        elif text:
            table = yaml_names(self._where, f"names: {text}")
        elif count in (None, len(COCO_PLACES)):
            table = COCO_PLACES
        else:
            raise DataError(self._where, f"{count} labels without names; give them with --names FILE")
        names = in_order(self._where, table)
        if not names or (count is not None and len(names) != count):
            raise DataError(self._where, f"{len(names)} names, but the file has {count or 'other'} labels")
        return names

    def _unknown(self) -> DataError:
        inputs, outputs = (
            ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
            for shapes in (self._session.inputs, self._session.outputs)
        )
        task = self._session.metadata.get("task")
        told = f"inputs {inputs}; outputs {outputs}{f', task {task!r:.30}' if task else ''}"
        return DataError(self._where, f"not a known kind of detector (docs/detectors.md): {told}")


def recognized(found: Outputs, width: int, height: int) -> Layout | None:
    """The layout of a file with these outputs for a grey picture of this size; None if it is unknown."""
    if set(NAMED) <= set(found):  # RT-DETR, D-FINE, DEIM
        boxes, labels, scores = (found[name] for name in NAMED)
        if boxes.ndim == 3 and boxes.shape[::2] == (1, 4) and labels.shape == scores.shape == boxes.shape[:2]:
            return Layout(lambda out: (out["boxes"][0], out["labels"][0], out["scores"][0]), fit="stretched")
        return None
    if len(found) != 1:
        return None
    (name, values), *_ = found.items()
    if values.ndim == 2 and values.shape[1] == 7:  # YOLOv7 with NMS
        return Layout(lambda out: (out[name][:, 1:5], out[name][:, 5], out[name][:, 6]))
    if values.ndim != 3 or len(values) != 1 or not np.issubdtype(values.dtype, np.floating):
        return None
    _, rows, columns = values.shape
    for strides in STRIDES:
        cells = sum(-(-width // s) * -(-height // s) for s in strides)
        if columns == cells and rows > 4:  # YOLOv8, v9, 11, 12
            return Layout(lambda out: _centred(out[name][0].T, objectness=False), rows - 4, iou=OVERLAP)
        if rows == 3 * cells and columns > 5:  # YOLOv5, YOLOv7
            return Layout(lambda out: _centred(out[name][0]), columns - 5, iou=OVERLAP)
        if rows == cells and columns > 5:
            return _of_cells(name, values[0], strides, width, height)
    if columns == 6:  # YOLOv10, YOLO26, exports with NMS
        return Layout(lambda out: (out[name][0][:, :4], out[name][0][:, 5], out[name][0][:, 4]))
    return None


def _of_cells(name: str, rows: Array, strides: tuple[int, ...], width: int, height: int) -> Layout:
    """One row per cell: YOLOX with or without its decoding, or YOLOv6, whose objectness is always 1."""
    corner, step, classes = *_grid(strides, width, height), rows.shape[1] - 5

    def read(out: Outputs) -> tuple[Array, Array, Array]:
        raw = out[name][0]
        size = np.exp(np.minimum(raw[:, 2:4], 20)) * step
        return _centred(np.concatenate([(raw[:, :2] + corner) * step, size, raw[:, 4:]], 1))

    if float(np.median(np.abs(rows[:, :2]))) <= RAW_OFFSET:
        return Layout(read, classes, "corner", OVERLAP)
    fit: Literal["centred", "corner"] = "centred" if (rows[:, 4] == 1).all() else "corner"
    return Layout(lambda out: _centred(out[name][0]), classes, fit, OVERLAP)


def _grid(strides: tuple[int, ...], width: int, height: int) -> tuple[Array, Array]:
    """Column and row of each cell (cells, 2), and its stride (cells, 1), level by level."""
    cells = [(x, y, s) for s in strides for y in range(-(-height // s)) for x in range(-(-width // s))]
    table = np.array(cells, dtype=np.float32)
    return table[:, :2], table[:, 2:]


def _centred(rows: Array, objectness: bool = True) -> tuple[Array, Array, Array]:
    """Rows of centre, size, (objectness,) score of each label -> boxes, labels, scores."""
    scores = rows[:, 4:5] * rows[:, 5:] if objectness else rows[:, 4:]
    labels, half = scores.argmax(axis=1), rows[:, 2:4] / 2
    boxes = np.concatenate([rows[:, :2] - half, rows[:, :2] + half], axis=1)
    return boxes, labels, scores[np.arange(len(scores)), labels]
