"""Photo -> boxes and what they show, by the photo network.

    found = Finder(vision).detect(open_photo("street.jpg"))       # Detections with `label_dist`

Candidates come without labels. Of those that overlap much only the best stays, whatever it shows; the label head names
the rest; then of those with one label that lie in one another only the best stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from scenegpi.boxes import suppress
from scenegpi.errors import OptionError
from scenegpi.threads import one_thread
from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.config import FinderConfig
from scenegpi.vision.crops import clipped
from scenegpi.vision.detect import Detections, Detector
from scenegpi.vision.finder import corners
from scenegpi.vision.model import VisionModel
from scenegpi.vision.network import PhotoNetwork
from scenegpi.vision.photos import Photo

CONSIDERED = 400
"""Candidates that suppression looks at."""


class Finder:
    """Finds and names the things in a photo.

    Args:
        vision: a vision model with a photo network.
        config: what is kept; by default as the model says.
        also: a detector whose boxes are candidates, too; the label head names all of them.
    """

    def __init__(self, vision: VisionModel, config: FinderConfig | None = None, also: Detector | None = None) -> None:
        network = vision.backbone
        if not isinstance(network, PhotoNetwork):
            raise OptionError("model.vision: a model without a photo network finds no boxes")
        self.vision, self.network, self.also = vision, network, also
        self.config = config or vision.config.finder or FinderConfig()
        self.names: Sequence[str] = vision.vocabulary.objects

    @property
    def lowest(self) -> float:
        """The least chance of a box that may be reported."""
        return min(self.config.floor, self.config.last_floor) if self.config.fewest else self.config.floor

    @torch.inference_mode()
    def detect(self, photo: Photo) -> Detections:
        """Boxes in pixels of the photo, (H, W, 3) bytes, with `label_dist`; best first."""
        config, size = self.config, (photo.shape[1], photo.shape[0])
        training = self.vision.training
        self.vision.eval()
        try:
            with one_thread():
                image, extent = Image.fromarray(photo), torch.tensor(size, dtype=torch.float64)
                maps, scale = self.vision.extractor.photo_maps(image)
                found = self.candidates(maps, extent)
                boxes, sure = (each[found[1] >= self.lowest].double().cpu().numpy() for each in found)
                if self.also is not None:
                    more = self.also.detect(photo)
                    boxes, sure = np.concatenate([boxes, more.boxes]), np.concatenate([sure, more.scores])
                best = suppress(boxes, sure, np.zeros(len(boxes), dtype=np.int64), config.overlap)[: config.most]
                boxes, sure = boxes[best], sure[best]
                dist = self.label_dist(maps, torch.from_numpy(boxes), extent, extent.new_tensor(scale)).cpu().numpy()
        finally:
            self.vision.train(training)
        label = dist.argmax(axis=1) if len(dist) else np.zeros(0, dtype=np.int64)
        score = sure * dist[np.arange(len(dist)), label]
        order = (torch.from_numpy(boxes), torch.from_numpy(score), torch.from_numpy(label))
        kept = single(*order, config.same_label).numpy()
        worth = worth_reporting(torch.from_numpy(sure[kept]), torch.from_numpy(score[kept]), config)
        kept = kept[worth.numpy()]
        return Detections(boxes[kept], label[kept], score[kept], self.names, size, dist[kept])

    def candidates(self, maps: Sequence[FeatureMap], size: Tensor) -> tuple[Tensor, Tensor]:
        """The best ones, best first: (K, 4) in pixels of a photo of width and height `size`, and how sure they are.

        Maps of two pictures are those of the photo and of its mirror image; both have candidates.
        """
        found = self.network.finder(maps)
        boxes = corners(found.boxes)
        if boxes.shape[0] > 1:
            left, top, right, bottom = boxes[1].unbind(1)
            boxes = torch.stack([boxes[0], torch.stack([1 - right, top, 1 - left, bottom], 1)])
        sure = (self.config.slope * found.logits.flatten() + self.config.offset).sigmoid()
        best = sure.topk(min(CONSIDERED, sure.shape[0]))
        boxes = boxes.flatten(0, 1)[best.indices].clamp(0, 1).double().cpu()
        return clipped(boxes * size.repeat(2), size), best.values

    def label_dist(self, maps: Sequence[FeatureMap], boxes: Tensor, size: Tensor, scale: Tensor) -> Tensor:
        """P(label) of each box, ``(N, C)``, from the maps of the photo, which show it at this scale (2,)."""
        rois = (boxes * scale.repeat(2)).to(self.vision.head.mean.device)
        return self.vision.distribution(self.vision.extractor.roi_features(maps, rois), boxes, size)


def single(boxes: Tensor, score: Tensor, label: Tensor, share: float) -> Tensor:
    """Boxes that stay, best first, as rows of `boxes` (N, 4): a person's box within another person's is mostly the same
    person. One goes if a better one of its label has more than this share of the smaller of the two in common with it.
    """
    score, order = score.sort(stable=True, descending=True)
    boxes, label = boxes[order], label[order]
    size = torch.minimum(boxes[:, None, 2:], boxes[:, 2:]) - torch.maximum(boxes[:, None, :2], boxes[:, :2])
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    common = size.clamp_min(0).prod(2) / torch.minimum(area[:, None], area).clamp_min(1e-9)
    place = torch.arange(order.shape[0])
    double = (common > share) & (label[:, None] == label) & (place < place[:, None])
    return order[~double.any(1)]


def worth_reporting(sure: Tensor, score: Tensor, config: FinderConfig) -> Tensor:
    """Which boxes are reported, (N,): by the chance that there is something, and that times P(label), best first."""
    good = (sure >= config.floor) & (score >= config.named_floor)
    few = sure >= min(config.floor, config.last_floor)
    few = few & (few.cumsum(0) <= config.fewest)
    enough = good.sum() >= config.fewest
    return (good & enough) | (few & ~enough)
