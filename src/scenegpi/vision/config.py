"""What a vision model is made of, as data: every choice a field with a default that works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scenegpi.options import bounded

Layer = Literal["early", "middle", "last", "head", "find early", "find middle", "find last"]
"""Maps of a backbone, from fine to coarse: 8, 16, 32 and 32 pixels per cell; the last is the widest. The photo network
has three more, in which boxes are found."""


@dataclass(frozen=True)
class BoxFeatureConfig:
    """Which pixels describe a box, and how.

    Args:
        backbone: "efficientnet-lite0" with ImageNet weights from its package; "photo", the photo network, which finds
            boxes, too, and whose weights are the model's; "vg150-photo", the photo network of the shipped model, as it
            is; or "small", trained with the model.
        nodes: a box is described by a "crop" of the photo that goes through the backbone by itself; by RoIAlign on
            the map of the whole photo ("roi"); or by "both".
        crop_size: side of a crop in pixels.
        margin: how much of its surroundings a crop shows on each side, as a share of the box's side.
        crop_layers, roi_layers: maps whose means describe a box.
        photo_size: longer side, in pixels, of the whole photo that RoIAlign reads.
        square: that photo is stretched to a square.
        mirror: a box is described a second time, as it looks in the mirror image; the label head says the mean of what
            it makes of the two. Boxes are looked for in both.
        roi_bins: a RoI is cut into this many bins per side, each with features of its own.
        surroundings: above 0, a box is also described by its surroundings, the box grown by this share of its sides on
            each side, and by the whole photo, one bin each.
    """

    backbone: Literal["efficientnet-lite0", "photo", "vg150-photo", "small"] = "efficientnet-lite0"
    nodes: Literal["crop", "roi", "both"] = "both"
    crop_size: int = bounded(160, 32, 512)
    margin: float = bounded(0.15, 0.0, 2.0)
    crop_layers: tuple[Layer, ...] = ("middle", "head")
    roi_layers: tuple[Layer, ...] = ("middle",)
    photo_size: int = bounded(480, 32, 1024)
    square: bool = False
    mirror: bool = False
    roi_bins: int = bounded(2, 1, 4)
    surroundings: float = bounded(0.0, 0.0, 4.0)

    def __post_init__(self) -> None:
        for name in ("crop_size", "photo_size"):
            if getattr(self, name) % 32:
                raise ValueError(f"{name}: {getattr(self, name)} is not a multiple of 32")
        if (self.nodes != "roi" and not self.crop_layers) or (self.nodes != "crop" and not self.roi_layers):
            raise ValueError("crop_layers, roi_layers: at least one map must describe a box")
        if self.mirror and (self.nodes != "roi" or not self.square):
            raise ValueError("mirror: needs RoIs of a square photo")


@dataclass(frozen=True)
class HeadConfig:
    """The network from box features, and position, size and shape of the box, to a label.

    Args:
        hidden: width of its hidden layer.
        dropout, input_dropout: of the hidden layer and of the inputs.
    """

    hidden: int = bounded(256, 1, 4096)
    dropout: float = bounded(0.5, 0.0, 0.95)
    input_dropout: float = bounded(0.5, 0.0, 0.95)


@dataclass(frozen=True)
class FinderConfig:
    """Which of its candidates a photo network reports as boxes.

    Args:
        weights: sigmoid(w_0 + w_1 x_1 + ...) is the chance that there is something: x are the finder's logits of two
            kinds of things (`scenegpi.vision.finder`), then with a second look its own two, and the logarithm of the
            box's share of the photo. Missing ones are 0.
        looked: number of candidates that are looked at a second time.
        floor: least chance.
        named_floor: least chance times P(label).
        overlap: of boxes that overlap by more than this (IoU) only the best stays;
        same_label: and of those with one label that have more than this share of the smaller one in common.
        most: number of boxes that are named.
    """

    weights: tuple[float, ...] = (0.0, 1.0, 0.0, 1.0)
    looked: int = bounded(100, 1, 400)
    floor: float = bounded(0.1, 0.0, 1.0)
    named_floor: float = bounded(0.0, 0.0, 1.0)
    overlap: float = bounded(0.6, 0.0, 1.0)
    same_label: float = bounded(0.5, 0.0, 1.0)
    most: int = bounded(40, 1, 400)


@dataclass(frozen=True)
class VisionConfig:
    """A whole vision model.

    Args:
        features, head: how it names a box.
        second_look: its photo network looks at every box a second time (`scenegpi.vision.second_look`).
        everyday: this knows everyday names beyond the labels (`scenegpi.words.everyday`).
        opinions: what the label head's and the second look's count in the name of a box (`scenegpi.vision.model`).
        finder: which boxes it finds, where it has a photo network.
    """

    features: BoxFeatureConfig = BoxFeatureConfig()
    head: HeadConfig = HeadConfig()
    second_look: bool = False
    everyday: bool = False
    opinions: tuple[float, float] = (1.0, 0.0)
    finder: FinderConfig | None = None

    def __post_init__(self) -> None:
        if self.finder is not None and self.features.backbone != "photo":
            raise ValueError("finder: only the photo network finds boxes")
        if self.everyday and not self.second_look:
            raise ValueError("everyday: needs a second look")


SMALL = VisionConfig(
    features=BoxFeatureConfig(backbone="small", nodes="crop", crop_size=64),
    head=HeadConfig(hidden=128, dropout=0.2, input_dropout=0.2),
)
"""Settings that suit the small backbone."""


PHOTO = VisionConfig(
    features=BoxFeatureConfig(
        backbone="photo",
        nodes="roi",
        roi_layers=("early", "middle", "last"),
        photo_size=320,
        square=True,
        mirror=True,
        roi_bins=3,
        surroundings=0.5,
    ),
    head=HeadConfig(hidden=448, dropout=0.3, input_dropout=0.1),
    second_look=True,
    finder=FinderConfig(),
)
"""Settings that suit the photo network."""


@dataclass(frozen=True)
class FitOptions:
    """How heads are trained: AdamW with a learning rate that falls to 0 along a cosine.

    Args:
        epochs, batch, rate, weight_decay: of the training; a batch counts boxes.
        folds: number of parts that the photos are dealt into; 0 or 1 trains the model alone, without held-out
            predictions.
        seed: random seed of weights, folds and the order of the boxes.
    """

    epochs: int = bounded(20, 1, 1000)
    batch: int = bounded(256, 1, 65536)
    rate: float = bounded(2e-3, 1e-6, 1.0)
    weight_decay: float = bounded(0.01, 0.0, 10.0)
    folds: int = bounded(5, 0, 100)
    seed: int = bounded(0, 0, 2**31 - 1)


SMALL_OPTIONS = FitOptions(epochs=12, batch=64, rate=3e-3, folds=3)
"""Options that suit the small backbone, which is trained anew for each fold."""
