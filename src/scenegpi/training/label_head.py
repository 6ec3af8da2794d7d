"""Training the label head on photos, so that every training box also gets a held-out prediction.

    fitted = fit_vision(config, vocabulary, photos, graphs, cache)
    fitted.model                                    # trained on all photos
    fitted.held_out                                 # (N, C) per photo, by a model that was not trained on the photo

The backbone is frozen: only the head is trained, on features that are computed once.

The photos are divided into `folds`; the boxes of each fold are predicted by a model trained on the others. A model that
reads label distributions must be trained on such predictions: those on a network's own training boxes are far too
good. The temperature is fitted on them as well.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning as L
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from scenegpi.errors import DataError, GraphError
from scenegpi.graph import SceneGraph
from scenegpi.metrics.calibration import calibration_error, fit_temperature
from scenegpi.progress import watched
from scenegpi.threads import one_thread
from scenegpi.training.batches import EpochBatches, Key, as_they_are
from scenegpi.training.config import FitOptions, MachineConfig
from scenegpi.training.trainer import fit, make_trainer, one_cycle
from scenegpi.vision.backbone import load_backbone
from scenegpi.vision.box_features import BoxFeatureExtractor
from scenegpi.vision.cache import cached_box_features
from scenegpi.vision.config import VisionConfig
from scenegpi.vision.labels import mirrored
from scenegpi.vision.model import VisionModel, graph_geometry
from scenegpi.vocabulary import Vocabulary

READ = 1024
WEIGHT_DECAY = 0.01
log = logging.getLogger("scenegpi")


@dataclass(frozen=True)
class FittedVision:
    """The model, held-out distributions (N, C) per photo, and figures.

    Held-out distributions are None for a photo that could not be read. Figures, all on held-out boxes: accuracies
    "top-1" and "top-5", "calibration error" with the "temperature" and "calibration error before" without it.
    """

    model: VisionModel
    held_out: list[NDArray[np.float32] | None]
    figures: dict[str, float]


class Boxes(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """Boxes by keys (epoch, i): features ``(N, d)`` or ``(N, 2 d)``, geometry ``(N, g)``, labels ``(N,)``."""

    def __init__(self, features: Tensor, geometry: Tensor, labels: Tensor) -> None:
        self.all = features, geometry, labels

    def __len__(self) -> int:
        return len(self.all[0])

    def __getitem__(self, keys: list[Key]) -> tuple[Tensor, Tensor, Tensor]:
        features, geometry, labels = (each[[i for _, i in keys]] for each in self.all)
        return features, geometry, labels


class HeadModule(L.LightningModule):
    """Trains the label head of a vision model; boxes described with their mirror images are mirrored in half of the
    steps.
    """

    def __init__(self, vision: VisionModel, options: FitOptions, steps: int) -> None:
        super().__init__()
        self.head, self.options, self.steps = vision.head, options, steps

    def training_step(self, batch: tuple[Tensor, Tensor, Tensor], number: int) -> Tensor:
        features, geometry, labels = batch
        width = self.head.mean.shape[0]
        if features.shape[1] > width and bool(torch.rand(()) < 0.5):
            features, geometry = features[:, width:], mirrored(geometry)
        return F.cross_entropy(self.head(features[:, :width], geometry), labels)

    def configure_optimizers(self) -> Any:
        return one_cycle([(self.options.rate, list(self.head.parameters()))], WEIGHT_DECAY, self.steps)


def fit_vision(
    config: VisionConfig,
    vocabulary: Vocabulary,
    photos: Sequence[Any],
    graphs: Sequence[SceneGraph],
    cache: str | Path | None = None,
    *,
    options: FitOptions | None = None,
    seed: int = 0,
    machine: MachineConfig | None = None,
    shown: bool = False,
) -> FittedVision:
    """Trains a vision model on photos (paths, arrays or Pillow images) and the labels of their graphs.

    A photo that cannot be read is reported by the logger "scenegpi" and left out. `cache` is a folder where features of
    the backbone are kept; heads are trained by one process, on the device of `machine`.
    """
    if len(photos) != len(graphs):
        raise GraphError(f"photos: {len(photos)} for {len(graphs)} graphs")
    options, device = options or FitOptions(), (machine or MachineConfig()).device
    with torch.random.fork_rng(devices=[]):
        extractor = BoxFeatureExtractor(config.features, load_backbone(config.features))
    inputs: dict[int, Tensor] = {}
    for k, photo in enumerate(watched(photos, "photos", len(photos), shown)):
        try:
            inputs[k] = cached_box_features(extractor, photo, graphs[k], cache)
        except DataError as error:
            report_unreadable(error)
    readable = [graphs[k] for k in inputs]
    if len(readable) < options.folds:
        raise GraphError(f"folds: {options.folds}, but only {len(readable)} photos can be read")
    if not sum(map(len, readable)):
        raise GraphError("boxes: the photos have no boxes to learn from")
    if any(graph.vocabulary.objects != vocabulary.objects for graph in readable):
        raise GraphError("vocabulary: the graphs and the model have different labels")
    labels = torch.from_numpy(np.concatenate([graph.labels for graph in readable]).astype(np.int64))
    boxes = Boxes(torch.cat(list(inputs.values())), torch.cat([graph_geometry(graph) for graph in readable]), labels)
    counts = [len(graph) for graph in readable]
    fold = torch.from_numpy(folds_of(len(readable), options.folds, seed)).repeat_interleave(torch.tensor(counts))
    logits = torch.zeros(len(labels), len(vocabulary.objects))
    for k in watched(range(options.folds + 1), "label heads", options.folds + 1, shown):
        with torch.random.fork_rng(devices=[]), one_thread():
            torch.manual_seed(seed * 1000 + k)
            model = VisionModel(config, vocabulary)
            others = Boxes(*(each[fold != k] for each in boxes.all))
            _train(model, others, options, seed * 1000 + k, MachineConfig(device))
        if k < options.folds:
            logits[fold == k] = _logits(model, *(each[fold == k] for each in boxes.all[:2]))
    return calibrated(model, graphs, dict(zip(inputs, logits.split(counts), strict=True)))


def calibrated(model: VisionModel, graphs: Sequence[SceneGraph], logits: Mapping[int, Tensor]) -> FittedVision:
    """The model with the temperature fitted to held-out predictions.

    `logits` are ``(N, C)`` by the number of the photo; those that could not be read are missing.
    """
    places = sorted(logits)
    rows = torch.cat([logits[i] for i in places])
    labels = torch.from_numpy(np.concatenate([graphs[i].labels for i in places]).astype(np.int64))
    image = torch.arange(len(places)).repeat_interleave(torch.tensor([len(logits[i]) for i in places]))
    temperature = fit_temperature(rows, labels, image)
    model.head.temperature.fill_(temperature)
    ranked = rows.topk(min(5, rows.shape[1]), 1).indices == labels[:, None]
    figures = {
        "top-1": float(ranked[:, 0].double().mean()),
        "top-5": float(ranked.any(1).double().mean()),
        "temperature": temperature,
        "calibration error before": calibration_error(rows.softmax(1), labels),
        "calibration error": calibration_error((rows / temperature).softmax(1), labels),
    }
    held_out = [(logits[i] / temperature).softmax(1).numpy() if i in logits else None for i in range(len(graphs))]
    return FittedVision(model.eval(), held_out, figures)


def report_unreadable(error: DataError) -> None:
    """Reports a photo that cannot be read; the run goes on without it."""
    log.warning("%s; the image is used without its photo", error)


def folds_of(images: int, folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each image (G,), in sizes as even as possible."""
    place = np.random.default_rng(seed).permutation(images)
    return np.asarray(place % folds, dtype=np.int64)


def _train(model: VisionModel, boxes: Boxes, options: FitOptions, seed: int, machine: MachineConfig) -> None:
    """In place."""
    model.head.measure(boxes.all[0][:, : model.head.mean.shape[0]])
    order = EpochBatches(len(boxes), options.batch, seed)
    module = HeadModule(model, options, options.epochs * len(order)).train()
    loader = DataLoader(boxes, batch_size=None, sampler=order, collate_fn=as_they_are)
    fit(make_trainer(machine, seed, options.epochs, []), module, loader)
    model.cpu().eval()


@torch.no_grad()
def _logits(model: VisionModel, features: Tensor, geometry: Tensor) -> Tensor:
    """The logits of a trained model: ``(N, C)``."""
    found = [model.head(*some) for some in zip(features.split(READ), geometry.split(READ), strict=True)]
    return torch.cat([*found, torch.empty(0, len(model.vocabulary.objects))])
