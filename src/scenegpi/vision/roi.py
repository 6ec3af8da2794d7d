r"""RoIAlign in plain torch: the features of a box, bin by bin, from the map of a whole photo.

A box that reaches beyond the photo is clipped at its edge; one without area, or entirely outside, becomes the nearest
pixels of the photo, so that every box has pixels.

A box is cut into `size` x `size` bins; a bin is the mean of `samples` x `samples` points spread evenly in it, each
read from the map by bilinear interpolation. A point outside the map has the value of its border. With cell k of the
map centred on pixel first + k stride, the pixel x lies at

.. math:: k(x) = (x - first) / stride.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from scenegpi.vision.backbone import FeatureMap

THINNEST = 2.0
"""Minimum width and height of a box, in pixels of the photo (or the whole side)."""


def clipped(boxes: Tensor, size: Tensor) -> Tensor:
    """boxes ``(N, 4)`` clipped to a photo of width and height `size`; at least `THINNEST` pixels wide and high."""
    low, high = boxes[:, :2].clamp_min(0).minimum(size), boxes[:, 2:].clamp_min(0).minimum(size)
    half = size.clamp_max(THINNEST) / 2
    centre = ((low + high) / 2).maximum(half).minimum(size - half)
    thin = high - low < 2 * half
    return torch.cat([torch.where(thin, centre - half, low), torch.where(thin, centre + half, high)], 1)


def roi_align(features: FeatureMap, boxes: Tensor, size: int = 7, samples: int = 2) -> Tensor:
    """The map ``(1, c, h, w)`` of one picture, boxes ``(N, 4)`` x1 y1 x2 y2 in pixels -> ``(N, c, size, size)``."""
    values = features.values
    if values.dtype != torch.float64:
        values = values.float()  # under autocast, too: a place in the photo needs more than 8 bits
    points = size * samples
    step = (torch.arange(points, dtype=torch.float64, device=boxes.device) + 0.5) / points
    low, side = boxes[:, None, :2].double(), (boxes[:, 2:] - boxes[:, :2])[:, None].double()
    cells = (low + side * step[:, None] - features.first) / features.stride  # (N, points, 2)
    extent = cells.new_tensor([values.shape[3], values.shape[2]])
    x, y = ((2 * cells + 1) / extent - 1).to(values.dtype).unbind(2)
    grid = torch.stack([x[:, None].expand(-1, points, -1), y[:, :, None].expand(-1, -1, points)], 3)
    read = F.grid_sample(values, grid.reshape(1, -1, points, 2), padding_mode="border", align_corners=False)
    bins = read.view(values.shape[1], boxes.shape[0], size, samples, size, samples).mean((3, 5))
    return bins.transpose(0, 1)
