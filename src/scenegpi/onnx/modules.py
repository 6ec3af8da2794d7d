"""What is exported: modules whose inputs and outputs are plain tensors, and that number boxes and pairs themselves."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi import GPILayer, Recurrent
from scenegpi.models.build import SceneModel
from scenegpi.models.calibration import Calibration, tempered_edges, tempered_nodes

_FIELDS = ("related", "offset", "predicates", "labels")


class LayoutModule(nn.Module):
    """Boxes, image sizes and label distributions -> calibrated distributions of labels and pairs."""

    numbers: Tensor

    def __init__(self, model: SceneModel) -> None:
        super().__init__()
        self.network, self.vocabulary = model.network, model.vocabulary
        tasks = (model.calibration.sgcls, model.calibration.predcls)
        self.calibrated = tasks != (Calibration(), Calibration())
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
        if not self.calibrated:
            return nodes.softmax(1), edges.softmax(1), batch.edge_index
        related, offset, predicates, labels = self.numbers[labels_given.long()].unbind()
        return tempered_nodes(nodes, labels), tempered_edges(edges, related, offset, predicates), batch.edge_index

    def _batch(
        self, boxes: Tensor, sizes: Tensor, label_dist: Tensor, counts: Tensor, pair_dist: Tensor | None
    ) -> SceneBatch:
        none = counts.new_zeros(0)
        ptr, edge_ptr = starts(counts), starts(counts * (counts - 1))
        edges: int = edge_ptr[-1].item()  # type: ignore[assignment]
        torch._check(edges >= 2)  # for the tracer only: the program for no pairs at all is the same
        image = owners(counts, boxes.shape[0])
        degree = counts[image] - 1
        subject = owners(degree, edges)
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
            edge_ptr=edge_ptr,
            pair_dist=pair_dist,
            relation_edge=none,
            relation_class=none,
            relation_count=none,
            images=none,
            ids=(),
            self_relations=0,
        )


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
        batch = owners(counts, x.shape[0])
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
            owners(counts, node_logits.shape[0]),
            node_static=node_static,
            edge_static=edge_static,
            num_graphs=counts.shape[0],
        )
        return out.nodes[-1], out.edges[-1]


def starts(counts: Tensor) -> Tensor:
    """counts (G,) -> (G + 1,): 0 and the sums of the first 1, 2, ..., G."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def owners(counts: Tensor, total: int) -> Tensor:
    """counts (G,) that add up to `total` -> (total,): 0 counts[0] times, 1 counts[1] times, and so on."""
    marks = counts.new_zeros(total + 1).scatter_add(0, starts(counts)[:-1], torch.ones_like(counts))
    return marks.cumsum(0)[:-1] - 1
