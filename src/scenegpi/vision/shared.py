"""The photo network that ships in this package, for models that read its maps and train their own head.

Such a model contains no copy of the network: the weights are in the file of the shipped model `vg150-photo`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

import torch
from torch import Tensor

from scenegpi.errors import DataError
from scenegpi.vision.backbone import Backbone, FeatureMap, frozen
from scenegpi.vision.config import Layer
from scenegpi.vision.finder import LEVELS
from scenegpi.vision.network import WIDTH, PhotoNetwork

FILE = "models/shipped/vg150-photo/model.safetensors"
PREFIX = "vision.backbone."


class SharedPhotoNetwork(Backbone):
    """Has no weights of its own, so a model that uses it saves none."""

    def __init__(self) -> None:
        super().__init__()
        self.widths = dict.fromkeys(LEVELS, WIDTH)

    def features(self, images: Tensor, layers: Sequence[Layer] = LEVELS) -> list[FeatureMap]:
        return shipped_network(str(images.device)).features(images, layers)

    def fingerprint(self) -> str:
        return shipped_network().fingerprint()


@cache
def shipped_network(device: str = "cpu") -> PhotoNetwork:
    """The network with the shipped weights, read once; DataError if they are missing."""
    from safetensors import safe_open

    path = Path(str(files("scenegpi"))) / FILE
    if not path.is_file():
        raise DataError(path, "missing: this package ships without its photo network")
    network = PhotoNetwork()
    with safe_open(path, framework="pt") as file:
        state = {name: file.get_tensor(PREFIX + name).float() for name in network.state_dict()}
    network.load_state_dict(state)
    return frozen(network).to(torch.device(device))  # type: ignore[return-value]
