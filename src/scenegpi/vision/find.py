"""Photo -> boxes and their labels, by the photo network.

    found = Finder(vision).detect(open_photo("street.jpg"))       # Detections with `label_dist`

The finder's candidates come without labels. With a second look the best ones are read again, twice, which moves
their edges to where the thing ends; of those that overlap a lot only the best is kept, whatever it shows; the label
head names the rest; then of nested boxes with the same label only the best is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from scenegpi.boxes import suppress
from scenegpi.errors import OptionError
from scenegpi.threads import one_thread
from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.config import FinderConfig
from scenegpi.vision.detect import Detections
from scenegpi.vision.finder import FIND, LEVELS, corners, mirrored
from scenegpi.vision.model import VisionModel
from scenegpi.vision.network import PhotoNetwork
from scenegpi.vision.photos import EncodedPhoto, Photo
from scenegpi.vision.roi import clipped
from scenegpi.vision.second_look import moved
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.kinds import broad_kinds

CONSIDERED = 400
"""Maximum number of candidates in the first suppression."""
ALIKE = 0.75
"""Of candidates that overlap by more than this, only one gets a second look."""
LEAST = 1e-4
"""Minimum fraction of the photo covered by a box."""
SAME = 0.6
"""A box whose move would leave less overlap with itself than this is not moved: that is another thing."""
LOOKS = 2
"""Number of times that a box is read and moved."""
FINE = 4096
"""Overlap is counted in pixels; with this many per side, one pixel makes no difference."""

Suppress = Callable[[Tensor, Tensor, float, int], Tensor]


class Finder:
    """Finds and names the things in a photo.

    Args:
        vision: a vision model with a photo network.
        config: what is kept; by default the model's own.
        suppress: the suppression of overlapping boxes; exported programs use another one.
    """

    def __init__(
        self,
        vision: VisionModel,
        config: FinderConfig | None = None,
        suppress: Suppress | None = None,
    ) -> None:
        network = vision.backbone
        if not isinstance(network, PhotoNetwork):
            raise OptionError("model.vision: a model without a photo network finds no boxes")
        self.vision, self.network, self.suppress = vision, network, suppress or apart
        self.config = config or vision.config.finder or FinderConfig()

    @property
    def names(self) -> Sequence[str]:
        """The names that it gives to boxes."""
        return self.vision.vocabulary.objects

    def detect(self, photo: Photo) -> Detections:
        """Boxes in pixels of the photo, (H, W, 3) bytes, with `label_dist`; best first."""
        return self.detect_encoded(EncodedPhoto(photo))

    @torch.inference_mode()
    def detect_encoded(self, encoded: EncodedPhoto) -> Detections:
        """The same for a photo whose maps may have been computed before."""
        photo = encoded.pixels
        size = (photo.shape[1], photo.shape[0])
        training = self.vision.training
        self.vision.eval()
        try:
            with one_thread():
                extent = torch.tensor(size, dtype=torch.float64)
                maps, scale = self.vision.photo_maps(encoded)
                boxes, chance, dist = self.found(maps, extent, extent.new_tensor(scale))
        finally:
            self.vision.train(training)
        found, sure, said = (each.numpy() for each in (boxes, chance.double(), dist))
        label = said.argmax(axis=1) if len(said) else np.zeros(0, dtype=np.int64)
        return Detections(found, label, sure * said[np.arange(len(said)), label], self.names, size, said, sure)

    def found(self, maps: Sequence[FeatureMap], size: Tensor, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Boxes ``(N, 4)`` in a photo of this width and height, best first, the chance that there is an object ``(N,)``
        and P(name) ``(N, C)``, from its maps, which show it at this scale (2,)."""
        read, moved_to, evidence = self.looked(maps)
        read, boxes = (clipped(each.double().cpu() * size.repeat(2), size) for each in (read, moved_to))
        chance = self.chance(evidence).cpu()
        rows = self.chosen(boxes, chance)
        boxes, chance = boxes[rows], chance[rows]
        dist = self.label_dist(maps, read[rows], size, scale).cpu()
        kept = reported(boxes, chance, dist, self.config, self.vision.vocabulary)
        return boxes[kept], chance[kept], dist[kept]

    def looked(self, maps: Sequence[FeatureMap]) -> tuple[Tensor, Tensor, Tensor]:
        """The candidates (K, 4), x1, y1, x2, y2 in fractions of the photo; where the second look moves them; and
        evidence that they show an object, (K, F), for `chance`. Names are read at the finder's box: the label head was
        trained with such boxes.

        The last maps are those of finder and second look. Maps of two pictures are those of the photo and of its mirror
        image; both have candidates, and both are read when these are looked at again.
        """
        boxes, evidence = self.candidates(maps[-len(LEVELS) - len(FIND) : -len(FIND)])
        there = boxes
        if self.network.look is not None:
            fits = evidence
            for _ in range(LOOKS):
                moves, fits, _ = self.network.looked(maps[-len(FIND) :], there)
                there = inside(moved(there, moves))
            there = torch.where((overlaps(boxes, there) >= SAME)[:, None], there, boxes)
            share = there[:, 2:].prod(1, keepdim=True).clamp_min(LEAST).log()
            evidence = torch.cat([evidence, fits.amax(1, keepdim=True), share], 1)
        return corners(boxes), corners(there), evidence

    def chosen(self, boxes: Tensor, chance: Tensor) -> Tensor:
        """Rows of the boxes (K, 4), in pixels of the photo, that are worth naming, best first."""
        rows = self.suppress(boxes, chance, self.config.overlap, self.config.most)
        return rows[chance[rows] >= self.config.floor]

    def candidates(self, maps: Sequence[FeatureMap]) -> tuple[Tensor, Tensor]:
        """The finder's best: (K, 4) centre and size in fractions of the photo, and the likelier kind's logit, (K, 1).
        Of near-duplicates only one gets a second look."""
        found = self.network.finder(maps)
        boxes, logits = found.boxes, found.logits.flatten(0, 1)
        if boxes.shape[0] > 1:
            boxes = torch.stack([boxes[0], mirrored(boxes[1])])
        sure = logits.amax(-1)
        best = sure.topk(min(CONSIDERED, sure.shape[0]))
        boxes = inside(boxes.flatten(0, 1)[best.indices])
        if self.network.look is None:  # one suppression is enough
            return boxes, best.values[:, None]
        kept = self.suppress(corners(boxes) * FINE, best.values.sigmoid(), ALIKE, self.config.looked)
        return boxes[kept], best.values[kept, None]

    def chance(self, evidence: Tensor) -> Tensor:
        """The chance that there is an object, (K,), from the evidence (K, F) of `looked`."""
        first, *others = (*self.config.weights, *[0.0] * evidence.shape[1])
        return (first + evidence @ evidence.new_tensor(others[: evidence.shape[1]])).sigmoid()

    def label_dist(self, maps: Sequence[FeatureMap], boxes: Tensor, size: Tensor, scale: Tensor) -> Tensor:
        """P(name) of each box, ``(N, C)``, from the maps of the photo, which show it at this scale (2,)."""
        rois = (boxes * scale.repeat(2)).to(self.vision.head.mean.device)
        features = self.vision.extractor.roi_features(maps, rois)
        return self.vision.distribution(features, boxes, size, self.vision.everyday_logits(maps, boxes, scale))


def reported(boxes: Tensor, chance: Tensor, dist: Tensor, config: FinderConfig, vocabulary: Vocabulary) -> Tensor:
    """Rows of the named boxes (K, 4) that are reported, best first: chance (K,), P(name) (K, C).

    Man, woman and person count as one: a certain person is reported, and of two boxes of one person the better one is
    kept, even if their names differ.
    """
    best, label = dist.max(1)
    kinds = broad_kinds(vocabulary)
    if kinds is not None:
        members, broad = (torch.from_numpy(each) for each in kinds)
        best, label = (dist * members[label]).sum(1), broad[label]
    score = chance * best
    kept = single(boxes, score, label, config.same_label)
    return kept[score[kept] >= config.named_floor]


def apart(boxes: Tensor, score: Tensor, overlap: float, most: int) -> Tensor:
    """Rows of the boxes (K, 4), in pixels, that no better one overlaps by more, best first."""
    where = boxes.detach().double().cpu().numpy()
    kept = suppress(where, score.detach().cpu().numpy(), np.zeros(len(where), dtype=np.int64), overlap)
    return torch.from_numpy(kept[:most]).to(boxes.device)


def overlaps(a: Tensor, b: Tensor) -> Tensor:
    """Intersection over union of boxes ``(K, 4)`` and ``(K, 4)``, centre and size, row by row: ``(K,)``."""
    first, second = corners(a), corners(b)
    size = torch.minimum(first[:, 2:], second[:, 2:]) - torch.maximum(first[:, :2], second[:, :2])
    common = size.clamp_min(0).prod(1)
    return common / (a[:, 2:].prod(1) + b[:, 2:].prod(1) - common)


def inside(boxes: Tensor) -> Tensor:
    """The part of boxes ``(..., 4)``, centre and size in fractions, that lies in the photo."""
    low, high = corners(boxes).clamp(0, 1).split(2, -1)
    return torch.cat([(low + high) / 2, (high - low).clamp_min(1e-3)], -1)


def single(boxes: Tensor, score: Tensor, label: Tensor, share: float) -> Tensor:
    """Boxes that are kept, best first, as rows of `boxes` (N, 4): a person's box within another person's is mostly the
    same person. A box is dropped if it shares more than this fraction of the smaller box with a better one of its
    label.
    """
    score, order = score.sort(stable=True, descending=True)
    boxes, label = boxes[order], label[order]
    size = torch.minimum(boxes[:, None, 2:], boxes[:, 2:]) - torch.maximum(boxes[:, None, :2], boxes[:, :2])
    area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    common = size.clamp_min(0).prod(2) / torch.minimum(area[:, None], area).clamp_min(1e-9)
    place = torch.arange(order.shape[0])
    double = (common > share) & (label[:, None] == label) & (place < place[:, None])
    return order[~double.any(1)]
