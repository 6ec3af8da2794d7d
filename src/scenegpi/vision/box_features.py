"""Photo and boxes -> one feature vector per box, by RoIAlign on maps of the whole photo.

Permuting the boxes permutes the vectors. RoIs are computed in chunks, so 500 boxes need little more memory than their
vectors.
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
from scenegpi.vision.finder import FIND, LEVELS
from scenegpi.vision.photos import Photo, as_square
from scenegpi.vision.roi import clipped, roi_align

PhotoMaps = tuple[list[FeatureMap], tuple[float, float]]
VERSION = 4
"""Raised when the same settings give other numbers, so that old caches are not read."""
ROI_CHUNK = 512
ROI_SAMPLES = 6
"""Points per side of a RoI, shared by its bins."""
FEW_BOXES = 32
"""A photo with up to this many boxes is processed by one thread."""


class BoxFeatureExtractor:
    """Computes box features with a backbone.

    Args:
        config: the features to compute.
        backbone: with its weights; it is not changed.
        device: where the backbone's weights are; features come back to the CPU.
    """

    def __init__(self, config: BoxFeatureConfig, backbone: Backbone, device: torch.device | str = "cpu") -> None:
        self.config, self.backbone, self.device = config, backbone, device
        self.around = config.surroundings > 0
        self.view_width = sum(backbone.widths[layer] for layer in LEVELS) * (config.roi_bins**2 + 2 * self.around)
        self.width = self.view_width * (1 + config.mirror)

    def key(self) -> str:
        """A hash of everything that the features depend on, besides photo and boxes."""
        parts = [VERSION, plain(self.config), self.backbone.fingerprint()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @torch.no_grad()
    def __call__(self, photo: Photo, boxes: NDArray[np.float64], maps: PhotoMaps | None = None) -> Tensor:
        """The photo (H, W, 3) and boxes (N, 4) in its pixels, also outside it -> ``(N, width)``.

        `maps` are an earlier result of `photo_maps` for this photo.
        """
        boxes = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
        if not len(boxes):
            return torch.empty(0, self.width)
        inside = clipped(torch.tensor(boxes), torch.tensor(photo.shape[1::-1], dtype=torch.float64))
        with one_thread(len(boxes) <= FEW_BOXES):
            found, scale = maps or self.photo_maps(Image.fromarray(photo))
            rois = (inside * inside.new_tensor(scale * 2)).to(self.device)
            return torch.cat([self.roi_features(found, chunk) for chunk in rois.split(ROI_CHUNK)]).cpu()

    def roi_features(self, maps: Sequence[FeatureMap], rois: Tensor) -> Tensor:
        """Maps of one photo, RoIs ``(N, 4)`` in its pixels -> ``(N, d)``; differentiable in the backbone's weights.

        The first maps are those of `LEVELS`; others are not read. Maps of two pictures are those of a photo and of its
        mirror image: then it is ``(N, 2 d)``.
        """
        maps = maps[: len(LEVELS)]
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
        side = self.config.photo_size
        image = torch.from_numpy(as_square(photo, side)).to(self.device)
        return self.maps_of(image), (side / photo.width, side / photo.height)

    def maps_of(self, image: Tensor) -> list[FeatureMap]:
        """The maps of a photo that already has the right size, ``(3, H, W)``; then those of the second look, if any."""
        more = FIND if FIND[0] in self.backbone.widths else ()
        pictures = torch.stack([image, image.flip(2)]) if self.config.mirror else image[None]
        return self.backbone.features(pictures, (*LEVELS, *more))
