"""Models -> ONNX files: functions of a model whose inputs and outputs are plain tensors, traced."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from scenegpi import __version__
from scenegpi.errors import DataError
from scenegpi.features.batch import SceneBatch
from scenegpi.files import whole_file
from scenegpi.models.build import SceneModel
from scenegpi.models.calibration import tempered_edges
from scenegpi.models.checkpoint import load_model
from scenegpi.onnx.program import OPSET, onnx_program, some_rows, suppress
from scenegpi.onnx.runtime import FORMS, Form
from scenegpi.options import plain
from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.crops import clipped
from scenegpi.vision.find import Finder
from scenegpi.vision.model import VisionModel

_AXES = {
    "image": ("height", "width"),
    "sizes": ("images",),
    "counts": ("images",),
    **dict.fromkeys(("boxes", "sure", "label_dist", "labels"), ("boxes",)),
    **dict.fromkeys(("pair_dist", "relations"), ("pairs",)),
    "pairs": (None, "pairs"),
}
"""Names of the free axes of inputs and outputs."""
_ROWS = 5
"""Boxes that what follows a finder is traced with."""
_FIELDS = ("related", "offset", "predicates", "labels")


def export_model(
    model: SceneModel | str | Path, path: str | Path, form: Form = "layout", overwrite: bool = False
) -> Path:
    """Writes a model (a loaded one, a folder, or a name that ships) as one file; `form` is what it reads.

    "layout": boxes and labels; "photo": a photo and boxes; "find": a photo; see docs/onnx.md.
    """
    with whole_file(Path(path), overwrite) as part:
        part.write_bytes(model_bytes(model if isinstance(model, SceneModel) else load_model(model), form))
    return Path(path)


def model_bytes(model: SceneModel, form: Form = "layout") -> bytes:
    """The file of a model, in its labels alone."""
    model = model.labels_only()
    if model.device.type != "cpu":
        raise DataError("export", "the model must be on the CPU")
    if not model.network.exportable:
        raise DataError("export", f"{model.config.system}: this system cannot be exported")
    call: Callable[..., Sequence[Tensor]] = {"layout": layout, "photo": photo, "find": find}[form]
    outputs = [*(("boxes", "sure") if form == "find" else ()), "labels", "relations", "pairs"]
    program = onnx_program(model, call, _example(model, form), outputs, _AXES)
    import onnx

    known = model.relation_counts
    about = {
        "vocabulary": model.vocabulary.to_dict(),
        "calibration": plain(model.calibration),
        "relation_counts": None if known is None else known.to_dict(),
    }
    told = {name: json.dumps(value, ensure_ascii=False, separators=(",", ":")) for name, value in about.items()}
    told |= {"scenegpi": FORMS[form], "scenegpi_version": __version__, "opset": str(OPSET)}
    onnx.helper.set_model_props(program, told)
    onnx.checker.check_model(program, full_check=True)
    return bytes(program.SerializeToString())


def _example(model: SceneModel, form: Form) -> dict[str, Tensor]:
    """Inputs that a function is traced with; any other numbers of boxes and images give the same program."""
    labels, classes = len(model.vocabulary.objects), 1 + len(model.vocabulary.predicates)
    corner = torch.rand(7, 2, dtype=torch.float64)
    boxes = torch.cat([corner, corner + 1], 1)
    if form != "layout":
        if model.vision is not None:  # weights of another package or model are read before it is traced
            model.vision.backbone.features(torch.zeros(1, 3, 32, 32), ("early",))
        image = torch.randint(256, (50, 60, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
        return {"image": image, "boxes": boxes} if form == "photo" else {"image": image}
    given = {
        "boxes": boxes,
        "sizes": torch.full((2, 2), 2.0, dtype=torch.float64),
        "label_dist": torch.full((7, labels), 1 / labels),
        "counts": torch.tensor([3, 4]),
        "labels_given": torch.tensor(True),
    }
    if model.config.baseline.prior == "given":
        given["pair_dist"] = torch.full((3 * 2 + 4 * 3, classes), 1 / classes)
    return given


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
    ptr, image = _starts(counts), _owners(counts)
    degree = counts[image] - 1
    subject = _owners(degree)
    first = ptr[image[subject]]
    place = torch.arange(subject.shape[0]) - _starts(degree)[subject]
    batch = SceneBatch(
        vocabulary=model.labels,
        boxes=boxes,
        sizes=sizes,
        labels=label_dist.argmax(1),
        label_dist=label_dist,
        batch=image,
        ptr=ptr,
        edge_index=torch.stack([subject, first + place + (place >= subject - first)]),
        edge_ptr=_starts(counts * (counts - 1)),
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
    return _related(model, boxes, _named(vision, maps, boxes, size, scale), size)


def find(model: SceneModel, image: Tensor) -> tuple[Tensor, ...]:
    """image (H, W, 3) bytes -> boxes (N, 4) in its pixels, the chance that there is something (N,), as `layout`."""
    finder = _Finder(_vision(model), suppress=lambda boxes, *how: suppress(boxes.double(), *how))
    maps, size, scale = _seen(finder.vision, image)
    boxes, sure, dist = finder.found(maps, size, scale)
    boxes = some_rows(boxes, _ROWS)
    return boxes, sure, *_related(model, boxes, some_rows(dist, _ROWS), size)


class _Finder(Finder):
    def label_dist(self, maps: Sequence[FeatureMap], boxes: Tensor, size: Tensor, scale: Tensor) -> Tensor:
        return some_rows(_named(self.vision, maps, some_rows(boxes, _ROWS), size, scale), len(boxes))


def _vision(model: SceneModel) -> VisionModel:
    vision = model.vision
    if vision is None:
        raise DataError("export", "this model uses boxes and labels only: export it without --photo and --find")
    if getattr(getattr(vision.backbone, "trunk", None), "patch", None):
        raise DataError("export", "a vision transformer (dinov2) cannot be exported: it resizes the photo")
    return vision


def _seen(vision: VisionModel, image: Tensor) -> tuple[Sequence[FeatureMap], Tensor, Tensor]:
    """The maps of a photo (H, W, 3) in bytes, its width and height (2,), and its scale in the maps (2,)."""
    side = vision.config.features.photo_size
    picture = image.permute(2, 0, 1)[None].float()
    square = torch.nn.functional.interpolate(picture, (side, side), mode="bilinear", antialias=True)[0].round()
    size = torch._shape_as_tensor(image)[:2].flip(0).double()
    return vision.extractor.maps_of(square), size, side / size


def _named(vision: VisionModel, maps: Sequence[FeatureMap], boxes: Tensor, size: Tensor, scale: Tensor) -> Tensor:
    """What the pixels say about the label of each box: (N, C)."""
    features = vision.extractor.roi_features(maps, clipped(boxes, size) * scale.repeat(2))
    return vision.distribution(features, boxes, size)


def _related(model: SceneModel, boxes: Tensor, dist: Tensor, size: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`layout` of the boxes of one photo, labels to be corrected."""
    return layout(model, boxes, size[None], dist, torch._shape_as_tensor(boxes)[:1], torch.tensor(False))


def _starts(counts: Tensor) -> Tensor:
    """counts (G,) -> (G + 1,): 0 and the sums of the first 1, 2, ..., G."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _owners(counts: Tensor) -> Tensor:
    """counts (G,) -> (sum of them,): 0 counts[0] times, 1 counts[1] times, and so on."""
    marks = torch.zeros_like(torch.arange(counts.sum() + 1))  # type: ignore[call-overload]
    return marks.scatter_add(0, _starts(counts)[:-1], torch.ones_like(counts)).cumsum(0)[:-1] - 1
