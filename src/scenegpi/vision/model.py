r"""Photo and boxes -> label distributions, as one module that is saved and loaded with a model.

Its weights are those of the label head and of a photo network of its own; a packaged backbone is not part of them. It
can be built on the "meta" device, where shapes are checked before anything is allocated.

A second look may know everyday names beyond the labels. The label head's probability of a label c is divided among
the names n that it stands for, by the second look's probabilities q,

.. math:: P(n) = P(c) \frac{q(n)}{\sum_{n' \text{ of } c} q(n')},

so summing over the names gives back the probabilities of the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from scenegpi.errors import DataError, GraphError
from scenegpi.features.arrays import image_size
from scenegpi.graph import SceneGraph
from scenegpi.threads import one_thread
from scenegpi.vision.backbone import FeatureMap, load_backbone
from scenegpi.vision.box_features import BoxFeatureExtractor, PhotoMaps
from scenegpi.vision.cache import cached_box_features
from scenegpi.vision.config import VisionConfig
from scenegpi.vision.finder import FIND
from scenegpi.vision.labels import LabelHead, box_geometry
from scenegpi.vision.network import PhotoNetwork
from scenegpi.vision.photos import EncodedPhoto, photo_boxes
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.everyday import STANDS_FOR, everyday_names

LEAST = 1e-30


class VisionModel(nn.Module):
    """Predicts labels for the boxes of a photo.

    It knows `names`: the labels and, with `config.everyday`, everyday names beyond them. Its `vocabulary` is the
    names, or only the labels if `everyday` is off.

    A photo is an (H, W, 3) array of bytes, a path or a Pillow image. A graph gives the boxes and the size of the image
    that they refer to; if the photo has another size, boxes are scaled.

    Args:
        config: its settings.
        labels: the vocabulary that it is trained on.
    """

    stands: Tensor
    """The label that stands for each name, ``(names,)``."""

    def __init__(self, config: VisionConfig, labels: Vocabulary) -> None:
        super().__init__()
        self.config, self.labels, self.everyday = config, labels, config.everyday
        more = everyday_names(labels.objects) if config.everyday else ()
        self.names: tuple[str, ...] = (*labels.objects, *more)
        self.backbone = load_backbone(config.features, len(self.names) if config.second_look else 0)
        width = BoxFeatureExtractor(config.features, self.backbone).view_width
        self._wide = Vocabulary(self.names, labels.predicates) if more else labels
        place = [*range(len(labels.objects)), *(labels.object_index[STANDS_FOR[name]] for name in more)]
        self.register_buffer("stands", torch.tensor(place), persistent=False)
        self.head = LabelHead(config.head, width, len(labels.objects))

    @property
    def vocabulary(self) -> Vocabulary:
        """The names that it gives to boxes."""
        return self._wide if self.everyday else self.labels

    @property
    def extractor(self) -> BoxFeatureExtractor:
        """Computes box features with this model's backbone and settings."""
        return BoxFeatureExtractor(self.config.features, self.backbone, self.head.mean.device)

    def label_dist(self, photo: Any, graph: SceneGraph) -> NDArray[np.float32]:
        """P(label) of each box, calibrated: (N, C)."""
        # In full precision: rounding would make some features depend on the order of the boxes, in the last bit.
        encoded = EncodedPhoto.of(photo)
        boxes = photo_boxes(graph, encoded.pixels, encoded.size)
        maps = self.photo_maps(encoded) if len(graph) else None
        looked = None if maps is None else self.everyday_logits(maps[0], torch.from_numpy(boxes), maps[1])
        return self.label_dist_of(self.extractor(encoded.pixels, boxes, maps), graph, looked)

    @torch.no_grad()
    def everyday_logits(
        self, maps: Sequence[FeatureMap], boxes: Tensor, scale: Tensor | tuple[float, float]
    ) -> Tensor | None:
        """The second look's logits of the names ``(N, names)`` for boxes ``(N, 4)`` in pixels of a photo, which the
        maps show at this scale (2,); None if the model uses only labels."""
        if not self.everyday or not isinstance(self.backbone, PhotoNetwork):
            return None
        device, side = self.head.mean.device, self.config.features.photo_size
        share = torch.as_tensor(scale, dtype=boxes.dtype, device=boxes.device) / side
        low, high = (boxes * share.repeat(2)).float().to(device).clamp(0, 1).split(2, 1)
        centred = torch.cat([(low + high) / 2, (high - low).clamp_min(1e-3)], 1)
        with one_thread():
            return self.backbone.looked(maps[-len(FIND) :], centred).names

    @torch.no_grad()
    def photo_maps(self, photo: EncodedPhoto) -> PhotoMaps:
        """The maps that boxes are read from, and the photo's scale in them; computed once for an encoded photo."""
        with one_thread():
            return photo.once(self, lambda: self.extractor.photo_maps(Image.fromarray(photo.pixels)))

    def add_labels(self, photo: Any, graph: SceneGraph) -> SceneGraph:
        """The graph with `label_dist` from the photo, everything else unchanged; its labels must be the model's."""
        if graph.vocabulary.objects != self.vocabulary.objects:
            raise GraphError("vocabulary: the graph has other labels than the model")
        return graph.replace(label_dist=self.label_dist(photo, graph))

    def box_features(self, photo: Any, graph: SceneGraph) -> Tensor:
        """The label head's training features: ``(N, d)`` in half precision, on the CPU."""
        return cached_box_features(self.extractor, photo, graph)

    @torch.inference_mode()
    def label_dist_of(self, features: Tensor, graph: SceneGraph, looked: Tensor | None = None) -> NDArray[np.float32]:
        """As `label_dist`, from box features ``(N, d)`` and `everyday_logits`, both computed before."""
        wanted = (len(graph), self.extractor.width)
        if features.shape != wanted:
            raise DataError(
                "features", f"shape {tuple(features.shape)}, expected {wanted} for these boxes and this model"
            )
        training = self.training
        self.eval()
        try:
            with one_thread():
                size = torch.tensor(image_size(graph), dtype=torch.float64)
                return self.distribution(features, torch.tensor(graph.boxes), size, looked).cpu().numpy()
        finally:
            self.train(training)

    def folded(self, dist: Tensor) -> Tensor:
        """P(label) ``(N, labels)`` from P(name) ``(N, names)``: an everyday name counts for its label."""
        return dist.new_zeros(dist.shape[0], len(self.labels.objects)).index_add_(1, self.stands, dist)

    def distribution(self, features: Tensor, boxes: Tensor, size: Tensor, looked: Tensor | None = None) -> Tensor:
        """P over the vocabulary, calibrated, ``(N, C)``, of boxes ``(N, 4)`` in an image of this width and height.

        `looked` is the result of `everyday_logits` for them.
        """
        geometry = box_geometry(boxes, size.expand(boxes.shape[0], 2))
        device = self.head.mean.device
        said = self.head.log_probabilities(features.to(device), geometry.to(device))
        return said.exp() if looked is None else self.divided(said, looked.log_softmax(1))

    def divided(self, said: Tensor, looked: Tensor) -> Tensor:
        """P(name) ``(N, names)`` from log P of the labels by the head and log P of the names by the second look."""
        whole = self.folded(looked.exp()).clamp_min(LEAST).log()
        return (said[:, self.stands] + looked - whole[:, self.stands]).exp()


def graph_geometry(graph: SceneGraph) -> Tensor:
    """Position, size and shape of a graph's boxes: ``(N, GEOMETRY_WIDTH)``."""
    sizes = torch.tensor([image_size(graph)], dtype=torch.float64).expand(len(graph), 2)
    return box_geometry(torch.tensor(graph.boxes), sizes)
