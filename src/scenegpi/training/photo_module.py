r"""One training step of the photo network: its losses for names and boxes.

**Names.** The label head should give a box one of its allowed names: the loss is -log of the sum of their P. A label
that is common in one annotation may be rare in another, so for boxes of the other annotation a learned offset per label
is added to the logits, and left out afterwards: they teach what things look like, not how often they are annotated
(logit adjustment, Menon et al. 2021). For a box that a model found the loss is the cross entropy with what that said.

**Finder.** A box is assigned to every anchor whose sides are within a factor `RATIO` of its own, in the cell that
contains its centre and the two cells nearest to it. There the candidate's box is trained towards the box (1 - GIoU),
its objectness towards the overlap of the two (quality focal loss, Li et al. 2020). Everywhere else the target of the
objectness is 0:

.. math:: p^2 \cdot -\log(1 - p) \quad\text{for kind 0, and for kind 1}\quad p^2 \cdot (1 - (1 - p)^q) / q.

The second is bounded, and its gradient vanishes as p nears 1: Visual Genome lists only some of the things in a photo,
so confident candidates on unlisted objects are hardly penalised.

**Second look.** It reads candidates of the finder and jittered annotated boxes. A box that overlaps an annotated one by
at least `LEAST` is moved onto it (smooth L1 of the move, and 1 - GIoU); it also predicts how well it will then fit, for
the annotated box's kind (binary cross-entropy), and from `NAMED` on what it shows (-log P of its allowed names). Boxes
that overlap nothing are penalised like the finder's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import lightning as L
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scenegpi.training.config import PhotoFitConfig
from scenegpi.training.photo_batches import PhotoBatch, jittered
from scenegpi.training.photo_sets import LabelSets
from scenegpi.training.trainer import one_cycle
from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.finder import ANCHORS, FIND, KINDS, LEVELS, Candidates, corners
from scenegpi.vision.labels import box_geometry
from scenegpi.vision.model import VisionModel
from scenegpi.vision.network import PhotoNetwork
from scenegpi.vision.second_look import LARGEST, Looked, moved

JITTER = 0.12
"""How far the edges of a box are moved before it is named, as a fraction of its sides."""
BOXES = 8
"""Approximate number of boxes named per photo."""
RATE, BACKBONE_RATE, FREQUENCY_RATE, WEIGHT_DECAY = 1e-3, 3e-4, 1e-2, 0.02
RATIO = 3.0
FORGIVING = 0.5
STRIDES = {"early": 8, "middle": 16, "last": 32}
ROIS = 48
"""Boxes per photo for the second look, half of them jittered annotated ones if there are any."""
BEST = 120
"""The others are drawn from this many of the finder's best candidates."""
SHAKEN = 0.17
"""Standard deviation of an edge's position, as a fraction of the box's sides."""
LEAST, FITS, NAMED = 0.35, 0.4, 0.5
SCALE = (10.0, 10.0, 5.0, 5.0)
"""Moves are about this much smaller than 1."""


class PhotoModule(L.LightningModule):
    """Trains a vision model that has a photo network, by one loss for names and for boxes.

    `sets` are the names that a box may have, `steps` those of the whole training, `rate` a fraction of the learning
    rate.
    """

    def __init__(
        self, vision: VisionModel, sets: LabelSets, options: PhotoFitConfig, steps: int, rate: float = 1.0
    ) -> None:
        super().__init__()
        self.vision, self.sets, self.steps, self.rate = vision, sets, steps, rate
        self.labels = sets.folded(vision.stands)
        self.frequency = nn.Parameter(vision.head.mean.new_zeros(len(vision.labels.objects)))
        self.network.trunk.freeze(options.frozen)

    @property
    def network(self) -> PhotoNetwork:
        network = self.vision.backbone
        if not isinstance(network, PhotoNetwork):
            raise TypeError("the vision model has no photo network")
        return network

    def training_step(self, batch: PhotoBatch, number: int) -> Tensor:
        network, photos, side = self.network, len(batch.listed), batch.photos.shape[-1]
        maps = network.features(batch.photos, LEVELS if network.look is None else (*LEVELS, *FIND))
        found = network.finder(maps[: len(LEVELS)])
        low, high = batch.boxes.split(2, 1)
        boxes = torch.cat([(low + high) / 2, high - low], 1)
        where = (batch.kinds, batch.image, batch.listed)
        parts = {"names": boxes.new_zeros(())}
        if len(batch.rows):
            logits = self.vision.head(*self.label_inputs(maps[: len(LEVELS)], batch)).float()
            logits = torch.where(self.sets.of_other(batch.rows)[:, None], logits + self.frequency, logits)
            loss = self.labels.nll(logits, batch.rows).sum()
            if len(batch.taught):
                loss = loss - (batch.said * logits[batch.taught].log_softmax(1)).sum()
            parts["names"] = loss / (BOXES * photos)
        parts |= finder_loss(found, boxes, *where, side)
        if network.look is not None:
            rois = looked_at(found, boxes, batch.image)
            looked = network.look(network.look.narrowed(maps[len(LEVELS) :]), rois, side)
            parts |= look_loss(looked, rois, boxes, *where, batch.rows, self.sets)
        world = self.trainer.world_size
        if world > 1:  # their losses are averaged, and a batch is cut into parts of almost one size
            mean = self.trainer.strategy.reduce(boxes.new_tensor(float(photos)), reduce_op="mean")
            parts = {name: value * photos / mean for name, value in parts.items()}
        loss = torch.stack(list(parts.values())).sum()
        self.log_dict(parts | {"loss": loss}, batch_size=1, on_step=False, on_epoch=True, sync_dist=world > 1)
        return loss

    def label_inputs(self, maps: list[FeatureMap], batch: PhotoBatch) -> tuple[Tensor, Tensor]:
        """The label head's inputs for a batch's boxes, whose edges are moved in training: features and geometry."""
        boxes = jittered(batch.boxes, JITTER) if self.training else batch.boxes
        rows = []
        # Split at once: the gradient of a slice would be a batch of zeros for every photo.
        parts = [each.values.split(1) for each in maps]
        for k in range(len(batch.listed)):
            mine = [replace(each, values=values[k]) for each, values in zip(maps, parts, strict=True)]
            rows.append(self.vision.extractor.roi_features(mine, boxes[batch.image == k] * batch.photos.shape[-1]))
        return torch.cat(rows), box_geometry(boxes, boxes.new_ones(len(boxes), 2))

    @torch.no_grad()
    def measure_head(self, batches: Sequence[PhotoBatch]) -> None:
        """Measures the mean and scale of the label head's inputs, on a few batches."""
        rows = [self.label_inputs(self.network.features(each.photos), each)[0] for each in batches]
        self.vision.head.measure(torch.cat(rows))

    def configure_optimizers(self) -> Any:
        trunk = list(self.network.trunk.parameters())
        slow = {id(each) for each in trunk}
        rest = [each for each in self.vision.parameters() if id(each) not in slow]
        rates = [(RATE, rest), (BACKBONE_RATE, trunk), (FREQUENCY_RATE, [self.frequency])]
        return one_cycle([(rate * self.rate, weights) for rate, weights in rates], WEIGHT_DECAY, self.steps)


def finder_loss(
    found: Candidates, boxes: Tensor, kinds: Tensor, image: Tensor, listed: Tensor, side: int
) -> dict[str, Tensor]:
    """Losses "overlap" and "objectness" of a batch: means over the candidates assigned to a box, then over photos.

    Args:
        found: of B square photos.
        boxes: ``(N, 4)`` centre x, y, width, height in fractions of the photo.
        kinds, image: ``(N,)`` kind and photo of each box.
        listed: ``(B, KINDS)`` which kinds are annotated in a photo; others are ignored.
        side: of the photos in pixels.
    """
    rows, which = assigned(boxes, side)
    place, photos = image[which], len(listed)
    overlap = giou(found.boxes[place, rows], boxes[which])
    # Where two boxes are assigned to one candidate, the objectness is that of the better one.
    targets = torch.zeros_like(found.logits)
    cell = (place * targets.shape[1] + rows) * targets.shape[2] + kinds[which]
    targets = targets.flatten().scatter_reduce(0, cell, overlap.detach().clamp(0, 1), "amax").view_as(targets)
    p = found.logits.sigmoid()
    focal = (targets - p).square() * F.binary_cross_entropy_with_logits(found.logits, targets, reduction="none")
    loss = torch.where(targets > 0, focal, p.square() * unlisted(found.logits)) * listed[:, None]
    count = torch.zeros(photos).to(overlap).index_add(0, place, torch.ones_like(overlap)).clamp_min(1)
    return {
        "overlap": ((1 - overlap) / count[place]).sum() / photos,
        "objectness": (loss.sum((1, 2)) / count).sum() / photos,
    }


def unlisted(logits: Tensor) -> Tensor:
    """The loss where no box is listed, before the focus on confident ones: ``(..., KINDS)`` -> ``(..., KINDS)``."""
    p = logits[..., 1].sigmoid()
    forgiving = (1 - (1 - p).clamp_min(1e-6) ** FORGIVING) / FORGIVING
    return torch.stack([F.softplus(logits[..., 0]), forgiving], -1)


def assigned(boxes: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """boxes ``(N, 4)`` -> candidates ``(M,)`` within a photo, and the box assigned to each ``(M,)``."""
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


@torch.no_grad()
def looked_at(found: Candidates, boxes: Tensor, image: Tensor) -> Tensor:
    """Boxes to look at: ``(B, ROIS, 4)`` centre and size. `boxes` are ``(N, 4)``, centre and size, `image` ``(N,)``."""
    sure = found.logits.sigmoid().amax(-1)
    best = sure.topk(min(BEST, sure.shape[1]), 1).indices
    chosen = []
    for k in range(len(sure)):
        drawn = best[k][torch.randperm(best.shape[1])[: ROIS // 2]]
        mine, rest = boxes[image == k], ROIS - len(drawn)
        if len(mine):
            mine = mine[torch.randint(len(mine), (rest,))]
            low, high = corners(mine).split(2, 1)
            strength = torch.rand(len(mine), 1, device=mine.device) * 2 * SHAKEN
            low, high = (edge + strength * mine[:, 2:] * torch.randn_like(edge) for edge in (low, high))
            more = torch.cat([(low + high) / 2, (high - low).abs().clamp_min(0.01)], 1)
        else:
            more = found.boxes[k, best[k][torch.randint(best.shape[1], (rest,))]]
        chosen.append(torch.cat([found.boxes[k, drawn], more]))
    low, high = corners(torch.stack(chosen)).clamp(0, 1).split(2, 2)
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
) -> dict[str, Tensor]:
    """Losses "move", "fit" and "name" of a batch: means over the boxes of a photo, then over photos.

    rois ``(B, R, 4)`` and annotated boxes ``(N, 4)`` are centre and size; `rows` ``(N,)`` are those of the names that
    an annotated box may have, all else as in `finder_loss`.
    """
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
    wrong = F.binary_cross_entropy_with_logits(looked.logits, hit * reached[..., None], reduction="none")
    fit = torch.where(hit > 0, wrong, unlisted(looked.logits))
    name = sets.nll(looked.names[named], rows[which[named]]).sum() / (number * photos)
    return {"move": move.mean(), "fit": (fit * listed[:, None]).sum(-1).mean(), "name": name}


def _matched(rois: Tensor, boxes: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
    """The annotated box that each box of the second look overlaps most (N if none), and the overlap: two ``(B, R)``."""
    which = image.new_full(rois.shape[:2], len(boxes))
    overlap = rois.new_zeros(rois.shape[:2])
    for k in range(len(rois)):
        mine = (image == k).nonzero().flatten()
        if len(mine):
            a, b = corners(rois[k])[:, None], corners(boxes[mine])
            sides = torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])
            common = sides.clamp_min(0).prod(2)
            areas = rois[k, :, 2:].prod(1)[:, None] + boxes[mine, 2:].prod(1) - common
            best = (common / areas.clamp_min(1e-9)).max(1)
            which[k], overlap[k] = mine[best.indices], best.values
    return which, overlap
