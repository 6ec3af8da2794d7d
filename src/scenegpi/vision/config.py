"""The settings of a vision model, as data: every choice a field with a default that works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scenegpi.options import bounded

Layer = Literal["early", "middle", "last", "find early", "find middle", "find last"]
"""Maps of a backbone, from fine to coarse: 8, 16 and 32 pixels per cell. The photo network has three more, in which
boxes are found."""
BACKBONES, HF = ("efficientnet-lite0", "photo", "vg150-photo"), "hf:"


@dataclass(frozen=True)
class BoxFeatureConfig:
    """How pixels describe a box: by RoIAlign on three maps of the whole photo, stretched to a square.

    Args:
        backbone: "efficientnet-lite0" with ImageNet weights from its package; "photo", the photo network, which finds
            boxes, too, and whose weights are the model's; "hf:FOLDER", the same with a backbone of transformers from a
            checkpoint on this machine; or "vg150-photo", the photo network of the shipped model, as it is.
        architecture: of a backbone of transformers, as JSON: what a trained model has in place of the folder.
        photo_size: side of the stretched photo in pixels.
        mirror: a box is described a second time, in the mirror image, and the label head averages its two outputs.
            Boxes are sought in both.
        roi_bins: a box is cut into this many bins per side, each with features of its own.
        surroundings: above 0, a box is also described by its surroundings, the box grown by this fraction of its sides
            on each side, and by the whole photo, one bin each.
    """

    backbone: str = "efficientnet-lite0"
    architecture: str = ""
    photo_size: int = bounded(320, 32, 1024)
    mirror: bool = True
    roi_bins: int = bounded(2, 1, 4)
    surroundings: float = bounded(0.5, 0.0, 4.0)

    def __post_init__(self) -> None:
        if self.photo_size % 32:
            raise ValueError(f"photo_size: {self.photo_size} is not a multiple of 32")
        if self.backbone not in BACKBONES and not self.backbone.startswith(HF):
            raise ValueError(f"backbone: {self.backbone!r:.40} is not one of {', '.join(BACKBONES)}, hf:FOLDER")

    @property
    def finds(self) -> bool:
        """Whether the backbone is a photo network of the model's own, which finds boxes."""
        return self.backbone == "photo" or self.backbone.startswith(HF)


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
    """Which candidates a photo network reports as boxes.

    Args:
        weights: sigmoid(w_0 + w_1 x_1 + ...) is the chance that there is an object: x is the finder's logit of the
            likelier of two kinds of things (`scenegpi.vision.finder`), then with a second look its own, and the
            logarithm of the box's fraction of the photo. Missing ones are 0.
        looked: number of candidates for the second look.
        floor: minimum chance.
        named_floor: minimum of chance times P(label).
        overlap: of boxes that overlap by more than this (IoU) only the best is kept;
        same_label: and of those with the same label that share more than this fraction of the smaller one.
        most: maximum number of boxes that are named.
    """

    weights: tuple[float, ...] = (0.0, 1.0, 1.0)
    looked: int = bounded(100, 1, 400)
    floor: float = bounded(0.1, 0.0, 1.0)
    named_floor: float = bounded(0.0, 0.0, 1.0)
    overlap: float = bounded(0.6, 0.0, 1.0)
    same_label: float = bounded(0.5, 0.0, 1.0)
    most: int = bounded(40, 1, 400)

    def __post_init__(self) -> None:
        if len(self.weights) > 4:  # older settings had 6, one per kind, with another meaning
            raise ValueError(f"weights: {len(self.weights)} numbers, expected at most 4")


@dataclass(frozen=True)
class VisionConfig:
    """A whole vision model.

    Args:
        features, head: how it names a box.
        second_look: whether its photo network reads every box a second time (`scenegpi.vision.second_look`).
        everyday: whether the second look knows everyday names beyond the labels (`scenegpi.words.everyday`).
        finder: which boxes it finds, if it has a photo network.
    """

    features: BoxFeatureConfig = BoxFeatureConfig()
    head: HeadConfig = HeadConfig()
    second_look: bool = False
    everyday: bool = False
    finder: FinderConfig | None = None

    def __post_init__(self) -> None:
        if self.finder is not None and not self.features.finds:
            raise ValueError("finder: only the photo network finds boxes")
        if self.everyday and not self.second_look:
            raise ValueError("everyday: needs a second look")
