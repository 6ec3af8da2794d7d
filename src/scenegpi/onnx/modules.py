"""What is exported: functions of a model or a layer whose inputs and outputs are plain tensors.

They number boxes and pairs themselves. Tensors marked by `wire` keep their names in the file, where
`scenegpi.onnx.session` cuts it into parts, because a `Predictor` finds, names and relates boxes in separate steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from scenegpi.errors import DataError
from scenegpi.features.batch import SceneBatch
from scenegpi.gpi import GPILayer, Recurrent
from scenegpi.models.build import SceneModel
from scenegpi.models.calibration import tempered_edges
from scenegpi.onnx.program import suppress, wire
from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.find import Finder
from scenegpi.vision.model import VisionModel
from scenegpi.vision.network import PhotoNetwork
from scenegpi.vision.roi import clipped

_ROWS = 5
"""Number of boxes that the steps after a finder are traced with."""
_FIELDS = ("related", "offset", "predicates", "labels")


def layout(
    model: SceneModel,
    boxes: Tensor,
    sizes: Tensor,
    label_dist: Tensor,
    counts: Tensor,
    labels_given: Tensor,
    pair_dist: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """One batch of G images with N boxes and E pairs -> calibrated distributions.

    boxes (N, 4), sizes (G, 2), label_dist (N, C), counts (G,) boxes of each image, labels_given () whether labels
    are certain, pair_dist (E, 1 + P) for a model that reads it -> (N, C), (E, 1 + P) and the pairs (2, E).
    """
    ptr, image = starts(counts), owners(counts)
    degree = counts[image] - 1
    subject = owners(degree)
    first = ptr[image[subject]]
    place = torch.arange(subject.shape[0]) - starts(degree)[subject]
    batch = SceneBatch(
        vocabulary=model.labels,
        boxes=boxes,
        sizes=sizes,
        labels=label_dist.argmax(1),
        label_dist=label_dist,
        batch=image,
        ptr=ptr,
        edge_index=torch.stack([subject, first + place + (place >= subject - first)]),
        edge_ptr=starts(counts * (counts - 1)),
        pair_dist=pair_dist,
    )
    out = model.network(batch)
    tasks = (model.calibration.sgcls, model.calibration.predcls)
    numbers = torch.tensor([[getattr(task, name) for name in _FIELDS] for task in tasks])
    related, offset, predicates, labels = numbers[labels_given.long()].unbind()
    edges = tempered_edges(out.edges[-1], related, offset, predicates)
    return (out.nodes[-1] / labels).softmax(1), edges, batch.edge_index


def photo(model: SceneModel, image: Tensor, boxes: Tensor) -> tuple[Tensor, ...]:
    """image (H, W, 3) bytes, boxes (N, 4) in its pixels -> as `layout`."""
    vision = _vision(model)
    maps, size, scale = _seen(vision, image)
    return _related(model, boxes, wire(_named(vision, maps, boxes, size, scale), "label_dist"), size)


def find(model: SceneModel, image: Tensor) -> tuple[Tensor, ...]:
    """image (H, W, 3) bytes -> boxes (N, 4) in its pixels, the chance that there is an object (N,), as `layout`."""
    finder = _Finder(_vision(model))
    maps, size, scale = _seen(finder.vision, image)
    boxes, sure, dist = finder.found(maps, size, scale)
    boxes = wire(boxes, "boxes", _ROWS)
    return boxes, sure, *_related(model, boxes, wire(dist, "label_dist", _ROWS), size)


class _Finder(Finder):
    def __init__(self, vision: VisionModel) -> None:
        if not isinstance(vision.backbone, PhotoNetwork):
            raise DataError("export", "this model finds no boxes, as it has no photo network of its own")
        super().__init__(vision, suppress=lambda boxes, *how: suppress(boxes.double(), *how))

    def label_dist(self, maps: Sequence[FeatureMap], boxes: Tensor, size: Tensor, scale: Tensor) -> Tensor:
        return _named(self.vision, maps, boxes, size, scale)


def _vision(model: SceneModel) -> VisionModel:
    vision = model.vision
    if vision is None:
        raise DataError("export", "this model uses only boxes and labels: export it without --photo and --find")
    if getattr(getattr(vision.backbone, "trunk", None), "patch", None):
        raise DataError("export", "a vision transformer (dinov2) cannot be exported: it resizes the photo")
    return vision


def _seen(vision: VisionModel, image: Tensor) -> tuple[Sequence[FeatureMap], Tensor, Tensor]:
    """The maps of a photo (H, W, 3) in bytes, its width and height (2,), and its scale in the maps (2,)."""
    side = vision.config.features.photo_size
    picture = image.permute(2, 0, 1)[None].float()
    resized = torch.nn.functional.interpolate(picture, (side, side), mode="bilinear", antialias=True)
    square = wire(resized[0].round().to(torch.uint8), "square")
    size = wire(torch._shape_as_tensor(image)[:2].flip(0).double(), "size")
    return vision.extractor.maps_of(square.float()), size, side / size


def _named(vision: VisionModel, maps: Sequence[FeatureMap], boxes: Tensor, size: Tensor, scale: Tensor) -> Tensor:
    """The label distribution of each box from its pixels: (N, C)."""
    seen = wire(boxes, "seen", _ROWS)
    features = vision.extractor.roi_features(maps, clipped(seen, size) * scale.repeat(2))
    return wire(vision.distribution(features, seen, size), "named", len(boxes))


def _related(model: SceneModel, boxes: Tensor, dist: Tensor, size: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`layout` of the boxes of one photo, labels to be corrected."""
    counts = torch._shape_as_tensor(boxes)[:1]
    never = size[0] < 0  # not a constant, which would not keep its name
    values = {"sizes": size[None], "counts": counts, "labels_given": never}
    return layout(model, boxes, label_dist=dist, **{name: wire(value, name) for name, value in values.items()})


def layer(owner: GPILayer | Recurrent, counts: Tensor, **given: Tensor) -> list[Tensor]:
    """A GPI layer on a batch of graphs, given as the number of nodes of each -> nodes, edges if it labels them, and g;
    a recurrent one -> logits of nodes and edges after the last step."""
    out = owner(**given, batch=owners(counts), num_graphs=counts.shape[0])
    if isinstance(owner, Recurrent):
        return [out.nodes[-1], out.edges[-1]]
    return [each for each in (out.nodes, out.edges, out.graph) if each is not None]


def starts(counts: Tensor) -> Tensor:
    """counts (G,) -> (G + 1,): 0 and the sums of the first 1, 2, ..., G."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def owners(counts: Tensor) -> Tensor:
    """counts (G,) -> (sum of them,): 0 counts[0] times, 1 counts[1] times, and so on."""
    marks = torch.zeros_like(torch.arange(counts.sum() + 1))  # type: ignore[call-overload]
    return marks.scatter_add(0, starts(counts)[:-1], torch.ones_like(counts)).cumsum(0)[:-1] - 1
