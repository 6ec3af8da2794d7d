"""Photo and boxes -> looks and label distributions, as one module that is saved and loaded with a model.

Its weights are those of the label head and, where the backbone is the small one, of that; a packaged backbone is no
part of them. It can be built on the "meta" device, where shapes are checked before anything is allocated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from scenegpi.errors import DataError
from scenegpi.features.batch import image_size
from scenegpi.graph import SceneGraph
from scenegpi.vision.backbone import load_backbone
from scenegpi.vision.config import VisionConfig
from scenegpi.vision.labels import LabelHead, layout_of
from scenegpi.vision.looks import LookExtractor, Looks
from scenegpi.vision.photos import as_photo, photo_boxes
from scenegpi.vision.threads import one_thread
from scenegpi.vocabulary import Vocabulary


class VisionModel(nn.Module):
    """Looks at photos and names what is in the boxes.

    Args:
        config: what it is made of.
        vocabulary: its labels.
    """

    def __init__(self, config: VisionConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        self.backbone = load_backbone(config.looks.backbone)
        width = LookExtractor(config.looks, self.backbone).node_width
        self.head = LabelHead(config.head, width, len(vocabulary.objects))

    @property
    def extractor(self) -> LookExtractor:
        """Looks at photos with this model's backbone and settings."""
        return LookExtractor(self.config.looks, self.backbone, self.head.mean.device)

    @property
    def node_width(self) -> int:
        """Columns of `Looks.nodes`."""
        return self.extractor.node_width

    @property
    def pair_width(self) -> int:
        """Columns of `Looks.pairs`."""
        return self.extractor.pair_width

    def looks(self, photo: Any, graph: SceneGraph) -> Looks:
        """What the boxes of a graph look like; the photo is an array (H, W, 3) of bytes, a path or a Pillow image."""
        pixels = as_photo(photo)
        return self.extractor(pixels, photo_boxes(graph, pixels))

    @torch.inference_mode()
    def label_dist(self, looks: Looks, graph: SceneGraph) -> NDArray[np.float32]:
        """P(label) of each box, calibrated: (N, C)."""
        if looks.nodes.shape != (len(graph), self.node_width):
            found, wanted = tuple(looks.nodes.shape), (len(graph), self.node_width)
            raise DataError("looks", f"shape {found}, but the boxes and this model make it {wanted}")
        training = self.training
        self.eval()
        try:
            device = self.head.mean.device
            layout = graph_layout(graph).to(device)
            with one_thread():
                return self.head.distribution(looks.nodes.to(device), layout).cpu().numpy()
        finally:
            self.train(training)


def graph_layout(graph: SceneGraph) -> torch.Tensor:
    """The layout of a graph's boxes ``(N, LAYOUT_WIDTH)``."""
    sizes = torch.tensor([image_size(graph)], dtype=torch.float64).expand(len(graph), 2)
    return layout_of(torch.tensor(graph.boxes), sizes)
