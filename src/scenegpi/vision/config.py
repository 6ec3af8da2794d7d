"""What a vision model is made of, as data: every choice a field with a default that works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scenegpi.options import bounded

Layer = Literal["early", "middle", "last", "head"]
"""Maps of a backbone, from fine to coarse: 8, 16, 32 and 32 pixels a cell; the last is the widest."""


@dataclass(frozen=True)
class LookConfig:
    """How boxes, and pairs of them, are looked at.

    Args:
        backbone: "efficientnet-lite0" with ImageNet weights from its package, or "small", trained with the model.
        nodes: a box is looked at as a "crop" of the photo that goes through the backbone by itself; by RoIAlign on
            the map of the whole photo ("roi"); or "both".
        crop_size: side of a crop in pixels.
        margin: how much of its surroundings a crop shows, in sides of the box, on each side.
        square: crops show a square around the box, so that nothing is stretched; else the box is stretched to one.
        crop_layers, roi_layers: maps whose means describe a box.
        flip: a crop is looked at in the mirror as well, and the two are averaged.
        photo_size: longer side, in pixels, of the whole photo as the backbone sees it.
        roi_bins: a RoI is cut into so many bins a side, each described by itself.
        scene: the mean over the whole photo is a part of every box's look.
        pair_layers: maps whose means over the union of two boxes describe the pair.
        mask_size: both boxes are drawn into their union with so many cells a side; 0 leaves it out.
    """

    backbone: Literal["efficientnet-lite0", "small"] = "efficientnet-lite0"
    nodes: Literal["crop", "roi", "both"] = "both"
    crop_size: int = bounded(160, 32, 512)
    margin: float = bounded(0.15, 0.0, 2.0)
    square: bool = False
    crop_layers: tuple[Layer, ...] = ("middle", "head")
    roi_layers: tuple[Layer, ...] = ("middle",)
    flip: bool = False
    photo_size: int = bounded(480, 32, 1024)
    roi_bins: int = bounded(2, 1, 4)
    scene: bool = False
    pair_layers: tuple[Layer, ...] = ("last",)
    mask_size: int = bounded(8, 0, 16)

    def __post_init__(self) -> None:
        for name in ("crop_size", "photo_size"):
            if getattr(self, name) % 32:
                raise ValueError(f"{name}: {getattr(self, name)} is no multiple of 32")
        if (self.nodes != "roi" and not self.crop_layers) or (self.nodes != "crop" and not self.roi_layers):
            raise ValueError("crop_layers, roi_layers: a box needs a map to be looked at")


@dataclass(frozen=True)
class HeadConfig:
    """The network from the look of a box to its label.

    Args:
        hidden: width of its hidden layer; 0 for none.
        layout: place, size and shape of the box among the inputs.
        dropout, input_dropout: of the hidden layer and of the inputs.
    """

    hidden: int = bounded(256, 0, 4096)
    layout: bool = True
    dropout: float = bounded(0.5, 0.0, 0.95)
    input_dropout: float = bounded(0.5, 0.0, 0.95)


@dataclass(frozen=True)
class VisionConfig:
    """A whole vision model."""

    looks: LookConfig = LookConfig()
    head: HeadConfig = HeadConfig()


SMALL = VisionConfig(
    looks=LookConfig(backbone="small", nodes="crop", crop_size=64, photo_size=256),
    head=HeadConfig(hidden=128, dropout=0.2, input_dropout=0.2),
)
"""Settings that suit the small backbone."""


@dataclass(frozen=True)
class FitOptions:
    """How heads are trained: AdamW with a rate that falls to 0 along a cosine.

    Args:
        epochs, batch, rate, weight_decay: of the training.
        smoothing: of the labels.
        folds: the photos are dealt into so many; 0 or 1 trains the model alone, without held-out predictions.
        seed: of weights, folds and the order of the boxes.
    """

    epochs: int = bounded(20, 1, 1000)
    batch: int = bounded(256, 1, 65536)
    rate: float = bounded(2e-3, 1e-6, 1.0)
    weight_decay: float = bounded(0.01, 0.0, 10.0)
    smoothing: float = bounded(0.0, 0.0, 0.5)
    folds: int = bounded(5, 0, 100)
    seed: int = bounded(0, 0, 2**31 - 1)


SMALL_OPTIONS = FitOptions(epochs=12, batch=64, rate=3e-3, folds=3)
"""Options that suit the small backbone, which is trained anew for each fold."""
