"""Pictures -> feature maps, behind one small interface, so that another backbone is one more class.

    maps = backbone.features(images, ("middle", "last"))      # images (B, 3, H, W), values 0 to 255

A map knows where its cells lie in the picture: cell k has its centre at `first + k * stride` pixels.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scenegpi.vision.config import Layer


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
    """Layers from fine to coarse: "early" (8 pixels per cell), "middle" (16), "last" (32), "head" (32, widest)."""

    widths: dict[Layer, int]

    @abstractmethod
    def features(self, images: Tensor, layers: Sequence[Layer] = ("head",)) -> list[FeatureMap]:
        """images ``(B, 3, H, W)`` red, green, blue from 0 to 255, H and W multiples of 32 -> one map for each layer."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Changes whenever a weight does; part of the key under which box features are cached."""


class SmallCNN(Backbone):
    """About 120,000 weights, trained from scratch and saved with the model.

    Five steps of a 3 x 3 convolution with stride 2, each followed by a depthwise and a pointwise one, with group
    normalisation, which does not depend on the other pictures of a batch.
    """

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        sizes = [width, width * 2, width * 3, width * 4, width * 6]
        self.widths = {"early": sizes[2], "middle": sizes[3], "last": sizes[4], "head": sizes[4]}
        self.steps = nn.ModuleList(_Step(a, b) for a, b in zip([3, *sizes], sizes, strict=False))

    def features(self, images: Tensor, layers: Sequence[Layer] = ("head",)) -> list[FeatureMap]:
        x = images.float() / 127.5 - 1
        found: dict[Layer, FeatureMap] = {}
        names: tuple[Layer | None, ...] = (None, None, "early", "middle", "last")
        for k, (name, step) in enumerate(zip(names, self.steps, strict=True), 1):
            x = step(x)
            if name is not None:
                found[name] = FeatureMap(x, 2**k, 0.5)  # padded by 1 on each side, a cell sits on pixel 2 k of the last
        found["head"] = found["last"]
        return [found[layer] for layer in layers]

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name, value in sorted(self.state_dict().items()):
            digest.update(f"{name} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().numpy().tobytes())
        return f"small {digest.hexdigest()}"


class _Step(nn.Module):
    """Half the size, then a depthwise and a pointwise convolution."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.down = nn.Conv2d(inputs, outputs, 3, 2, 1, bias=False)
        self.depth = nn.Conv2d(outputs, outputs, 3, 1, 1, groups=outputs, bias=False)
        self.point = nn.Conv2d(outputs, outputs, 1, bias=False)
        self.norms = nn.ModuleList(nn.GroupNorm(outputs // 8, outputs) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norms[0](self.down(x)))
        return F.relu(x + self.norms[1](self.point(self.depth(x))))


def padded(image: Tensor, multiple: int = 32) -> Tensor:
    """image ``(3, H, W)`` with its last row and column repeated until the sides are multiples of `multiple`."""
    height, width = image.shape[-2:]
    below, right = -height % multiple, -width % multiple
    if not below and not right:
        return image
    return F.pad(image[None].float(), (0, right, 0, below), mode="replicate")[0].to(image.dtype)


def load_backbone(name: str, looked: int = 0) -> Backbone:
    """A new backbone by its name in `BoxFeatureConfig`; `looked` is the number of names of a second look."""
    if name == "small":
        return SmallCNN()
    if name == "photo":
        from scenegpi.vision.network import PhotoNetwork

        return PhotoNetwork(looked)
    if name == "vg150-photo":
        from scenegpi.vision.shared import SharedPhotoNetwork

        return SharedPhotoNetwork()
    from scenegpi.vision.efficientnet import EfficientNetLite0

    return EfficientNetLite0()


def frozen(module: nn.Module) -> nn.Module:
    """The module for reading only: no gradients, weights laid out for fast convolutions on a CPU."""
    module.eval().requires_grad_(False)
    return module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
