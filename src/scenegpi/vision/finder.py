r"""Finds boxes in the maps of the photo network: one stage, three anchors per cell and level, no labels.

A cell at (c_x, c_y) with the anchor (a_w, a_h), in fractions of the photo, predicts

.. math:: b_{xy} = (c_{xy} + 2 \sigma(t_{xy}) - 0.5) / n, \quad b_{wh} = a_{wh} (2 \sigma(t_{wh}))^2, \quad
    o_k = \sigma(t_k)

with n cells along a side. o_k is the objectness of a kind: things of a list that annotators went through for every
photo (k = 0: COCO's), and all others (k = 1), of which only some are annotated. What a box shows is left to
the label predictor, which reads the same maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.config import Layer

LEVELS: tuple[Layer, ...] = ("early", "middle", "last")
FIND: tuple[Layer, ...] = ("find early", "find middle", "find last")
"""The maps that boxes are found in and labels are read from, and those of the second look."""
# Width and height in fractions of the photo: the nine centres of the training boxes of VG150, in logarithms.
ANCHORS: dict[Layer, tuple[tuple[float, float], ...]] = {
    "early": ((0.063, 0.061), (0.040, 0.138), (0.099, 0.139)),
    "middle": ((0.215, 0.079), (0.102, 0.353), (0.219, 0.230)),
    "last": ((0.616, 0.255), (0.293, 0.552), (0.764, 0.704)),
}
KINDS = 2
"""Kinds of things: those of a complete list, and others."""
PRIOR = 0.02
"""Objectness before training: most candidates show no object."""


class Candidates(NamedTuple):
    """The finder's output for a batch: boxes ``(B, K, 4)``, objectness logits ``(B, K, KINDS)``.

    Boxes are centre x, y, width, height in fractions of the photo; K counts levels, anchors, rows and columns.
    """

    boxes: Tensor
    logits: Tensor


class FinderHead(nn.Module):
    """Maps of the neck -> candidates. Two convolutions that all levels share, then one of each level's own.

    Args:
        width: of the maps.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depth = nn.ModuleList(nn.Conv2d(width, width, 3, 1, 1, groups=width) for _ in range(2))
        self.point = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(2))
        self.out = nn.ModuleDict({name: nn.Conv2d(width, (4 + KINDS) * len(ANCHORS[name]), 1) for name in LEVELS})
        for layer in self.out.values():
            nn.init.normal_(layer.weight, std=0.01)  # type: ignore[arg-type]
            bias = torch.zeros(len(layer.bias) // (4 + KINDS), 4 + KINDS)  # type: ignore[arg-type]
            bias[:, 4:] = -torch.log(torch.tensor(1 / PRIOR - 1))
            layer.bias.data.copy_(bias.flatten())  # type: ignore[operator]

    def forward(self, maps: Sequence[FeatureMap]) -> Candidates:
        """Maps of the levels "early", "middle", "last", ``(B, c, h, w)`` each."""
        boxes, logits = [], []
        for name, each in zip(LEVELS, maps, strict=True):
            x = each.values
            for depth, point in zip(self.depth, self.point, strict=True):
                x = F.relu(point(depth(x)))
            out = self.out[name](x).float()  # under autocast, too
            out = out.unflatten(1, (-1, 4 + KINDS)).permute(0, 1, 3, 4, 2)  # (B, A, h, w, 4 + KINDS)
            height, width = out.shape[2:4]
            y, x = torch.meshgrid(_range(height, out), _range(width, out), indexing="ij")
            scale = out.new_tensor([width, height])
            centre = (torch.stack([x, y], -1) + 2 * out[..., :2].sigmoid() - 0.5) / scale
            size = out.new_tensor(ANCHORS[name])[:, None, None] * (2 * out[..., 2:4].sigmoid()).square()
            boxes.append(torch.cat([centre, size], -1).flatten(1, 3))
            logits.append(out[..., 4:].flatten(1, 3))
        return Candidates(torch.cat(boxes, 1), torch.cat(logits, 1))


def corners(boxes: Tensor) -> Tensor:
    """``(..., 4)`` centre and size -> x1, y1, x2, y2."""
    return torch.cat([boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2], -1)


def mirrored(boxes: Tensor) -> Tensor:
    """Boxes ``(..., 4)``, centre and size in fractions, in the mirror image."""
    return torch.cat([1 - boxes[..., :1], boxes[..., 1:]], -1)


def _range(count: int, like: Tensor) -> Tensor:
    return torch.arange(count, dtype=like.dtype, device=like.device)
