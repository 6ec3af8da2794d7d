"""The photo network and its label head as a Lightning module: one loss for names and for boxes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import lightning as L
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scenegpi.training.finder_loss import finder_loss
from scenegpi.training.photo_batches import PhotoBatch, jittered
from scenegpi.training.photo_config import PhotoFitConfig
from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.labels import box_geometry
from scenegpi.vision.model import VisionModel
from scenegpi.vision.network import PhotoNetwork

JITTER = 0.12
"""By how much the edges of a box are moved before its name is asked for, as a share of its sides."""
WARMUP = 0.1
FIRST = 4
"""Batches on which the label head's inputs are measured."""


class PhotoModule(L.LightningModule):
    """Trains a vision model on whole photos.

    Args:
        vision: with a photo network.
        options: how.
        steps: of the whole training; the rate rises for a tenth of them and falls to 0 along a cosine.
        complete: every thing of the given labels has a box.
    """

    def __init__(self, vision: VisionModel, options: PhotoFitConfig, steps: int, complete: bool) -> None:
        super().__init__()
        self.vision, self.options, self.steps, self.complete = vision, options, max(steps, 11), complete
        self.network.freeze(options.frozen)

    @property
    def network(self) -> PhotoNetwork:
        network = self.vision.backbone
        if not isinstance(network, PhotoNetwork):
            raise TypeError("the vision model has no photo network")
        return network

    def training_step(self, batch: PhotoBatch, number: int) -> Tensor:
        maps = self.network.features(batch.photos)
        loss = batch.boxes.new_zeros(())
        if len(batch.labels):
            logits = self.vision.head(*self.label_inputs(maps, batch))
            names = F.cross_entropy(logits, batch.labels, label_smoothing=self.options.smoothing)
            self.log("names", names)
            loss = loss + names
        centred = torch.cat([(batch.boxes[:, :2] + batch.boxes[:, 2:]) / 2, batch.boxes[:, 2:] - batch.boxes[:, :2]], 1)
        overlap, objectness = finder_loss(
            self.network.finder(maps), centred, batch.image, batch.photos.shape[-1], self.complete
        )
        self.log("overlap", overlap)
        self.log("objectness", objectness)
        loss = loss + self.options.finder * (overlap + objectness)
        self.log("loss", loss)
        return loss

    def label_inputs(self, maps: list[FeatureMap], batch: PhotoBatch) -> tuple[Tensor, Tensor]:
        """What the label head reads of a batch's boxes, in training with their edges moved: features and geometry."""
        boxes = jittered(batch.boxes, JITTER) if self.training else batch.boxes
        side = batch.photos.shape[-1]
        extractor, rows = self.vision.extractor, []
        # Split at once: the gradient of a slice would be a batch of zeros for every photo.
        parts = [each.values.split(1) for each in maps]
        for k in range(len(batch.photos)):
            mine = [replace(each, values=values[k]) for each, values in zip(maps, parts, strict=True)]
            rows.append(extractor.roi_features(mine, boxes[batch.image == k] * side))
        return torch.cat(rows), box_geometry(boxes, torch.ones(len(boxes), 2, dtype=torch.float64))

    def configure_optimizers(self) -> Any:
        options = self.options
        slow = {id(each) for each in self.network.lite0.parameters()}
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
