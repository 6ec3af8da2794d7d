"""What boxes are drawn on: the photo, or an empty canvas of the image's size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.errors import DataError
from scenegpi.graph import SceneGraph


@dataclass(frozen=True)
class Canvas:
    """`width` x `height`, the `boxes` (N, 4) on it, and the photo's `pixels` (H, W, 3) where there is one."""

    width: float
    height: float
    boxes: NDArray[np.float64]
    pixels: NDArray[np.uint8] | None = None

    @classmethod
    def of(cls, graph: SceneGraph, photo: str | Path | None = None) -> Canvas:
        """The canvas of a graph. A photo may be larger or smaller than the size that its boxes refer to."""
        if photo is None:
            reach = graph.boxes[:, 2:].max(axis=0) if len(graph) else np.array([4.0, 3.0])
            return cls(float(graph.width or max(reach[0], 1)), float(graph.height or max(reach[1], 1)), graph.boxes)
        pixels = load_photo(photo)
        height, width = (float(side) for side in pixels.shape[:2])
        scale = np.array([width / (graph.width or width), height / (graph.height or height)])
        return cls(width, height, graph.boxes * np.tile(scale, 2), pixels)


def load_photo(photo: str | Path) -> NDArray[np.uint8]:
    """(H, W, 3) the photo, upright; DataError, one line, if it is none."""
    from PIL import Image, ImageOps

    try:
        with Image.open(photo) as image:
            return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(photo, f"not a readable photo ({error})") from None
