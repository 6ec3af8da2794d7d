"""Backbones of transformers (extra `[hf]`) under the photo network: ResNet, Swin, ConvNeXt, DINOv2, ...

    backbone = "hf:FOLDER"        # a checkpoint: config.json, model.safetensors, preprocessor_config.json

Those with stages give their maps at 8, 16 and 32 pixels per cell. A vision transformer has one map: the photo is
resized so that a patch covers 16 of its pixels, and the map is made finer and coarser (a simple pyramid, Li et al.
2022). Once trained, the weights are part of the model, and its `architecture` replaces the folder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scenegpi.errors import DataError, OptionError, require
from scenegpi.files import read_object
from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.config import Layer
from scenegpi.vision.detectors.hf import quiet

KINDS = ("resnet", "swin", "swinv2", "convnext", "convnextv2", "dinov2", "dinov2_with_registers")
STRIDES: dict[Layer, int] = {"early": 8, "middle": 16, "last": 32}
LEFT_OUT = ("id2label", "label2id", "architectures", "dtype", "torch_dtype", "transformers_version", "_name_or_path")
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's normalisation, where a checkpoint does not give its own."""
LARGEST, MOST_BLOCKS, MOST_WEIGHTS = 1 << 16, 128, 1 << 30
"""Limits for a model from an untrusted folder: any number, blocks, weights."""


def read_architecture(folder: str) -> str:
    """The architecture of a checkpoint as JSON; DataError if it is not supported."""
    path = Path(folder) / "config.json"
    values = {key: value for key, value in read_object(path).items() if key not in LEFT_OUT}
    try:
        HFTrunk(json.dumps(values))
    except OptionError as error:
        raise DataError(path, str(error)) from None
    return json.dumps(values)


class HFTrunk(nn.Module):
    """A backbone with random weights; `start` gives it those of a checkpoint.

    Args:
        architecture: the result of `read_architecture`.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, architecture: str) -> None:
        super().__init__()
        require("a backbone of transformers", "hf", "transformers")
        import transformers

        try:
            config = _config(transformers, architecture)
            with torch.device("meta"):
                weights = sum(each.numel() for each in transformers.AutoBackbone.from_config(config).parameters())
            if weights > MOST_WEIGHTS:
                raise ValueError(f"{weights:,} weights are too many")
            self.net = transformers.AutoBackbone.from_config(config)
        except Exception as error:  # an invalid configuration raises errors of many kinds
            said = " ".join(str(error).split())
            raise OptionError(f"model.vision.features.architecture: cannot be built ({said:.200})") from None
        self.patch = None if hasattr(config, "depths") else int(config.patch_size)
        channels = list(self.net.channels)
        self.widths: dict[Layer, int] = dict(zip(STRIDES, channels * (3 // len(channels)), strict=True))
        # A convolution padded on both sides centres its cells on pixels, an unpadded one between them.
        first = next(each for each in self.net.modules() if isinstance(each, nn.Conv2d))
        self.on_pixels = first.padding not in (0, (0, 0))
        self.register_buffer("mean", 255 * torch.tensor(MEAN)[:, None, None])
        self.register_buffer("std", 255 * torch.tensor(STD)[:, None, None])
        for module in self.net.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.track_running_stats = False  # its statistics are frozen: batches are small
            for name, value in module.named_buffers(recurse=False):
                if not value.is_floating_point():  # tables that follow from the architecture
                    module.register_buffer(name, value, persistent=False)

    def train(self, mode: bool = True) -> HFTrunk:
        super().train(mode)
        for module in self.net.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self

    def maps(self, images: Tensor, layers: Sequence[Layer]) -> list[FeatureMap]:
        """images ``(B, 3, H, W)`` from 0 to 255 -> a map for each layer."""
        x = (images.float() - self.mean) / self.std
        height, width = images.shape[-2:]
        if self.patch is not None:
            size = (height // 16 * self.patch, width // 16 * self.patch)
            x = F.interpolate(x, size=size, mode="bilinear", antialias=True)
        maps = list(self.net(x).feature_maps)
        if self.patch is not None:
            (middle,) = maps
            maps = [F.interpolate(middle, scale_factor=2.0, mode="bilinear"), middle, F.avg_pool2d(middle, 2)]
        found = {
            name: FeatureMap(values, stride, self.first(stride))
            for (name, stride), values in zip(STRIDES.items(), maps, strict=True)
        }
        return [found[layer] for layer in layers]

    def first(self, stride: int) -> float:
        """Position of the first cell."""
        return 0.5 if self.on_pixels else stride / 2

    def parts(self) -> list[nn.Module]:
        """The parts that may be frozen: the stages or blocks, from the first."""
        return list(next(each for each in self.net.modules() if isinstance(each, nn.ModuleList)))

    def freeze(self, stages: int) -> None:
        """Freezes the first `stages` sevenths: with 0 all is trained, with 7 nothing."""
        blocks = self.parts()
        last = round(stages * len(blocks) / 7)
        inner = {id(each) for block in blocks[last:] for each in block.parameters()}
        for each in self.net.parameters():
            each.requires_grad_(stages < 7 and (stages == 0 or id(each) in inner))

    def start(self, folder: str) -> None:
        """The weights and the normalisation of a checkpoint (in place); DataError if it does not hold them."""
        from transformers.utils import logging

        try:
            with quiet(logging):
                how = {"local_files_only": True, "use_safetensors": True, "output_loading_info": True}
                net, told = type(self.net).from_pretrained(folder, config=self.net.config, **how)
        except Exception as error:  # of many kinds: from files and packages
            raise DataError(folder, f"cannot be loaded ({' '.join(str(error).split()):.200})") from None
        # The norms of single stages are new if the checkpoint was trained to classify whole pictures.
        lost = [name for name in sorted(told["missing_keys"]) if "hidden_states_norms" not in name]
        if lost:
            raise DataError(folder, f"{len(lost)} of its weights are missing ({lost[0]:.80}, ...)")
        self.net.load_state_dict(net.float().state_dict(), strict=False)
        file = Path(folder) / "preprocessor_config.json"
        if file.is_file():
            values = read_object(file)
            scale = 1 / float(values.get("rescale_factor") or 1 / 255)
            for buffer, name, usual in ((self.mean, "image_mean", MEAN), (self.std, "image_std", STD)):
                buffer.copy_(scale * torch.tensor(values.get(name) or usual)[:, None, None])


def _config(transformers: Any, architecture: str) -> Any:
    values = json.loads(architecture)
    if not isinstance(values, dict) or values.get("model_type") not in KINDS:
        found = values.get("model_type") if isinstance(values, dict) else type(values).__name__
        raise ValueError(f"model_type: {found!r:.40} is not one of {', '.join(KINDS)}")
    for key, value in values.items():
        numbers = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, int)]
        blocks = sum(numbers) > MOST_BLOCKS if key in ("depths", "num_hidden_layers") else len(numbers) > MOST_BLOCKS
        if blocks or any(abs(each) > LARGEST for each in numbers):
            raise ValueError(f"{key:.40}: too large")
    values = {key: value for key, value in values.items() if key not in ("out_features", "out_indices")}
    config = transformers.AutoConfig.for_model(**values)
    config.out_features = config.stage_names[-3:] if hasattr(config, "depths") else config.stage_names[-1:]
    return config
