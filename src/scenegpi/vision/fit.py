"""Training the label head on photos, so that every training box also gets a prediction that is not memorised.

    fit = fit_labels(looks, graphs, config)         # looks of the packaged backbone, minutes for thousands of photos
    fit = fit_small(photos, graphs, config)         # the small backbone and the head together, from scratch
    fit.model                                       # trained on all photos
    fit.label_dist                                  # (N, C) for each photo, by a model that has not seen the photo

The photos are dealt into `folds`; the boxes of each fold are predicted by a model trained on the others. A model that
reads label distributions must be trained on such predictions: those for a network's own training boxes are far too
good. The temperature is fitted on them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from scenegpi.graph import GraphError, SceneGraph
from scenegpi.options import bounded
from scenegpi.vision.calibration import calibration_error, fit_temperature
from scenegpi.vision.config import LookConfig, VisionConfig
from scenegpi.vision.labels import mirrored
from scenegpi.vision.looks import Looks
from scenegpi.vision.model import VisionModel, graph_layout
from scenegpi.vision.photos import Photo, as_photo, photo_boxes

READ = 1024
SMALL = VisionConfig(looks=LookConfig(backbone="small", crop_size=64, photo_size=256))
"""Settings that suit the small backbone."""


@dataclass(frozen=True)
class FitOptions:
    """How heads are trained: AdamW with a rate that falls to 0 along a cosine.

    Args:
        epochs, batch, rate, weight_decay: of the training.
        smoothing: of the labels.
        folds: the photos are dealt into so many; 0 or 1 trains the model alone, without held-out predictions.
        seed: of weights, folds and the order of the boxes.
    """

    epochs: int = bounded(30, 1, 1000)
    batch: int = bounded(128, 1, 65536)
    rate: float = bounded(1e-3, 1e-6, 1.0)
    weight_decay: float = bounded(0.05, 0.0, 10.0)
    smoothing: float = bounded(0.0, 0.0, 0.5)
    folds: int = bounded(5, 0, 100)
    seed: int = bounded(0, 0, 2**31 - 1)


SMALL_OPTIONS = FitOptions(epochs=12, batch=64, rate=3e-3, folds=3)


@dataclass(frozen=True)
class LabelFit:
    """The model, held-out distributions (N, C) of each photo (None without folds), and figures.

    Figures, all on held-out boxes: `boxes`, `top1` and `top5` accuracy, calibration error `ece_before` and `ece`
    without and with the `temperature`.
    """

    model: VisionModel
    label_dist: list[NDArray[np.float32]] | None
    figures: dict[str, float] = field(default_factory=dict)


def fit_labels(
    looks: Sequence[Looks],
    graphs: Sequence[SceneGraph],
    config: VisionConfig | None = None,
    options: FitOptions | None = None,
    progress: Callable[[str], Any] | None = None,
) -> LabelFit:
    """Trains the head on looks of the packaged backbone, one for each graph."""
    config = config or VisionConfig()
    if config.looks.backbone == "small":
        raise GraphError("backbone: the small one is trained together with the head, by fit_small")
    if len(looks) != len(graphs):
        raise GraphError(f"looks: {len(looks)} for {len(graphs)} graphs")
    inputs = torch.cat([each.nodes for each in looks]) if looks else torch.empty(0, 0)
    return _cross_fit(inputs, graphs, config, options or FitOptions(), progress)


def fit_small(
    photos: Sequence[Any],
    graphs: Sequence[SceneGraph],
    config: VisionConfig = SMALL,
    options: FitOptions = SMALL_OPTIONS,
    progress: Callable[[str], Any] | None = None,
) -> LabelFit:
    """Trains the small backbone and the head end to end on crops of the photos, one (array or path) for each graph."""
    if config.looks.backbone != "small" or config.looks.nodes != "crop" or config.looks.scene:
        raise GraphError("backbone: only the small one, looking at crops, is trained from scratch")
    if len(photos) != len(graphs):
        raise GraphError(f"photos: {len(photos)} for {len(graphs)} graphs")
    if not graphs:
        raise GraphError("photos: none to learn from")
    extractor = VisionModel(config, graphs[0].vocabulary).extractor

    def crops(photo: Photo, graph: SceneGraph) -> Tensor:
        return extractor.crops(photo, photo_boxes(graph, photo))

    pieces = [crops(as_photo(photo), graph) for photo, graph in zip(photos, graphs, strict=True)]
    return _cross_fit(torch.cat(pieces), graphs, config, options, progress)


def folds_of(images: int, folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each image (G,), sizes as even as can be."""
    place = np.random.default_rng(seed).permutation(images)
    return np.asarray(place % max(folds, 1), dtype=np.int64)


def _cross_fit(
    inputs: Tensor,
    graphs: Sequence[SceneGraph],
    config: VisionConfig,
    options: FitOptions,
    progress: Callable[[str], Any] | None,
) -> LabelFit:
    counts = [len(graph) for graph in graphs]
    if not sum(counts):
        raise GraphError("boxes: none to learn from")
    if len(graphs) < options.folds:
        raise GraphError(f"folds: {options.folds} of only {len(graphs)} photos")
    vocabulary = graphs[0].vocabulary
    if any(graph.vocabulary != vocabulary for graph in graphs):
        raise GraphError("vocabulary: the graphs must share one")
    layout = torch.cat([graph_layout(graph) for graph in graphs])
    labels = torch.from_numpy(np.concatenate([graph.labels for graph in graphs]).astype(np.int64))
    image_fold = folds_of(len(graphs), options.folds, options.seed)
    fold = torch.from_numpy(np.repeat(image_fold, counts))
    held_out = torch.zeros(len(labels), len(vocabulary.objects))
    rounds = [*range(options.folds), -1] if options.folds > 1 else [-1]
    for k in rounds:
        if progress:
            progress(f"labels, {'all photos' if k < 0 else f'fold {k + 1} of {options.folds}'}")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed * 1000 + k + 1)
            model = VisionModel(config, vocabulary)
            _train(model, inputs, layout, labels, (fold != k).nonzero().flatten(), options)
        if k >= 0:
            rows = (fold == k).nonzero().flatten()
            held_out[rows] = _logits(model, inputs[rows], layout[rows])
    if options.folds <= 1:
        return LabelFit(model.eval(), None)
    temperature = fit_temperature(held_out, labels)
    model.head.temperature.fill_(temperature)
    dist = (held_out / temperature).softmax(1)
    ranked = held_out.topk(min(5, held_out.shape[1]), 1).indices == labels[:, None]
    figures = {
        "boxes": float(len(labels)),
        "top1": float(ranked[:, 0].double().mean()),
        "top5": float(ranked.any(1).double().mean()),
        "temperature": temperature,
        "ece_before": calibration_error(held_out.softmax(1), labels),
        "ece": calibration_error(dist, labels),
    }
    return LabelFit(model.eval(), [part.numpy() for part in dist.split(counts)], figures)


def _train(
    model: VisionModel, inputs: Tensor, layout: Tensor, labels: Tensor, rows: Tensor, options: FitOptions
) -> None:
    """In place. `inputs` are looks ``(N, d)``, or crops ``(N, 3, S, S)`` where the backbone learns too."""
    crops = inputs.dim() == 4
    if crops:
        model.backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    else:
        model.head.measure(inputs[rows])
    decayed = [each for each in model.parameters() if each.dim() > 1]
    others = [each for each in model.parameters() if each.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": options.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=options.rate)
    steps = options.epochs * -(-len(rows) // options.batch)
    falling = torch.optim.lr_scheduler.OneCycleLR(optimiser, options.rate, total_steps=max(steps, 4), pct_start=0.1)
    model.train()
    for _ in range(options.epochs):
        for chosen in rows[torch.randperm(len(rows))].split(options.batch):
            seen, place = inputs[chosen], layout[chosen]
            if crops and bool(torch.rand(()) < 0.5):
                seen, place = seen.flip(3), mirrored(place)
            looks = model.extractor.crop_features(seen) if crops else seen
            loss = F.cross_entropy(model.head(looks, place), labels[chosen], label_smoothing=options.smoothing)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            falling.step()
    model.eval()


@torch.no_grad()
def _logits(model: VisionModel, inputs: Tensor, layout: Tensor) -> Tensor:
    """Of a model that is done: ``(N, C)``."""
    found = []
    for some, place in zip(inputs.split(READ), layout.split(READ), strict=True):
        looks = model.extractor.crop_features(some).half() if some.dim() == 4 else some
        found.append(model.head(looks, place))
    return torch.cat([*found, torch.empty(0, len(model.vocabulary.objects))])
