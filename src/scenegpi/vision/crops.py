"""Photo and boxes -> small pictures for the backbone, all within the photo.

A box that reaches out of the photo is clipped at its edge; one without area, or wholly outside, becomes the nearest
pixels of the photo, so that every box has something to show.
"""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from scenegpi.vision.backbone import padded
from scenegpi.vision.photos import as_square

THINNEST = 2.0
"""Least width and height of a crop, in pixels of the photo (or all there are)."""


def clipped(boxes: Tensor, size: Tensor) -> Tensor:
    """boxes ``(N, 4)`` clipped to a photo of width and height `size`; at least `THINNEST` pixels wide and high."""
    low, high = boxes[:, :2].clamp_min(0).minimum(size), boxes[:, 2:].clamp_min(0).minimum(size)
    half = size.clamp_max(THINNEST) / 2
    centre = ((low + high) / 2).maximum(half).minimum(size - half)
    thin = high - low < 2 * half
    return torch.cat([torch.where(thin, centre - half, low), torch.where(thin, centre + half, high)], 1)


def with_margin(boxes: Tensor, margin: float) -> Tensor:
    """boxes ``(N, 4)`` grown by `margin` times their sides on each side."""
    grown = (boxes[:, 2:] - boxes[:, :2]) * margin
    return torch.cat([boxes[:, :2] - grown, boxes[:, 2:] + grown], 1)


def cut_crops(image: Image.Image, boxes: Tensor, size: int) -> Tensor:
    """Boxes ``(N, 4)`` within the photo, in its pixels -> ``(N, 3, size, size)`` bytes, smoothed where they shrink."""
    out = torch.empty(len(boxes), size, size, 3, dtype=torch.uint8)
    for row, box in zip(out, boxes.tolist(), strict=True):
        crop = image.resize((size, size), Image.Resampling.BILINEAR, box=tuple(box), reducing_gap=3.0)
        row.copy_(torch.from_numpy(np.array(crop)))
    return out.permute(0, 3, 1, 2)


def shrink(image: Image.Image, longest: int) -> tuple[Tensor, tuple[float, float]]:
    """The photo with its longer side at `longest` pixels, padded to whole cells: ``(3, H, W)``, and the two scales."""
    width, height = image.size
    scale = longest / max(height, width)
    size = (max(round(width * scale), 1), max(round(height * scale), 1))
    small = image.resize(size, Image.Resampling.BILINEAR, reducing_gap=3.0)
    values = torch.from_numpy(np.array(small)).permute(2, 0, 1)
    return padded(values), (size[0] / width, size[1] / height)


def stretch(image: Image.Image, side: int) -> tuple[Tensor, tuple[float, float]]:
    """The photo stretched to a square: ``(3, side, side)``, and the two scales."""
    return torch.from_numpy(as_square(image, side)), (side / image.width, side / image.height)
