"""Pictures -> feature maps, behind one small interface, so that another backbone is one more class.

    maps = backbone.features(images, ("early", "middle", "last"))      # images (B, 3, H, W), values 0 to 255

A map knows the positions of its cells in the picture: cell k has its centre at `first + k * stride` pixels.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from scenegpi.vision.config import HF, BoxFeatureConfig, Layer


@dataclass(frozen=True)
class FeatureMap:
    """values ``(B, c, h, w)``; the cell (r, k) is centred on pixel ``(first + k * stride, first + r * stride)``."""

    values: Tensor
    stride: int
    first: float

    def picture(self, k: int) -> FeatureMap:
        """The map of one picture: ``(1, c, h, w)``."""
        return FeatureMap(self.values[k : k + 1], self.stride, self.first)


class Backbone(nn.Module):
    """Layers from fine to coarse: "early" (8 pixels per cell), "middle" (16), "last" (32)."""

    widths: dict[Layer, int]

    @abstractmethod
    def features(self, images: Tensor, layers: Sequence[Layer]) -> list[FeatureMap]:
        """images ``(B, 3, H, W)`` red, green, blue from 0 to 255, H and W multiples of 32 -> one map for each layer."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Changes whenever a weight does; part of the key under which box features are cached."""


def load_backbone(config: BoxFeatureConfig, looked: int = 0) -> Backbone:
    """A new backbone; `looked` is the number of names of a second look."""
    if config.finds:
        from scenegpi.vision.hf_trunk import read_architecture
        from scenegpi.vision.network import PhotoNetwork

        other = config.backbone.startswith(HF)
        return PhotoNetwork(looked, config.architecture or (read_architecture(config.backbone[3:]) if other else ""))
    if config.backbone == "vg150-photo":
        from scenegpi.vision.shared import SharedPhotoNetwork

        return SharedPhotoNetwork()
    from scenegpi.vision.efficientnet import EfficientNetLite0

    return EfficientNetLite0()


def frozen(module: nn.Module) -> nn.Module:
    """The module for inference only: no gradients, weights laid out for fast convolutions on a CPU."""
    module.eval().requires_grad_(False)
    return module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
