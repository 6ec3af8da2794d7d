r"""What the finder learns from: which candidates answer for which box, and how wrong they are.

A box is the business of every anchor whose sides are within a factor `RATIO` of its own, in the cell that its centre
lies in and the two cells nearest to it. There the candidate's box is to be the box (1 - GIoU), its objectness the
overlap of the two (quality focal loss, Li et al. 2020). Everywhere else the objectness is to be 0:

.. math:: p^2 \cdot -\log(1 - p) \quad\text{or, where boxes are missing,}\quad p^2 \cdot (1 - (1 - p)^q) / q.

The second is bounded, and its gradient vanishes as p nears 1: Visual Genome lists only some of the things in a photo,
and a candidate that is sure of one that is not listed is left in peace.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from scenegpi.vision.finder import ANCHORS, LEVELS, Candidates, corners

RATIO = 3.0
FORGIVING = 0.5
STRIDES = {"early": 8, "middle": 16, "last": 32}


class FinderLoss(NamedTuple):
    """Means over the candidates that answer for a box."""

    overlap: Tensor
    objectness: Tensor


def finder_loss(found: Candidates, boxes: Tensor, image: Tensor, side: int, complete: bool) -> FinderLoss:
    """The loss of a batch of square photos.

    Args:
        found: of B photos.
        boxes: ``(N, 4)`` centre x, y, width, height in fractions of the photo.
        image: ``(N,)`` photo of each box.
        side: of the photos in pixels.
        complete: whether a place without a box shows nothing, for sure.
    """
    rows, which = assigned(boxes, side)
    place = image[which]
    overlap = giou(found.boxes[place, rows], boxes[which])
    targets = torch.zeros_like(found.logits)
    # Where two boxes want one candidate, the objectness is that of the better one.
    targets = (
        targets.flatten()
        .scatter_reduce(0, place * targets.shape[1] + rows, overlap.detach().clamp(0, 1), "amax")
        .view_as(targets)
    )
    p = found.logits.sigmoid()
    answers = targets > 0
    positive = (targets - p).abs().square() * F.binary_cross_entropy_with_logits(
        found.logits, targets, reduction="none"
    )
    if complete:
        nothing = p.square() * F.softplus(found.logits)
    else:
        nothing = p.square() * (1 - (1 - p).clamp_min(1e-6) ** FORGIVING) / FORGIVING
    count = max(len(rows), 1)
    return FinderLoss((1 - overlap).sum() / count, torch.where(answers, positive, nothing).sum() / count)


def assigned(boxes: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """boxes ``(N, 4)`` -> candidates ``(M,)`` within a photo, and which box each of them answers for ``(M,)``."""
    rows, which, first = [], [], 0
    for name in LEVELS:
        cells = side // STRIDES[name]
        anchors = boxes.new_tensor(ANCHORS[name])
        ratio = (boxes[:, None, 2:] / anchors).clamp_min(1e-6)
        fits = torch.maximum(ratio, 1 / ratio).amax(2) < RATIO  # (N, A)
        box, anchor = fits.nonzero(as_tuple=True)
        at = boxes[box, :2] * cells
        cell = at.floor().clamp(0, cells - 1)
        step = torch.where(at - cell < 0.5, -1.0, 1.0)
        for move in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)):
            x, y = (cell + step * boxes.new_tensor(move)).unbind(1)
            inside = (x >= 0) & (x < cells) & (y >= 0) & (y < cells)
            rows.append((first + (anchor * cells + y.long()) * cells + x.long())[inside])
            which.append(box[inside])
        first += len(ANCHORS[name]) * cells * cells
    return torch.cat(rows), torch.cat(which)


def giou(a: Tensor, b: Tensor) -> Tensor:
    """Generalised IoU (Rezatofighi et al. 2019) row by row; boxes are centre and size: two ``(M, 4)`` -> ``(M,)``."""
    a, b = corners(a), corners(b)
    low, high = torch.maximum(a[:, :2], b[:, :2]), torch.minimum(a[:, 2:], b[:, 2:])
    both = (high - low).clamp_min(0).prod(1)
    union = (a[:, 2:] - a[:, :2]).prod(1) + (b[:, 2:] - b[:, :2]).prod(1) - both
    hull = (torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])).prod(1)
    return both / union.clamp_min(1e-9) - (hull - union) / hull.clamp_min(1e-9)
