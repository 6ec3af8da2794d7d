"""What boxes, and pairs of boxes, look like: photo and boxes -> one vector for each.

A box is described by means over its crop or RoI, a pair by means over the union of its two boxes and by both boxes
drawn into that union. Pairs are all ordered ones, sorted by subject, then object, as in a `SceneBatch`. A new order of
the boxes gives the same vectors in that order. Crops and RoIs are worked off in chunks, so 500 boxes need hardly more
memory than their vectors.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from scenegpi.features.batch import complete_pairs
from scenegpi.options import plain
from scenegpi.vision.backbone import Backbone, FeatureMap
from scenegpi.vision.config import LookConfig
from scenegpi.vision.crops import clipped, cut_crops, shrink, with_margin
from scenegpi.vision.photos import Photo
from scenegpi.vision.roi import box_masks, roi_align
from scenegpi.vision.threads import one_thread

VERSION = 1
"""Raised when the same settings come to mean other numbers, so that old caches are not read."""
CROP_CHUNK = 16
ROI_CHUNK = 512
PAIR_SAMPLES = 6
FEW_BOXES = 32
"""Up to so many boxes a photo is looked at by one thread."""
LARGEST = 60_000.0


@dataclass(frozen=True)
class Looks:
    """nodes ``(N, d)`` of the boxes and pairs ``(E, e)`` of the ordered pairs, both in half precision."""

    nodes: Tensor
    pairs: Tensor

    def __len__(self) -> int:
        """Number of boxes."""
        return len(self.nodes)


class LookExtractor:
    """Looks at photos through a backbone.

    Args:
        config: what to look at.
        backbone: with its weights; it is only read.
        device: where the backbone's weights are; looks come back to the CPU.
    """

    def __init__(self, config: LookConfig, backbone: Backbone, device: torch.device | str = "cpu") -> None:
        self.config, self.backbone, self.device = config, backbone, device
        widths = backbone.widths
        crop = sum(widths[layer] for layer in config.crop_layers) if config.nodes != "roi" else 0
        roi = sum(widths[layer] for layer in config.roi_layers)
        by_roi = roi * config.roi_bins**2 if config.nodes != "crop" else 0
        self.node_width = crop + by_roi + (widths["head"] if config.scene else 0)
        self.pair_width = sum(widths[layer] for layer in config.pair_layers) + 2 * config.mask_size**2

    def key(self) -> str:
        """Names everything that the numbers depend on, besides photo and boxes."""
        parts = [VERSION, plain(self.config), self.backbone.fingerprint()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @torch.no_grad()
    def __call__(self, photo: Photo, boxes: NDArray[np.float64]) -> Looks:
        """The photo (H, W, 3) and boxes (N, 4) in its pixels, anywhere -> looks."""
        with one_thread(len(boxes) <= FEW_BOXES):
            return self._look(Image.fromarray(photo), np.asarray(boxes, dtype=np.float64).reshape(-1, 4))

    def _look(self, photo: Image.Image, boxes: NDArray[np.float64]) -> Looks:
        boxes = clipped(boxes, *photo.size)
        parts = [torch.empty(len(boxes), 0)]
        if self.config.nodes != "roi" and len(boxes):
            parts.append(self._crop_looks(photo, boxes))
        maps, scaled = self._whole_photo(photo, boxes)
        if self.config.nodes != "crop" and len(boxes):
            parts.append(self._roi_looks(maps, scaled))
        if self.config.scene and len(boxes):
            parts.append(maps["head"].values.mean((2, 3)).expand(len(boxes), -1))
        nodes = torch.cat(parts, 1) if len(boxes) else torch.empty(0, self.node_width)
        return Looks(_half(nodes), self._pair_looks(maps, scaled))

    def crops(self, photo: Image.Image, boxes: NDArray[np.float64]) -> Tensor:
        """The crops that the backbone sees: ``(N, 3, crop_size, crop_size)`` bytes."""
        grown = with_margin(clipped(boxes, *photo.size), self.config.margin, self.config.square)
        return cut_crops(photo, clipped(grown, *photo.size), self.config.crop_size)

    def crop_features(self, crops: Tensor) -> Tensor:
        """Crops ``(B, 3, S, S)`` -> means of the maps ``(B, d)``; differentiable in the backbone's weights."""
        maps = self.backbone.features(crops.to(self.device), self.config.crop_layers)
        return torch.cat([each.values.mean((2, 3)) for each in maps], 1)

    def _crop_looks(self, photo: Image.Image, boxes: NDArray[np.float64]) -> Tensor:
        found = []
        for start in range(0, len(boxes), CROP_CHUNK):
            crops = self.crops(photo, boxes[start : start + CROP_CHUNK])
            look = self.crop_features(crops)
            if self.config.flip:
                look = (look + self.crop_features(crops.flip(3))) / 2
            found.append(look)
        return torch.cat(found).cpu()

    def _whole_photo(self, photo: Image.Image, boxes: NDArray[np.float64]) -> tuple[dict[str, FeatureMap], Tensor]:
        """The maps that are needed of the whole photo, and the boxes in its pixels as the backbone sees it."""
        config = self.config
        layers = list(config.pair_layers) if len(boxes) > 1 else []
        layers += config.roi_layers if config.nodes != "crop" else ()
        layers += ["head"] if config.scene else []
        wanted = list(dict.fromkeys(layers))
        if not wanted or not len(boxes):
            return {}, torch.from_numpy(boxes)
        image, scale = shrink(photo, config.photo_size)
        maps = self.backbone.features(image[None].to(self.device), wanted)
        on_cpu = [FeatureMap(each.values.cpu(), each.stride, each.first) for each in maps]
        return dict(zip(wanted, on_cpu, strict=True)), torch.from_numpy(boxes * np.array(scale * 2))

    def _roi_looks(self, maps: dict[str, FeatureMap], boxes: Tensor) -> Tensor:
        config = self.config
        samples = max(PAIR_SAMPLES // config.roi_bins, 1)
        found = []
        for chunk in boxes.split(ROI_CHUNK):
            bins = [roi_align(maps[layer], chunk, config.roi_bins, samples).flatten(1) for layer in config.roi_layers]
            found.append(torch.cat(bins, 1))
        return torch.cat(found)

    def _pair_looks(self, maps: dict[str, FeatureMap], boxes: Tensor) -> Tensor:
        n, config = len(boxes), self.config
        out = torch.empty(n * max(n - 1, 0), self.pair_width, dtype=torch.half)
        if not out.numel():
            return out
        subject, object_ = torch.from_numpy(complete_pairs(np.array([n])))
        # The union of (i, j) is that of (j, i): it is looked at once.
        once = (subject < object_).nonzero().flatten()
        twin = object_ * (n - 1) + subject - (subject > object_).long()
        split = self.pair_width - 2 * config.mask_size**2
        for rows in once.split(ROI_CHUNK):
            a, b = boxes[subject[rows]], boxes[object_[rows]]
            union = torch.cat([torch.minimum(a[:, :2], b[:, :2]), torch.maximum(a[:, 2:], b[:, 2:])], 1)
            parts = [roi_align(maps[layer], union, 1, PAIR_SAMPLES).flatten(1) for layer in config.pair_layers]
            if parts:
                out[rows, :split] = out[twin[rows], :split] = _half(torch.cat(parts, 1))
            if config.mask_size:
                masks = [box_masks(each, union, config.mask_size).flatten(1) for each in (a, b)]
                out[rows, split:] = _half(torch.cat(masks, 1))
                out[twin[rows], split:] = _half(torch.cat(masks[::-1], 1))
        return out


def _half(values: Tensor) -> Tensor:
    """In half precision, which is how looks are stored: fresh ones equal those from a cache."""
    return values.clamp(-LARGEST, LARGEST).half()
