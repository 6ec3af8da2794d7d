r"""What the finder learns from: which candidates answer for which box, and how wrong they are.

A box is the business of every anchor whose sides are within a factor `RATIO` of its own, in the cell that its centre
lies in and the two cells nearest to it. There the candidate's box is to be the box (1 - GIoU), its objectness the
overlap of the two (quality focal loss, Li et al. 2020). Everywhere else the objectness is to be 0:

.. math:: p^2 \cdot -\log(1 - p) \quad\text{for kind 0, and for kind 1}\quad p^2 \cdot (1 - (1 - p)^q) / q.

The second is bounded, and its gradient vanishes as p nears 1: Visual Genome lists only some of the things in a photo,
so confident candidates on unlisted objects are hardly penalized.
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
    """Means over the candidates of a photo that answer for a box, then over photos."""

    overlap: Tensor
    objectness: Tensor


def finder_loss(
    found: Candidates, boxes: Tensor, kinds: Tensor, image: Tensor, listed: Tensor, side: int
) -> FinderLoss:
    """The loss of a batch of square photos.

    Args:
        found: of B photos.
        boxes: ``(N, 4)`` centre x, y, width, height in fractions of the photo.
        kinds, image: ``(N,)`` kind and photo of each box.
        listed: ``(B, KINDS)`` which kinds are annotated in a photo; others say nothing.
        side: of the photos in pixels.
    """
    rows, which = assigned(boxes, side)
    place, photos = image[which], len(listed)
    overlap = giou(found.boxes[place, rows], boxes[which])
    # Where two boxes want one candidate, the objectness is that of the better one.
    targets = torch.zeros_like(found.logits)
    cell = (place * targets.shape[1] + rows) * targets.shape[2] + kinds[which]
    targets = targets.flatten().scatter_reduce(0, cell, overlap.detach().clamp(0, 1), "amax").view_as(targets)
    loss = torch.where(targets > 0, focal(found.logits, targets), nothing(found.logits)) * listed[:, None]
    count = torch.zeros(photos).to(overlap).index_add(0, place, torch.ones_like(overlap)).clamp_min(1)
    return FinderLoss(((1 - overlap) / count[place]).sum() / photos, (loss.sum((1, 2)) / count).sum() / photos)


def focal(logits: Tensor, targets: Tensor) -> Tensor:
    """Quality focal loss, of any shape."""
    wrong = (targets - logits.sigmoid()).square()
    return wrong * F.binary_cross_entropy_with_logits(logits, targets, reduction="none")


def nothing(logits: Tensor) -> Tensor:
    """The loss of a candidate where no box is listed: logits ``(..., KINDS)`` -> ``(..., KINDS)``."""
    return logits.sigmoid().square() * unlisted(logits)


def unlisted(logits: Tensor) -> Tensor:
    """The same without its focus on those that are sure of themselves."""
    p = logits[..., 1].sigmoid()
    forgiving = (1 - (1 - p).clamp_min(1e-6) ** FORGIVING) / FORGIVING
    return torch.stack([F.softplus(logits[..., 0]), forgiving], -1)


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
