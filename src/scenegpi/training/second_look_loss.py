r"""What the second look learns from: candidates of the finder itself, and annotated boxes that were shaken.

A box that overlaps an annotated one by at least `LEAST` is to be moved onto it (smooth L1 of the move, and 1 - GIoU);
how well it then fits is to be known beforehand, for the annotated box's kind (binary cross-entropy), and from `NAMED`
on what it shows (-log P of the names that it may have). Boxes that overlap nothing are nothing: as in `finder_loss`,
hardly so for things of which only some are listed.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from scenegpi.training.finder_loss import giou, unlisted
from scenegpi.training.photo_sets import LabelSets
from scenegpi.vision.finder import KINDS, Candidates, corners
from scenegpi.vision.second_look import LARGEST, Looked, moved

ROIS = 48
"""Boxes per photo, half of them shaken ones where there are annotated ones."""
BEST = 120
"""Of the finder's best candidates some are drawn."""
SHAKEN = 0.17
"""Standard deviation of an edge's place, as a share of the box's sides."""
LEAST, FITS, NAMED = 0.35, 0.4, 0.5
SCALE = (10.0, 10.0, 5.0, 5.0)
"""Moves are about this much smaller than 1."""


class LookLoss(NamedTuple):
    """Means over the boxes of a photo, then over photos."""

    move: Tensor
    fit: Tensor
    name: Tensor


@torch.no_grad()
def looked_at(found: Candidates, boxes: Tensor, image: Tensor) -> Tensor:
    """Boxes to look at: ``(B, ROIS, 4)`` centre and size. `boxes` are ``(N, 4)``, centre and size, `image` ``(N,)``."""
    sure = found.logits.sigmoid().amax(-1)
    best = sure.topk(min(BEST, sure.shape[1]), 1).indices
    chosen = []
    for k in range(len(sure)):
        drawn = best[k][torch.randperm(best.shape[1])[: ROIS // 2]]
        some = [found.boxes[k, drawn]]
        mine = boxes[image == k]
        if len(mine):
            mine = mine[torch.randint(len(mine), (ROIS - len(drawn),))]
            low, high = corners(mine).split(2, 1)
            strength = torch.rand(len(mine), 1, device=mine.device) * 2 * SHAKEN
            low, high = (edge + strength * mine[:, 2:] * torch.randn_like(edge) for edge in (low, high))
            some.append(torch.cat([(low + high) / 2, (high - low).abs().clamp_min(0.01)], 1))
        else:
            some.append(found.boxes[k, best[k][torch.randint(best.shape[1], (ROIS - len(drawn),))]])
        chosen.append(torch.cat(some))
    whole = corners(torch.stack(chosen)).clamp(0, 1)
    low, high = whole.split(2, 2)
    return torch.cat([(low + high) / 2, (high - low).clamp_min(0.005)], 2)


def look_loss(
    looked: Looked,
    rois: Tensor,
    boxes: Tensor,
    kinds: Tensor,
    image: Tensor,
    listed: Tensor,
    rows: Tensor,
    sets: LabelSets,
) -> LookLoss:
    """The loss of a batch: rois ``(B, R, 4)``, annotated boxes ``(N, 4)``, both centre and size; `rows` ``(N,)`` of the
    names that each of these may have."""
    photos, number = rois.shape[:2]
    there = moved(rois, looked.moves)
    which, overlap = _matched(rois, boxes, image)
    target = torch.cat([boxes, boxes.new_zeros(1, 4)])[which]
    kind = torch.cat([kinds, kinds.new_zeros(1)])[which]
    target = torch.where((overlap > 0)[..., None], target, rois)
    fits, named = overlap >= LEAST, overlap >= NAMED
    scale = rois.new_tensor(SCALE)
    wanted = torch.cat(
        [(target[..., :2] - rois[..., :2]) / rois[..., 2:], (target[..., 2:] / rois[..., 2:]).clamp_min(1e-3).log()], -1
    ).clamp(-LARGEST, LARGEST)
    step = F.smooth_l1_loss(looked.moves * scale, wanted * scale, reduction="none").sum(-1)
    after = giou(there.flatten(0, 1), target.flatten(0, 1)).view(photos, number)
    move = torch.where(fits, step + 2 * (1 - after), 0.0).sum(1) / fits.sum(1).clamp_min(1)
    reached = after.detach().clamp(0, 1)
    hit = F.one_hot(kind, KINDS) * (fits & (reached >= FITS))[..., None]
    fit = torch.where(
        hit > 0,
        F.binary_cross_entropy_with_logits(looked.logits, hit * reached[..., None], reduction="none"),
        unlisted(looked.logits),
    )
    name = sets.nll(looked.names[named], rows[which[named]]).sum() / (number * photos)
    return LookLoss(move.mean(), (fit * listed[:, None]).sum(-1).mean(), name)


def _matched(rois: Tensor, boxes: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
    """For every box that is looked at the annotated box that it overlaps most (the last one if none), by how much."""
    which = image.new_full(rois.shape[:2], len(boxes))
    overlap = rois.new_zeros(rois.shape[:2])
    for k in range(len(rois)):
        mine = (image == k).nonzero().flatten()
        if len(mine):
            a, b = corners(rois[k])[:, None], corners(boxes[mine])
            common = (
                (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp_min(0).prod(2)
            )
            areas = rois[k, :, 2:].prod(1)[:, None] + boxes[mine, 2:].prod(1) - common
            best = (common / areas.clamp_min(1e-9)).max(1)
            which[k], overlap[k] = mine[best.indices], best.values
    return which, overlap
