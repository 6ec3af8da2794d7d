r"""A second look at every box: where exactly the thing ends, how likely there is one, and what it is.

A box b = (c_x, c_y, w, h), in fractions of the photo, is read from the maps with a margin around it, bin by bin. The
network predicts its move, how well the moved box will fit a thing of either kind, and what it shows:

.. math:: b' = (c_x + d_x w,\; c_y + d_y h,\; w e^{d_w},\; h e^{d_h}), \qquad q_k = \sigma(t_k), \qquad
    P(n) = softmax(u)_n

Like the second stage of Faster R-CNN (Ren et al. 2015). Its names are a second opinion: the label head has the other
(`scenegpi.vision.model`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.finder import KINDS, PRIOR

MARGIN = 0.25
"""The margin read around a box, as a fraction of its sides: without it, a box that is too small looks right."""
BINS = 6
"""Points per side that are read in a box; the maps are smooth."""
NARROW = 32
HIDDEN = 256
LARGEST = 0.8
"""Largest change of the logarithm of a side."""


class Looked(NamedTuple):
    """moves ``(B, R, 4)``: d_x, d_y, d_w, d_h; logits ``(B, R, KINDS)`` of how well the moved box fits a thing; names
    ``(B, R, names)``, logits of what it shows."""

    moves: Tensor
    logits: Tensor
    names: Tensor


class SecondLook(nn.Module):
    """Maps and boxes -> moves, fits and names.

    Args:
        width: of the maps.
        levels: number of maps.
        names: number of names.
    """

    def __init__(self, width: int, levels: int, names: int) -> None:
        super().__init__()
        self.narrow = nn.ModuleList(nn.Conv2d(width, NARROW, 1) for _ in range(levels))
        self.hidden = nn.ModuleList([nn.Linear(levels * NARROW * BINS**2 + 4, HIDDEN), nn.Linear(HIDDEN, HIDDEN)])
        self.move, self.fit, self.name = (nn.Linear(HIDDEN, outputs) for outputs in (4, KINDS, names))
        for layer in (self.move, self.fit, self.name):
            nn.init.normal_(layer.weight, std=0.001)
            nn.init.zeros_(layer.bias)
        nn.init.constant_(self.fit.bias, -log(1 / PRIOR - 1) / 2)

    def narrowed(self, maps: Sequence[FeatureMap]) -> list[FeatureMap]:
        """What is read of the maps; computed once for several looks."""
        layers = zip(self.narrow, maps, strict=True)
        return [FeatureMap(F.relu(f(each.values)), each.stride, each.first) for f, each in layers]

    def forward(self, maps: Sequence[FeatureMap], boxes: Tensor, side: int) -> Looked:
        """Maps of `narrowed`, boxes ``(B, R, 4)`` centre and size in fractions of the square photos, `side` pixels."""
        grown = torch.cat([boxes[..., :2], boxes[..., 2:] * (1 + 2 * MARGIN)], -1) * side
        read = [bins(each, grown).flatten(2) for each in maps]
        place = torch.cat([boxes[..., :2], boxes[..., 2:].clamp_min(1e-3).log() / 4], -1)
        x = torch.cat([*read, place], -1)
        for layer in self.hidden:
            x = F.relu(layer(x))
        return Looked(*(layer(x).float() for layer in (self.move, self.fit, self.name)))


def bins(features: FeatureMap, boxes: Tensor) -> Tensor:
    """RoIAlign of the same number of boxes in every picture: ``(B, R, 4)`` centre and size in pixels ->
    ``(B, R, c, BINS, BINS)``."""
    values = features.values.float()
    step = (torch.arange(BINS, dtype=boxes.dtype, device=boxes.device) + 0.5) / BINS - 0.5
    cells = (boxes[..., None, :2] + boxes[..., None, 2:] * step[:, None] - features.first) / features.stride
    extent = cells.new_tensor([values.shape[3], values.shape[2]])
    x, y = ((2 * cells + 1) / extent - 1).unbind(-1)  # (B, R, BINS) each
    batch, rois = boxes.shape[:2]
    shape = (batch, rois, BINS, BINS)
    grid = torch.stack([x[:, :, None].expand(shape), y[:, :, :, None].expand(shape)], -1)
    read = F.grid_sample(values, grid.flatten(1, 2), padding_mode="border", align_corners=False)
    return read.view(batch, values.shape[1], rois, BINS, BINS).transpose(1, 2)


def moved(boxes: Tensor, moves: Tensor) -> Tensor:
    """Boxes ``(..., 4)``, centre and size, after their moves ``(..., 4)``."""
    centre = boxes[..., :2] + moves[..., :2] * boxes[..., 2:]
    return torch.cat([centre, boxes[..., 2:] * moves[..., 2:].clamp(-LARGEST, LARGEST).exp()], -1)
