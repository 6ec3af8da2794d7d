"""The canvas for boxes: the photo, or an empty canvas of the image's size."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.graph import SceneGraph


@dataclass(frozen=True)
class Canvas:
    """`width` x `height`, the `boxes` (N, 4) on it, and the `pixels` (H, W, 3) of the photo; None: an empty canvas."""

    width: float
    height: float
    boxes: NDArray[np.float64]
    pixels: NDArray[np.uint8] | None = None

    @classmethod
    def of(cls, graph: SceneGraph, photo: Any = None) -> Canvas:
        """The canvas of a graph; `photo` is a path, a Pillow image or an array, of any size."""
        if photo is None:
            reach = graph.boxes[:, 2:].max(axis=0) if len(graph) else np.array([4.0, 3.0])
            return cls(float(graph.width or max(reach[0], 1)), float(graph.height or max(reach[1], 1)), graph.boxes)
        from scenegpi.vision.photos import as_photo, photo_boxes

        pixels = as_photo(photo)
        return cls(float(pixels.shape[1]), float(pixels.shape[0]), photo_boxes(graph, pixels), pixels)

    @property
    def size(self) -> tuple[float, float]:
        return self.width, self.height

    @property
    def inside(self) -> NDArray[np.float64]:
        """(N, 4) the boxes, cut off at the border."""
        return np.clip(self.boxes, 0, self.size * 2)

    @property
    def centres(self) -> NDArray[np.float64]:
        """(N, 2) of the boxes, in 0..1 of the canvas."""
        return (self.boxes[:, :2] + self.boxes[:, 2:]) / 2 / self.size

    def largest_first(self) -> list[int]:
        """The order in which boxes are drawn, so that small ones lie on top."""
        return largest_first(self.boxes).tolist()


def largest_first(boxes: NDArray[np.float64]) -> NDArray[np.intp]:
    """(N,) the rows of boxes (N, 4) by area."""
    return np.argsort(-np.prod(boxes[:, 2:] - boxes[:, :2], axis=1), kind="stable")


def jpeg(pixels: NDArray[np.uint8], side: int | None = None, quality: int = 85) -> bytes:
    """A photo (H, W, 3) as a JPEG file whose longer side is at most `side` pixels."""
    from PIL import Image

    image, out = Image.fromarray(pixels), io.BytesIO()
    if side is not None:
        image.thumbnail((side, side))
    image.save(out, "JPEG", quality=quality)
    return out.getvalue()


def data_uri(pixels: NDArray[np.uint8], side: int | None = None, quality: int = 85) -> str:
    """The JPEG file as a data URI."""
    return "data:image/jpeg;base64," + base64.b64encode(jpeg(pixels, side, quality)).decode()
