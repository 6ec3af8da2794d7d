"""Training the label head on photos, so that every training box also gets a prediction that is not memorised.

    fitted = fit_vision(config, vocabulary, photos, graphs, cache)
    fitted.model                                    # trained on all photos
    fitted.held_out                                 # (N, C) for each photo, by a model that has not seen the photo

With the packaged backbone, which stays as it is, only the head is trained, on looks that are computed once
(`fit_labels`: seconds). The small backbone is trained from scratch, head and all, on crops.

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

from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.vision.backbone import load_backbone
from scenegpi.vision.cache import photo_looks
from scenegpi.vision.calibration import calibration_error, fit_temperature
from scenegpi.vision.config import SMALL_OPTIONS, FitOptions, VisionConfig
from scenegpi.vision.labels import mirrored
from scenegpi.vision.looks import LookExtractor
from scenegpi.vision.model import VisionModel, graph_layout
from scenegpi.vision.photos import as_photo, photo_boxes
from scenegpi.vision.threads import one_thread
from scenegpi.vocabulary import Vocabulary

READ = 1024
Progress = Callable[[str, int, int], Any]


@dataclass(frozen=True)
class FittedVision:
    """The model, held-out distributions (N, C) of each photo (none without folds), and figures.

    Figures, all on held-out boxes: accuracies "top-1" and "top-5", "calibration error" with the "temperature" and
    "calibration error before" without it.
    """

    model: VisionModel
    held_out: list[NDArray[np.float32]]
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
) -> FittedVision:
    """Trains a vision model on photos (paths, or arrays) and the labels of their graphs.

    Args:
        cache: folder where looks of the packaged backbone are kept.
        folds, seed: take the place of those in `options`.
        options: by default those that suit the backbone.
        progress: called with what is done, how much of it, and of how much.
    """
    if len(photos) != len(graphs):
        raise GraphError(f"photos: {len(photos)} for {len(graphs)} graphs")
    small = config.looks.backbone == "small"
    options = options or (SMALL_OPTIONS if small else FitOptions())
    given = {"folds": folds, "seed": seed}
    options = replace(options, **{name: value for name, value in given.items() if value is not None})
    if small and (config.looks.nodes != "crop" or config.looks.scene or config.looks.flip):
        raise GraphError("looks: the small backbone is trained on plain crops (nodes = crop; no scene, no flip)")
    with torch.random.fork_rng(devices=[]):
        extractor = LookExtractor(config.looks, load_backbone(config.looks.backbone))
    inputs: list[Tensor] = []
    for k, (photo, graph) in enumerate(zip(photos, graphs, strict=True)):
        if small:
            pixels = as_photo(photo)
            inputs.append(extractor.crops(Image.fromarray(pixels), photo_boxes(graph, pixels)))
        else:
            inputs.append(photo_looks(extractor, photo, graph, cache).nodes)
        if progress is not None:
            progress("photos", k + 1, len(photos))
    return _cross_fit(config, vocabulary, inputs, graphs, options, progress)


def fit_labels(
    config: VisionConfig,
    vocabulary: Vocabulary,
    nodes: Sequence[Tensor],
    graphs: Sequence[SceneGraph],
    options: FitOptions | None = None,
    progress: Progress | None = None,
) -> FittedVision:
    """The same from `Looks.nodes` ``(N, d)`` of each graph, where they are there already."""
    if len(nodes) != len(graphs):
        raise GraphError(f"looks: {len(nodes)} for {len(graphs)} graphs")
    return _cross_fit(config, vocabulary, nodes, graphs, options or FitOptions(), progress)


def folds_of(images: int, folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each image (G,), sizes as even as can be."""
    place = np.random.default_rng(seed).permutation(images)
    return np.asarray(place % max(folds, 1), dtype=np.int64)


def _cross_fit(
    config: VisionConfig,
    vocabulary: Vocabulary,
    pieces: Sequence[Tensor],
    graphs: Sequence[SceneGraph],
    options: FitOptions,
    progress: Progress | None,
) -> FittedVision:
    counts = [len(graph) for graph in graphs]
    if not sum(counts):
        raise GraphError("boxes: none to learn from")
    if len(graphs) < options.folds:
        raise GraphError(f"folds: {options.folds} of only {len(graphs)} photos")
    if any(graph.vocabulary != vocabulary for graph in graphs):
        raise GraphError("vocabulary: the graphs have another one than the model")
    inputs = torch.cat(list(pieces))
    layout = torch.cat([graph_layout(graph) for graph in graphs])
    labels = torch.from_numpy(np.concatenate([graph.labels for graph in graphs]).astype(np.int64))
    image_fold = folds_of(len(graphs), options.folds, options.seed)
    fold = torch.from_numpy(np.repeat(image_fold, counts))
    held_out = torch.zeros(len(labels), len(vocabulary.objects))
    rounds = [*range(options.folds), -1] if options.folds > 1 else [-1]
    for done, k in enumerate(rounds, 1):
        with torch.random.fork_rng(devices=[]), one_thread(inputs.dim() == 2):
            torch.manual_seed(options.seed * 1000 + k + 1)
            model = VisionModel(config, vocabulary)
            _train(model, inputs, layout, labels, (fold != k).nonzero().flatten(), options)
        if k >= 0:
            rows = (fold == k).nonzero().flatten()
            held_out[rows] = _logits(model, inputs[rows], layout[rows])
        if progress is not None:
            progress("label heads", done, len(rounds))
    if options.folds <= 1:
        return FittedVision(model.eval(), [], {})
    temperature = fit_temperature(held_out, labels)
    model.head.temperature.fill_(temperature)
    dist = (held_out / temperature).softmax(1)
    ranked = held_out.topk(min(5, held_out.shape[1]), 1).indices == labels[:, None]
    figures = {
        "top-1": float(ranked[:, 0].double().mean()),
        "top-5": float(ranked.any(1).double().mean()),
        "temperature": temperature,
        "calibration error before": calibration_error(held_out.softmax(1), labels),
        "calibration error": calibration_error(dist, labels),
    }
    return FittedVision(model.eval(), [part.numpy() for part in dist.split(counts)], figures)


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
