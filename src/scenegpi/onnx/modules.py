"""What is exported: modules whose inputs and outputs are plain tensors, and that number boxes and pairs themselves.

A photo comes as a square, resized by Pillow, or in a file that reads whole photos by the file (`scenegpi.onnx.parts`).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from scenegpi.errors import DataError
from scenegpi.features.batch import SceneBatch
from scenegpi.gpi import GPILayer, Recurrent
from scenegpi.models.build import SceneModel
from scenegpi.models.calibration import tempered_edges, tempered_nodes
from scenegpi.onnx.program import suppress
from scenegpi.vision.crops import clipped
from scenegpi.vision.find import Finder
from scenegpi.vision.network import PhotoNetwork

_FIELDS = ("related", "offset", "predicates", "labels")


class LayoutModule(nn.Module):
    """Boxes, image sizes and label distributions -> calibrated distributions of labels and pairs."""

    numbers: Tensor

    def __init__(self, model: SceneModel) -> None:
        super().__init__()
        self.network, self.vocabulary = model.network, model.vocabulary
        tasks = (model.calibration.sgcls, model.calibration.predcls)
        self.register_buffer("numbers", torch.tensor([[getattr(task, name) for name in _FIELDS] for task in tasks]))

    def forward(
        self,
        boxes: Tensor,
        sizes: Tensor,
        label_dist: Tensor,
        counts: Tensor,
        labels_given: Tensor,
        pair_dist: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One batch of G images with N boxes and E pairs.

        boxes (N, 4), sizes (G, 2), label_dist (N, C), counts (G,) boxes of each image, labels_given () whether labels
        are certain, pair_dist (E, 1 + P) for a model that reads it -> (N, C), (E, 1 + P) and the pairs (2, E).
        """
        batch = self._batch(boxes, sizes, label_dist, counts, pair_dist)
        out = self.network(batch)
        nodes, edges = out.nodes[-1], out.edges[-1]
        related, offset, predicates, labels = self.numbers[labels_given.long()].unbind()
        return tempered_nodes(nodes, labels), tempered_edges(edges, related, offset, predicates), batch.edge_index

    def _batch(
        self, boxes: Tensor, sizes: Tensor, label_dist: Tensor, counts: Tensor, pair_dist: Tensor | None
    ) -> SceneBatch:
        none = counts.new_zeros(0)
        ptr, image = starts(counts), owners(counts)
        degree = counts[image] - 1
        subject = owners(degree)
        first = ptr[image[subject]]
        place = torch.arange(subject.shape[0]) - starts(degree)[subject]
        other = first + place + (place >= subject - first)
        return SceneBatch(
            vocabulary=self.vocabulary,
            boxes=boxes,
            sizes=sizes,
            labels=label_dist.argmax(1),
            label_dist=label_dist,
            batch=image,
            ptr=ptr,
            edge_index=torch.stack([subject, other]),
            edge_ptr=starts(counts * (counts - 1)),
            pair_dist=pair_dist,
            relation_edge=none,
            relation_class=none,
            relation_count=none,
            images=none,
            ids=(),
            self_relations=0,
        )


class VisionModule(nn.Module):
    """The square of a photo and its boxes -> what the pixels say about the label of each box."""

    def __init__(self, model: SceneModel) -> None:
        super().__init__()
        if model.vision is None:
            raise DataError("export", "this model uses boxes and labels only: export it without --photo and --find")
        self.vision = model.vision
        if getattr(getattr(self.vision.backbone, "trunk", None), "patch", None):
            raise DataError("export", "a vision transformer (dinov2) cannot be exported: it resizes the photo")
        with torch.no_grad():  # weights of another package or model are read when first needed: not while it is traced
            self.vision.backbone.features(torch.zeros(1, 3, 32, 32), ("early",))

    def forward(self, square: Tensor, size: Tensor, boxes: Tensor) -> Tensor:
        """square (3, side, side) bytes, size (2,) of the photo, boxes (N, 4) in its pixels -> (N, C)."""
        extractor, scale = self.vision.extractor, square.shape[1] / size
        maps = extractor.maps_of(square.float())
        features = extractor.roi_features(maps, clipped(boxes, size) * scale.repeat(2))
        return self.vision.distribution(features, boxes, size, self.vision.everyday_logits(maps, boxes, scale))


class FinderModule(VisionModule):
    """The square of a photo -> boxes, the chance that there is something, and what the pixels say about each label."""

    def __init__(self, model: SceneModel) -> None:
        super().__init__(model)
        if not isinstance(self.vision.backbone, PhotoNetwork):
            raise DataError("export", "this model finds no boxes: it has no photo network of its own")
        self.finder = Finder(self.vision, suppress=lambda boxes, *how: suppress(boxes.double(), *how))

    def forward(self, square: Tensor, size: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[override]
        """square (3, side, side) bytes, size (2,) of the photo -> boxes (N, 4) in its pixels, (N,) and (N, C)."""
        maps = self.vision.extractor.maps_of(square.float())
        return self.finder.found(maps, size, square.shape[1] / size)


class LayerModule(nn.Module):
    """A GPI layer on a batch of graphs, given as the number of nodes of each."""

    def __init__(self, layer: GPILayer) -> None:
        super().__init__()
        self.layer = layer

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor,
        counts: Tensor,
        x_class: Tensor | None = None,
        edge_class: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        """x (N, d), edge_index (2, E), edge_attr (E, e), counts (G,) -> nodes, edges if it labels them, and g."""
        batch = owners(counts)
        out = self.layer(
            x, edge_index, edge_attr, batch, x_class=x_class, edge_class=edge_class, num_graphs=counts.shape[0]
        )
        return tuple(each for each in (out.nodes, out.edges, out.graph) if each is not None)


class RecurrentModule(nn.Module):
    """A recurrent GPI layer on a batch of graphs: logits in, logits after the last step out."""

    def __init__(self, recurrent: Recurrent) -> None:
        super().__init__()
        self.recurrent = recurrent

    def forward(
        self,
        node_logits: Tensor,
        edge_index: Tensor,
        edge_logits: Tensor,
        counts: Tensor,
        node_static: Tensor | None = None,
        edge_static: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """node_logits (N, C), edge_index (2, E), edge_logits (E, R), counts (G,), static (N, a) and (E, b)."""
        out = self.recurrent(
            node_logits,
            edge_index,
            edge_logits,
            owners(counts),
            node_static=node_static,
            edge_static=edge_static,
            num_graphs=counts.shape[0],
        )
        return out.nodes[-1], out.edges[-1]


def starts(counts: Tensor) -> Tensor:
    """counts (G,) -> (G + 1,): 0 and the sums of the first 1, 2, ..., G."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def owners(counts: Tensor) -> Tensor:
    """counts (G,) -> (sum of them,): 0 counts[0] times, 1 counts[1] times, and so on."""
    marks = torch.zeros_like(torch.arange(counts.sum() + 1))  # type: ignore[call-overload]
    return marks.scatter_add(0, starts(counts)[:-1], torch.ones_like(counts)).cumsum(0)[:-1] - 1
