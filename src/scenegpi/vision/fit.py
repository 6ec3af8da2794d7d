"""Training the label head on photos, so that every training box also gets a prediction that is not memorised.

    fitted = fit_vision(config, vocabulary, photos, graphs, cache)
    fitted.model                                    # trained on all photos
    fitted.held_out                                 # (N, C) per photo, by a model that was not trained on the photo

The packaged backbone stays as it is: only the head is trained, on features that are computed once (seconds). The small
backbone is trained from scratch with its head, on crops.

The photos are dealt into `folds`; the boxes of each fold are predicted by a model trained on the others. A model that
reads label distributions must be trained on such predictions: those for a network's own training boxes are far too
good. The temperature is fitted on them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from scenegpi.errors import DataError, GraphError
from scenegpi.graph import SceneGraph
from scenegpi.metrics.calibration import calibration_error, fit_temperature
from scenegpi.threads import one_thread
from scenegpi.vision.backbone import load_backbone
from scenegpi.vision.box_features import BoxFeatureExtractor
from scenegpi.vision.cache import cached_box_features
from scenegpi.vision.config import SMALL_OPTIONS, FitOptions, VisionConfig
from scenegpi.vision.labels import mirrored
from scenegpi.vision.model import VisionModel, graph_geometry
from scenegpi.vision.photos import pixels_and_boxes
from scenegpi.vocabulary import Vocabulary

READ = 1024
Progress = Callable[[str, int, int], Any]


@dataclass(frozen=True)
class FittedVision:
    """The model, held-out distributions (N, C) per photo, and figures.

    Held-out distributions are None for a photo that could not be read; without folds there are none at all. Figures,
    all on held-out boxes: accuracies "top-1" and "top-5", "calibration error" with the "temperature" and "calibration
    error before" without it.
    """

    model: VisionModel
    held_out: list[NDArray[np.float32] | None]
    figures: dict[str, float]


def fit_vision(
    config: VisionConfig,
    vocabulary: Vocabulary,
    photos: Sequence[Any],
    graphs: Sequence[SceneGraph],
    cache: str | Path | None = None,
    *,
    folds: int | None = None,
    seed: int | None = None,
    options: FitOptions | None = None,
    progress: Progress | None = None,
    unreadable: Callable[[DataError], Any] | None = None,
) -> FittedVision:
    """Trains a vision model on photos (paths, arrays or Pillow images) and the labels of their graphs.

    Args:
        cache: folder where features of the packaged backbone are kept.
        folds, seed: take the place of those in `options`.
        options: by default those that suit the backbone.
        progress: called with what is being done, the number done, and the total.
        unreadable: called with the error of a photo that cannot be read, which is then left out; by default it is
            raised.
    """
    if len(photos) != len(graphs):
        raise GraphError(f"photos: {len(photos)} for {len(graphs)} graphs")
    small = config.features.backbone == "small"
    options = options or (SMALL_OPTIONS if small else FitOptions())
    given = {"folds": folds, "seed": seed}
    options = replace(options, **{name: value for name, value in given.items() if value is not None})
    if small and config.features.nodes != "crop":
        raise GraphError("features: the small backbone is trained on crops (nodes = crop)")
    with torch.random.fork_rng(devices=[]):
        extractor = BoxFeatureExtractor(config.features, load_backbone(config.features.backbone))
    inputs: dict[int, Tensor] = {}
    for k, (photo, graph) in enumerate(zip(photos, graphs, strict=True)):
        try:
            inputs[k] = (
                _crops(extractor, photo, graph) if small else cached_box_features(extractor, photo, graph, cache)
            )
        except DataError as error:
            if unreadable is None:
                raise
            unreadable(error)
        if progress is not None:
            progress("photos", k + 1, len(photos))
    fitted = _cross_fit(config, vocabulary, list(inputs.values()), [graphs[k] for k in inputs], options, progress)
    if not fitted.held_out:
        return fitted
    by_photo = dict(zip(inputs, fitted.held_out, strict=True))
    return replace(fitted, held_out=[by_photo.get(k) for k in range(len(photos))])


def folds_of(images: int, folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each image (G,), sizes as even as can be."""
    place = np.random.default_rng(seed).permutation(images)
    return np.asarray(place % max(folds, 1), dtype=np.int64)


def label_figures(logits: Tensor, labels: Tensor, temperature: float) -> dict[str, float]:
    """How good logits ``(N, C)`` are for labels ``(N,)``: see `FittedVision`."""
    ranked = logits.topk(min(5, logits.shape[1]), 1).indices == labels[:, None]
    return {
        "top-1": float(ranked[:, 0].double().mean()),
        "top-5": float(ranked.any(1).double().mean()),
        "temperature": temperature,
        "calibration error before": calibration_error(logits.softmax(1), labels),
        "calibration error": calibration_error((logits / temperature).softmax(1), labels),
    }


def _crops(extractor: BoxFeatureExtractor, photo: Any, graph: SceneGraph) -> Tensor:
    pixels, boxes = pixels_and_boxes(photo, graph)
    return extractor.crops(Image.fromarray(pixels), torch.tensor(boxes))


def _cross_fit(
    config: VisionConfig,
    vocabulary: Vocabulary,
    pieces: Sequence[Tensor],
    graphs: Sequence[SceneGraph],
    options: FitOptions,
    progress: Progress | None,
) -> FittedVision:
    """From features ``(N, d)``, or crops ``(N, 3, S, S)``, of each graph."""
    counts = [len(graph) for graph in graphs]
    if not sum(counts):
        raise GraphError("boxes: none to learn from")
    if len(graphs) < options.folds:
        raise GraphError(f"folds: {options.folds} of only {len(graphs)} photos")
    if any(graph.vocabulary.objects != vocabulary.objects for graph in graphs):
        raise GraphError("vocabulary: the graphs have other labels than the model")
    inputs = torch.cat(list(pieces))
    geometry = torch.cat([graph_geometry(graph) for graph in graphs])
    labels = torch.from_numpy(np.concatenate([graph.labels for graph in graphs]).astype(np.int64))
    image = torch.arange(len(graphs)).repeat_interleave(torch.tensor(counts))
    fold = torch.from_numpy(folds_of(len(graphs), options.folds, options.seed))[image]
    held_out = torch.zeros(len(labels), len(vocabulary.objects))
    rounds = [*range(options.folds), -1] if options.folds > 1 else [-1]
    for done, k in enumerate(rounds, 1):
        with torch.random.fork_rng(devices=[]), one_thread(inputs.dim() == 2):
            torch.manual_seed(options.seed * 1000 + k + 1)
            model = VisionModel(config, vocabulary)
            _train(model, inputs, geometry, labels, (fold != k).nonzero().flatten(), options)
        if k >= 0:
            rows = (fold == k).nonzero().flatten()
            held_out[rows] = _logits(model, inputs[rows], geometry[rows])
        if progress is not None:
            progress("label heads", done, len(rounds))
    if options.folds <= 1:
        return FittedVision(model.eval(), [], {})
    temperature = fit_temperature(held_out, labels, image)
    model.head.temperature.fill_(temperature)
    dist = (held_out / temperature).softmax(1)
    figures = label_figures(held_out, labels, temperature)
    return FittedVision(model.eval(), [part.numpy() for part in dist.split(counts)], figures)


def _train(
    model: VisionModel, inputs: Tensor, geometry: Tensor, labels: Tensor, rows: Tensor, options: FitOptions
) -> None:
    """In place. `inputs` are features ``(N, d)``, or crops ``(N, 3, S, S)`` if the backbone learns too.

    Half of the steps see mirror images: of crops, or of boxes that were described with theirs, ``(N, 2 d)``.
    """
    crops, width = inputs.dim() == 4, model.head.mean.shape[0]
    mirror = crops or inputs.shape[1] > width
    if crops:
        model.backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    else:
        model.head.measure(inputs[rows, :width])
    decayed = [each for each in model.parameters() if each.dim() > 1]
    others = [each for each in model.parameters() if each.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": options.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=options.rate)
    # The first tenth of the steps warms up; fewer than 11 can't be divided that way (exactly 10 divide by zero).
    steps = max(options.epochs * -(-len(rows) // options.batch), 11)
    falling = torch.optim.lr_scheduler.OneCycleLR(optimiser, options.rate, total_steps=steps, pct_start=0.1)
    model.train()
    for _ in range(options.epochs):
        for chosen in rows[torch.randperm(len(rows))].split(options.batch):
            some, shape = inputs[chosen], geometry[chosen]
            turned = mirror and bool(torch.rand(()) < 0.5)
            shape = mirrored(shape) if turned else shape
            if crops:
                features = model.extractor.crop_features(some.flip(3) if turned else some)
            else:
                features = some[:, width:] if turned else some[:, :width]
            loss = F.cross_entropy(model.head(features, shape), labels[chosen])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            falling.step()
    model.eval()


@torch.no_grad()
def _logits(model: VisionModel, inputs: Tensor, geometry: Tensor) -> Tensor:
    """Of a trained model: ``(N, C)``."""
    found = []
    for some, shape in zip(inputs.split(READ), geometry.split(READ), strict=True):
        features = model.extractor.crop_features(some).half() if some.dim() == 4 else some
        found.append(model.head(features, shape))
    return torch.cat([*found, torch.empty(0, len(model.vocabulary.objects))])
