"""What training the photo network costs, from counted operations: nothing is trained, and no weight is read.

    python tools/photo_cost.py [--photos 103000] [--rate 40]

Operations (a multiplication and an addition are two) of one pass of a photo through backbone, necks and finder, counted
by torch on tensors without values; a training step counts three times as many. Hours are those of the recipe
vg150-photo-large: each half for `epochs`, all photos for `whole_epochs`, at `--rate` TFLOP/s per GPU, which is an
assumption, not a measurement. The backbones of transformers are built from their published sizes.
"""

from __future__ import annotations

import argparse
import json

import torch
from torch.utils.flop_counter import FlopCounterMode

from scenegpi.training import find_recipe, read_config
from scenegpi.vision.finder import FIND, LEVELS
from scenegpi.vision.network import PhotoNetwork

BACKBONES = {
    "EfficientNet-Lite0": "",
    "ResNet-50": {"model_type": "resnet", "depths": [3, 4, 6, 3], "hidden_sizes": [256, 512, 1024, 2048]},
    "Swin-T": {"model_type": "swin", "embed_dim": 96, "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24]},
    "ConvNeXt-T": {"model_type": "convnext", "depths": [3, 3, 9, 3], "hidden_sizes": [96, 192, 384, 768]},
    "DINOv2-S": {"model_type": "dinov2", "hidden_size": 384, "num_attention_heads": 6, "image_size": 518},
}


def counted(architecture: str, side: int) -> tuple[float, float]:
    """Millions of weights, and billions of operations of one photo."""
    with torch.device("meta"), torch.no_grad():
        network = PhotoNetwork(150, architecture).eval()
        with FlopCounterMode(display=False) as counter:
            maps = network.features(torch.empty(1, 3, side, side), (*LEVELS, *FIND))
            network.finder(maps[len(LEVELS) :])
    return sum(each.numel() for each in network.parameters()) / 1e6, counter.get_total_flops() / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=57_723 + 45_000, help="own photos, and those of COCO")
    parser.add_argument("--rate", type=float, default=40.0, help="TFLOP/s that a GPU is assumed to reach")
    args = parser.parse_args()
    photo = read_config(find_recipe("vg150-photo-large"), {"data": {"path": "VG150"}}).photo
    passes = photo.epochs + photo.whole_epochs  # two halves of the photos are one pass
    print(
        f"{'backbone':20} {'M weights':>10} {'GFLOP at 320':>13} {'at 640':>8} {'EFLOP in all':>13} {'GPU hours':>10}"
    )
    for name, architecture in BACKBONES.items():
        text = json.dumps(architecture) if architecture else ""
        weights, large = counted(text, 640)
        whole = 3 * large * 1e9 * args.photos * passes
        small = counted(text, 320)[1]
        hours = whole / (args.rate * 1e12) / 3600
        print(f"{name:20} {weights:10.1f} {small:13.1f} {large:8.1f} {whole / 1e18:13.3f} {hours:10.1f}")


if __name__ == "__main__":
    main()
