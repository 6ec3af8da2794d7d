"""The photo network and its label head as a Lightning module: one loss for names and for boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import lightning as L
import torch
from torch import Tensor, nn

from scenegpi.training.finder_loss import STRIDES, finder_loss
from scenegpi.training.photo_batches import PhotoBatch, jittered
from scenegpi.training.photo_config import PhotoFitConfig
from scenegpi.training.photo_sets import LabelSets
from scenegpi.training.second_look_loss import look_loss, looked_at
from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.config import Layer
from scenegpi.vision.finder import FIND, LEVELS
from scenegpi.vision.labels import box_geometry
from scenegpi.vision.model import VisionModel
from scenegpi.vision.network import PhotoNetwork

JITTER = 0.12
"""By how much the edges of a box are moved before its name is asked for, as a share of its sides."""
WARMUP = 0.1
FIRST = 4
"""Batches on which the label head's inputs are measured."""
BOXES = 8
"""About as many boxes are named per photo."""


class PhotoModule(L.LightningModule):
    """Trains a vision model on whole photos.

    Args:
        vision: with a photo network.
        sets: which names a box may have.
        options: how.
        steps: of the whole training; the rate rises for a tenth of them and falls to 0 along a cosine.
    """

    def __init__(self, vision: VisionModel, sets: LabelSets, options: PhotoFitConfig, steps: int) -> None:
        super().__init__()
        self.vision, self.sets, self.options, self.steps = vision, sets, options, max(steps, 11)
        network, head = self.network, vision.head
        network.trunk.freeze(options.frozen)
        names = options.names > 0
        self.labels = sets.folded(vision.stands)
        for part, trained in (
            (network.finding, options.look > 0),
            (network.look, options.look > 0),
            (network.finder, options.finder > 0),
            (network.naming, names or options.finder > 0),
            (head.network, names),
        ):
            if part is not None:
                part.requires_grad_(trained)

    @property
    def network(self) -> PhotoNetwork:
        network = self.vision.backbone
        if not isinstance(network, PhotoNetwork):
            raise TypeError("the vision model has no photo network")
        return network

    def training_step(self, batch: PhotoBatch, number: int) -> Tensor:
        options, photos = self.options, len(batch.listed)
        named, looked = options.names > 0 and len(batch.rows) > 0, options.look > 0 and self.network.look is not None
        found = looked or options.finder > 0
        layers = (*(LEVELS if named or found else ()), *(FIND if looked else ()))
        maps = self.maps(batch, layers) if layers else []
        parts: dict[str, Tensor] = {}
        if named:
            logits = self.vision.head(*self.label_inputs(maps[: len(LEVELS)], batch)).float()
            parts["names"] = options.names * self.labels.nll(logits, batch.rows).sum() / (BOXES * photos)
        if found:
            parts |= self.finding_losses(maps, batch)
        world = self.trainer.world_size
        if world > 1:  # their losses are averaged, and a batch is cut into parts of almost one size
            mean = self.trainer.strategy.reduce(batch.boxes.new_tensor(float(photos)), reduce_op="mean")
            parts = {name: value * photos / mean for name, value in parts.items()}
        loss = (
            torch.stack(list(parts.values())).sum()
            if parts
            else self.vision.head.mean.new_zeros((), requires_grad=True)
        )
        told = {"names": 0.0} if options.names > 0 else {}  # a photo without boxes: all processes tell the same
        self.log_dict(told | parts | {"loss": loss}, batch_size=1, on_step=False, on_epoch=True, sync_dist=world > 1)
        return loss

    def maps(self, batch: PhotoBatch, layers: Sequence[Layer]) -> list[FeatureMap]:
        """Maps of the necks; what the backbone says of the photos may have been kept."""
        if not batch.trunk:
            return self.network.features(batch.photos, layers)
        trunk = [
            FeatureMap(values.float(), stride, self.network.trunk.first(stride))
            for values, stride in zip(batch.trunk, STRIDES.values(), strict=True)
        ]
        return self.network.necks(trunk, layers)

    def finding_losses(self, maps: list[FeatureMap], batch: PhotoBatch) -> dict[str, Tensor]:
        """The losses of finder and second look, weighted."""
        options, network, side = self.options, self.network, batch.side
        low, high = batch.boxes.split(2, 1)
        boxes = torch.cat([(low + high) / 2, high - low], 1)
        where = (batch.kinds, batch.image, batch.listed)
        found = network.finder(maps[: len(LEVELS)])
        losses: list[tuple[float, dict[str, Tensor]]] = []
        if options.finder > 0:
            losses.append((options.finder, finder_loss(found, boxes, *where, side)._asdict()))
        if len(maps) > len(LEVELS) and network.look is not None:
            rois = looked_at(found, boxes, batch.image)
            looked = network.look(network.look.narrowed(maps[len(LEVELS) :]), rois, side)
            losses.append((options.look, look_loss(looked, rois, boxes, *where, batch.rows, self.sets)._asdict()))
        return {name: weight * value for weight, some in losses for name, value in some.items()}

    def label_inputs(self, maps: list[FeatureMap], batch: PhotoBatch) -> tuple[Tensor, Tensor]:
        """What the label head reads of a batch's boxes, in training with their edges moved: features and geometry."""
        boxes = jittered(batch.boxes, JITTER) if self.training else batch.boxes
        side = batch.side
        extractor, rows = self.vision.extractor, []
        # Split at once: the gradient of a slice would be a batch of zeros for every photo.
        parts = [each.values.split(1) for each in maps]
        for k in range(len(batch.listed)):
            mine = [replace(each, values=values[k]) for each, values in zip(maps, parts, strict=True)]
            rows.append(extractor.roi_features(mine, boxes[batch.image == k] * side))
        return torch.cat(rows), box_geometry(boxes, boxes.new_ones(len(boxes), 2))

    def configure_optimizers(self) -> Any:
        options = self.options
        slow = {id(each) for each in self.network.trunk.parameters()}
        groups, rates = [], []
        for tuned in (False, True):
            for decayed in (False, True):
                chosen = [
                    each
                    for each in self.parameters()
                    if each.requires_grad and (id(each) in slow) == tuned and (each.dim() > 1) == decayed
                ]
                groups.append({"params": chosen, "weight_decay": options.weight_decay if decayed else 0.0})
                rates.append(options.backbone_rate if tuned else options.rate)
        optimiser = torch.optim.AdamW(groups)
        falling = torch.optim.lr_scheduler.OneCycleLR(optimiser, rates, total_steps=self.steps, pct_start=WARMUP)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": falling, "interval": "step"}}


def measure_head(vision: VisionModel, batches: list[PhotoBatch], module: PhotoModule) -> None:
    """Sets what the label head standardises its inputs by, on a few batches (in place)."""
    with torch.no_grad():
        rows = [module.label_inputs(module.network.features(each.photos), each)[0] for each in batches]
        vision.head.measure(torch.cat(rows))


def mean_weights(models: list[nn.Module]) -> dict[str, Tensor]:
    """The mean of the weights of models of one shape that started alike."""
    states = [model.state_dict() for model in models]
    return {name: torch.stack([state[name].float() for state in states]).mean(0) for name in states[0]}
