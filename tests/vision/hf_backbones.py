"""Small checkpoints of backbones with random weights, as transformers' own code saves them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import transformers as hf

SIZES = {"hidden_sizes": [8, 8, 16, 24], "depths": [1, 1, 1, 1]}
BACKBONES = {
    "resnet": lambda: hf.ResNetModel(hf.ResNetConfig(embedding_size=8, layer_type="basic", **SIZES)),
    "swin": lambda: hf.SwinModel(
        hf.SwinConfig(image_size=64, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=2)
    ),
    "convnext": lambda: hf.ConvNextModel(hf.ConvNextConfig(**SIZES)),
    "dinov2": lambda: hf.Dinov2Model(
        hf.Dinov2Config(hidden_size=16, num_hidden_layers=3, num_attention_heads=2, image_size=56, mlp_ratio=2)
    ),
}
MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]


def save_backbone(name: str, folder: Path) -> Path:
    torch.manual_seed(0)
    BACKBONES[name]().save_pretrained(folder)
    told = {"image_mean": MEAN, "image_std": STD, "rescale_factor": 1 / 255}
    (folder / "preprocessor_config.json").write_text(json.dumps(told))
    return folder
