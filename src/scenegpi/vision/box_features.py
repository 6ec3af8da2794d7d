"""Photo and boxes -> one feature vector per box: means over its crop, its RoI, or both.

Permuting the boxes permutes the vectors. Crops and RoIs are computed in chunks, so 500 boxes need little more memory
than their vectors.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from scenegpi.options import plain
from scenegpi.threads import one_thread
from scenegpi.vision.backbone import Backbone, FeatureMap
from scenegpi.vision.config import BoxFeatureConfig
from scenegpi.vision.crops import clipped, cut_crops, shrink, stretch, with_margin
from scenegpi.vision.finder import FIND, LEVELS
from scenegpi.vision.photos import Photo
from scenegpi.vision.roi import roi_align

PhotoMaps = tuple[list[FeatureMap], tuple[float, float]]
VERSION = 3
"""Raised when the same settings come to mean other numbers, so that old caches are not read."""
CROP_CHUNK = 16
ROI_CHUNK = 512
ROI_SAMPLES = 6
"""Points per side of a RoI, shared by its bins."""
FEW_BOXES = 32
"""A photo with up to this many boxes is computed by one thread."""


class BoxFeatureExtractor:
    """Computes box features with a backbone.

    Args:
        config: which features.
        backbone: with its weights; it is not changed.
        device: where the backbone's weights are; features come back to the CPU.
    """

    def __init__(self, config: BoxFeatureConfig, backbone: Backbone, device: torch.device | str = "cpu") -> None:
        self.config, self.backbone, self.device = config, backbone, device
        self.around = config.surroundings > 0
        self.by_crop, self.by_roi = config.nodes != "roi", config.nodes != "crop"
        crop = sum(backbone.widths[layer] for layer in config.crop_layers) if self.by_crop else 0
        roi = sum(backbone.widths[layer] for layer in config.roi_layers) if self.by_roi else 0
        self.view_width = crop + roi * (config.roi_bins**2 + 2 * self.around)
        self.width = self.view_width * (1 + config.mirror)

    def key(self) -> str:
        """A hash of everything that the numbers depend on, besides photo and boxes."""
        parts = [VERSION, plain(self.config), self.backbone.fingerprint()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @torch.no_grad()
    def __call__(self, photo: Photo, boxes: NDArray[np.float64], maps: PhotoMaps | None = None) -> Tensor:
        """The photo (H, W, 3) and boxes (N, 4) in its pixels, anywhere -> ``(N, width)``.

        `maps` are what `photo_maps` gave for this photo before.
        """
        boxes = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
        if not len(boxes):
            return torch.empty(0, self.width)
        image = Image.fromarray(photo)
        inside = clipped(torch.tensor(boxes), _size(image))
        with one_thread(len(boxes) <= FEW_BOXES):
            parts = [self._from_crops(image, inside)] if self.by_crop else []
            parts += [self._from_rois(maps or self.photo_maps(image), inside)] if self.by_roi else []
        return torch.cat(parts, 1)

    def crops(self, photo: Image.Image, boxes: Tensor) -> Tensor:
        """The crops that go through the backbone: ``(N, 3, crop_size, crop_size)`` bytes."""
        return cut_crops(photo, self.crop_boxes(boxes, _size(photo)), self.config.crop_size)

    def crop_boxes(self, boxes: Tensor, size: Tensor) -> Tensor:
        """What is cut out for boxes ``(N, 4)`` of a photo with this width and height: ``(N, 4)`` within it."""
        return clipped(with_margin(clipped(boxes, size), self.config.margin), size)

    def crop_features(self, crops: Tensor) -> Tensor:
        """Crops ``(B, 3, S, S)`` -> means of the maps ``(B, d)``; differentiable in the backbone's weights."""
        maps = self.backbone.features(crops.to(self.device), self.config.crop_layers)
        return torch.cat([each.values.mean((2, 3)) for each in maps], 1)

    def _from_crops(self, photo: Image.Image, boxes: Tensor) -> Tensor:
        return torch.cat([self.crop_features(self.crops(photo, some)).cpu() for some in boxes.split(CROP_CHUNK)])

    def roi_features(self, maps: Sequence[FeatureMap], rois: Tensor) -> Tensor:
        """Maps of one photo, RoIs ``(N, 4)`` in its pixels -> ``(N, d)``; differentiable in the backbone's weights.

        The first maps are those of `roi_layers`; others are not read. Maps of two pictures are those of a square photo
        and of its mirror image: then it is ``(N, 2 d)``.
        """
        maps = maps[: len(self.config.roi_layers)]
        if maps[0].values.shape[0] == 1:
            return self._view(maps, rois)
        left, top, right, bottom = rois.unbind(1)
        side = self.config.photo_size
        turned = torch.stack([side - right, top, side - left, bottom], 1)
        views = [self._view([each.picture(k) for each in maps], some) for k, some in enumerate((rois, turned))]
        return torch.cat(views, 1)

    def _view(self, maps: Sequence[FeatureMap], rois: Tensor) -> Tensor:
        config = self.config
        samples = max(ROI_SAMPLES // config.roi_bins, 1)
        parts = [roi_align(each, rois, config.roi_bins, samples).flatten(1) for each in maps]
        if self.around:
            grown = (rois[:, 2:] - rois[:, :2]) * config.surroundings
            wide = torch.cat([rois[:, :2] - grown, rois[:, 2:] + grown], 1)
            parts += [roi_align(each, wide, 1, ROI_SAMPLES).flatten(1) for each in maps]
            parts += [each.values.mean((2, 3)).expand(rois.shape[0], -1) for each in maps]
        return torch.cat(parts, 1)

    def photo_maps(self, photo: Image.Image) -> PhotoMaps:
        """The maps that RoIs are read from, and the photo's scale in them, across and down.

        With `mirror` the maps have two pictures, the photo and its mirror image.
        """
        size = self.config.photo_size
        image, scale = stretch(photo, size) if self.config.square else shrink(photo, size)
        return self.maps_of(image.to(self.device)), scale

    def maps_of(self, image: Tensor) -> list[FeatureMap]:
        """The maps of a photo that has its size already, ``(3, H, W)``; then those of finder and second look."""
        more = (*LEVELS, *FIND) if FIND[0] in self.backbone.widths else ()
        return self.backbone.features(self.pictures(image), (*self.config.roi_layers, *more))

    def pictures(self, image: Tensor) -> Tensor:
        """The photo ``(3, H, W)`` and, with `mirror`, its mirror image: ``(1 or 2, 3, H, W)``."""
        return torch.stack([image, image.flip(2)]) if self.config.mirror else image[None]

    def _from_rois(self, photo_maps: PhotoMaps, boxes: Tensor) -> Tensor:
        maps, scale = photo_maps
        rois = (boxes * boxes.new_tensor(scale * 2)).to(self.device)
        return torch.cat([self.roi_features(maps, chunk) for chunk in rois.split(ROI_CHUNK)]).cpu()


def _size(photo: Image.Image) -> Tensor:
    return torch.tensor(photo.size, dtype=torch.float64)
