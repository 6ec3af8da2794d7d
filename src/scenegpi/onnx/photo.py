"""What is exported of a model that uses photos: the photo itself goes in, as bytes, and is resized in the program."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from scenegpi.errors import DataError
from scenegpi.models.build import SceneModel
from scenegpi.onnx.modules import LayoutModule
from scenegpi.onnx.operators import cut_out, stretch, suppress
from scenegpi.vision.crops import clipped
from scenegpi.vision.find import Finder
from scenegpi.vision.model import VisionModel
from scenegpi.vision.network import PhotoNetwork


class VisionModule(nn.Module):
    """A photo and its boxes -> what the pixels say about the label of each box."""

    def __init__(self, vision: VisionModel) -> None:
        super().__init__()
        features = vision.config.features
        if features.nodes != "crop" and not features.square:
            raise DataError("export", "a model that reads photos in their own shape (square: false) is not exported")
        self.vision = vision
        with torch.no_grad():  # weights of another package or model are read when first needed: not while it is traced
            vision.backbone.features(torch.zeros(1, 3, 32, 32), ("early",))

    def forward(self, image: Tensor, boxes: Tensor) -> Tensor:
        """image (H, W, 3) bytes, boxes (N, 4) in its pixels -> (N, C)."""
        extractor, size = self.vision.extractor, photo_size(image)
        config = extractor.config
        inside = clipped(boxes, size)
        parts = []
        if extractor.by_crop:
            crops = cut_out(image, extractor.crop_boxes(boxes, size), config.crop_size)
            blank = crops.new_zeros((1, *crops.shape[1:]))  # no runtime normalises the groups of no picture at all
            parts.append(extractor.crop_features(torch.cat([crops, blank]))[:-1])
        if extractor.by_roi:
            maps = extractor.maps_of(stretched(image, config.photo_size).float())
            parts.append(extractor.roi_features(maps, inside * (config.photo_size / size).repeat(2)))
        looked = self.vision.look_again(maps, boxes, config.photo_size / size) if extractor.by_roi else None
        return self.vision.distribution(torch.cat(parts, 1), boxes, size, looked)


class PhotoModule(nn.Module):
    """A photo and its boxes -> calibrated distributions of labels and pairs."""

    def __init__(self, model: SceneModel) -> None:
        super().__init__()
        self.vision, self.layout = VisionModule(vision_of(model)), LayoutModule(model)

    def forward(self, image: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """image (H, W, 3) bytes, boxes (N, 4) in its pixels -> (N, C), (E, 1 + P) and the pairs (2, E)."""
        return related(self.layout, boxes, photo_size(image), self.vision(image, boxes))


class FinderModule(nn.Module):
    """A photo -> boxes, how sure it is that there is something, and what the pixels say about each label."""

    def __init__(self, vision: VisionModel) -> None:
        super().__init__()
        if not isinstance(vision.backbone, PhotoNetwork):
            raise DataError("export", "this model finds no boxes: it has no photo network of its own")
        self.finder, self.vision = Finder(vision, suppress=_apart), vision
        self.side = vision.config.features.photo_size

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """image (H, W, 3) bytes -> boxes (N, 4) in its pixels, (N,) and (N, C)."""
        return self.found(stretched(image, self.side), photo_size(image))

    def found(self, square: Tensor, size: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same for a photo of this width and height (2,), stretched to (3, side, side)."""
        finder = self.finder
        maps = self.vision.extractor.maps_of(square.float())
        boxes, evidence = finder.looked(maps)
        sure = finder.chance(evidence)
        boxes = clipped(boxes.double() * size.repeat(2), size)
        rows = finder.chosen(boxes, sure)
        boxes, sure = boxes[rows], sure[rows]
        dist = finder.label_dist(maps, boxes, size, self.side / size)
        kept = finder.reported(boxes, sure, dist)
        return boxes[kept], sure[kept], dist[kept]


def _apart(boxes: Tensor, score: Tensor, overlap: float, most: int) -> Tensor:
    return suppress(boxes.double(), score[None], overlap, most)


class FindModule(nn.Module):
    """A photo -> boxes and calibrated distributions of labels and pairs."""

    def __init__(self, model: SceneModel) -> None:
        super().__init__()
        self.finder, self.layout = FinderModule(vision_of(model)), LayoutModule(model)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """image (H, W, 3) bytes -> (N, 4), (N,), (N, C), (E, 1 + P) and the pairs (2, E)."""
        boxes, sure, dist = self.finder(image)
        return boxes, sure, *related(self.layout, boxes, photo_size(image), dist)


def vision_of(model: SceneModel) -> VisionModel:
    """DataError for a model that uses boxes and labels only."""
    if model.vision is None:
        raise DataError("export", "this model uses boxes and labels only: export it without --photo and --find")
    return model.vision


def photo_size(image: Tensor) -> Tensor:
    """(2,) width and height of an image (H, W, 3)."""
    return torch.stack([torch.full((), image.shape[axis], dtype=torch.float64) for axis in (1, 0)])


def stretched(image: Tensor, side: int) -> Tensor:
    """A whole photo (H, W, 3) -> (3, side, side)."""
    return stretch(image, torch.zeros(2, dtype=torch.long), photo_size(image).long(), side)


def related(layout: LayoutModule, boxes: Tensor, size: Tensor, dist: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The layout model on the boxes of one photo, of which the labels are not known."""
    counts = torch.full((1,), boxes.shape[0])
    return layout(boxes, size[None], dist, counts, torch.tensor(False))
