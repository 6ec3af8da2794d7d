"""Photo -> boxes and what they show, by the photo network in one pass.

    found = Finder(vision).detect(open_photo("street.jpg"))       # Detections with `label_dist`

Candidates come without labels. Of those that overlap much only the best stays, whatever it shows; the label head names
the rest from the same maps; then of those with one label that overlap only the best stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from scenegpi.boxes import suppress
from scenegpi.errors import OptionError
from scenegpi.threads import one_thread
from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.config import FinderConfig
from scenegpi.vision.crops import clipped, stretch
from scenegpi.vision.detect import Detections, Detector
from scenegpi.vision.finder import Candidates, corners
from scenegpi.vision.labels import box_geometry
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

    @torch.inference_mode()
    def detect(self, photo: Photo) -> Detections:
        """Boxes in pixels of the photo, (H, W, 3) bytes, with `label_dist`; best first."""
        config, size = self.config, (photo.shape[1], photo.shape[0])
        training = self.vision.training
        self.vision.eval()
        try:
            with one_thread():
                image = Image.fromarray(photo)
                maps, scale = self.vision.extractor.photo_maps(image)
                boxes, sure = self._candidates(self._look(image, maps))
                boxes = clipped(boxes * np.tile(size, 2), *size)
                if self.also is not None:
                    more = self.also.detect(photo)
                    boxes, sure = np.concatenate([boxes, more.boxes]), np.concatenate([sure, more.scores])
                kept = suppress(boxes, sure, np.zeros(len(boxes), dtype=np.int64), config.overlap)[: config.most]
                boxes, sure = boxes[kept], sure[kept]
                dist = self._names(maps, boxes, scale, size)
        finally:
            self.vision.train(training)
        label = dist.argmax(axis=1) if len(dist) else np.zeros(0, dtype=np.int64)
        score = sure * dist[np.arange(len(dist)), label]
        kept = suppress(boxes, score, label, config.same_label)
        kept = kept[worth_reporting(sure[kept], score[kept], config)]
        return Detections(boxes[kept], label[kept], score[kept], self.names, size, dist[kept])

    def _look(self, photo: Image.Image, maps: list[FeatureMap]) -> Candidates:
        """What the finder says of the photo, at its own size, or from the maps that boxes are named by."""
        side = self.config.size
        if side is None or side == self.vision.config.features.photo_size:
            return self.network.finder([each.picture(0) for each in maps])
        pixels = stretch(photo, side)[0][None].to(self.vision.head.mean.device)
        return self.network.finder(self.network.features(pixels))

    def _candidates(self, found: Candidates) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The best ones above the lowest floor: (K, 4) in fractions of the photo, and how sure they are (K,)."""
        sure = (self.config.slope * found.logits[0] + self.config.offset).sigmoid()
        best = sure.topk(min(CONSIDERED, len(sure)))
        least = min(self.config.floor, self.config.last_floor) if self.config.fewest else self.config.floor
        kept = best.indices[best.values >= least]
        boxes = corners(found.boxes[0][kept]).clamp(0, 1)
        return boxes.double().cpu().numpy(), sure[kept].double().cpu().numpy()

    def _names(
        self, maps: list[FeatureMap], boxes: NDArray[np.float64], scale: tuple[float, float], size: tuple[int, int]
    ) -> NDArray[np.float32]:
        """P(label) of each box: (N, C)."""
        if not len(boxes):
            return np.zeros((0, len(self.names)), dtype=np.float32)
        vision, device = self.vision, self.vision.head.mean.device
        rois = torch.from_numpy(boxes * np.array(scale * 2)).to(device)
        sizes = torch.tensor([size], dtype=torch.float64).expand(len(boxes), 2)
        geometry = box_geometry(torch.from_numpy(boxes), sizes).to(device)
        return vision.head.distribution(vision.extractor.roi_features(maps, rois), geometry).cpu().numpy()


def worth_reporting(sure: NDArray[np.floating], score: NDArray[np.floating], config: FinderConfig) -> NDArray[np.int64]:
    """Which boxes are reported, by the chance that there is something (N,) and that times P(label) (N,), best first."""
    good = np.flatnonzero((sure >= config.floor) & (score >= config.named_floor))
    if len(good) >= config.fewest:
        return good
    return np.flatnonzero(sure >= min(config.floor, config.last_floor))[: config.fewest]
