"""A photo as the backbone reads it, and boxes within it.

A box that reaches out of the photo is clipped at its edge; one without area, or wholly outside, becomes the nearest
pixels of the photo, so that every box has something to show.
"""

from __future__ import annotations

import torch
from PIL import Image
from torch import Tensor

from scenegpi.vision.photos import as_square

THINNEST = 2.0
"""Least width and height of a box, in pixels of the photo (or all there are)."""


def clipped(boxes: Tensor, size: Tensor) -> Tensor:
    """boxes ``(N, 4)`` clipped to a photo of width and height `size`; at least `THINNEST` pixels wide and high."""
    low, high = boxes[:, :2].clamp_min(0).minimum(size), boxes[:, 2:].clamp_min(0).minimum(size)
    half = size.clamp_max(THINNEST) / 2
    centre = ((low + high) / 2).maximum(half).minimum(size - half)
    thin = high - low < 2 * half
    return torch.cat([torch.where(thin, centre - half, low), torch.where(thin, centre + half, high)], 1)


def stretch(image: Image.Image, side: int) -> tuple[Tensor, tuple[float, float]]:
    """The photo stretched to a square: ``(3, side, side)``, and the two scales."""
    return torch.from_numpy(as_square(image, side)), (side / image.width, side / image.height)
