r"""RoIAlign in plain torch: the features of a box, bin by bin, from the map of a whole photo.

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
