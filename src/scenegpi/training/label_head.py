"""Training the label head on photos, so that every training box also gets a prediction that is not memorised.

    fitted = fit_vision(config, vocabulary, photos, graphs, cache)
    fitted.model                                    # trained on all photos
    fitted.held_out                                 # (N, C) per photo, by a model that was not trained on the photo

The backbone stays as it is: only the head is trained, on features that are computed once.

The photos are dealt into `folds`; the boxes of each fold are predicted by a model trained on the others. A model that
reads label distributions must be trained on such predictions: those for a network's own training boxes are far too
good. The temperature is fitted on them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from scenegpi.threads import one_thread
from scenegpi.training.batches import EpochBatches, Key, as_they_are
from scenegpi.training.config import FitOptions, MachineConfig
from scenegpi.training.trainer import fit, make_trainer
from scenegpi.vision.backbone import load_backbone
from scenegpi.vision.box_features import BoxFeatureExtractor
from scenegpi.vision.cache import cached_box_features
from scenegpi.vision.config import VisionConfig
from scenegpi.vision.labels import mirrored
from scenegpi.vision.model import VisionModel, graph_geometry
from scenegpi.vocabulary import Vocabulary

READ = 1024
Progress = Callable[[str, int, int], Any]


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
    """Trains the label head of a vision model. Half of the steps see mirror images where boxes were described with
    theirs.
    """

    def __init__(self, vision: VisionModel, options: FitOptions, steps: int) -> None:
        super().__init__()
        # The first tenth of the steps warms up; fewer than 11 can't be divided that way.
        self.head, self.options, self.steps = vision.head, options, max(steps, 11)

    def training_step(self, batch: tuple[Tensor, Tensor, Tensor], number: int) -> Tensor:
        features, geometry, labels = batch
        width = self.head.mean.shape[0]
        if features.shape[1] > width and bool(torch.rand(()) < 0.5):
            features, geometry = features[:, width:], mirrored(geometry)
        return F.cross_entropy(self.head(features[:, :width], geometry), labels)

    def configure_optimizers(self) -> Any:
        """AdamW with a learning rate that falls to 0 along a cosine."""
        options, weights = self.options, list(self.head.parameters())
        groups = [
            {"params": [each for each in weights if (each.dim() > 1) == decayed], "weight_decay": decay}
            for decayed, decay in ((True, options.weight_decay), (False, 0.0))
        ]
        optimiser = torch.optim.AdamW(groups, lr=options.rate)
        falling = torch.optim.lr_scheduler.OneCycleLR(optimiser, options.rate, total_steps=self.steps, pct_start=0.1)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": falling, "interval": "step"}}


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
    progress: Progress | None = None,
    unreadable: Callable[[DataError], Any] | None = None,
) -> FittedVision:
    """Trains a vision model on photos (paths, arrays or Pillow images) and the labels of their graphs.

    Args:
        cache: folder where features of the backbone are kept.
        options: how.
        seed: of weights, folds and the order of the boxes.
        machine: heads are trained by one process on its device.
        progress: called with what is being done, the number done, and the total.
        unreadable: called with the error of a photo that cannot be read, which is then left out; by default it is
            raised.
    """
    if len(photos) != len(graphs):
        raise GraphError(f"photos: {len(photos)} for {len(graphs)} graphs")
    options = options or FitOptions()
    with torch.random.fork_rng(devices=[]):
        extractor = BoxFeatureExtractor(config.features, load_backbone(config.features))
    inputs: dict[int, Tensor] = {}
    for k, (photo, graph) in enumerate(zip(photos, graphs, strict=True)):
        try:
            inputs[k] = cached_box_features(extractor, photo, graph, cache)
        except DataError as error:
            if unreadable is None:
                raise
            unreadable(error)
        if progress is not None:
            progress("photos", k + 1, len(photos))
    readable = [graphs[k] for k in inputs]
    if len(readable) < options.folds:
        raise GraphError(f"folds: {options.folds} of only {len(readable)} photos")
    if not sum(map(len, readable)):
        raise GraphError("boxes: none to learn from")
    if any(graph.vocabulary.objects != vocabulary.objects for graph in readable):
        raise GraphError("vocabulary: the graphs have other labels than the model")
    labels = torch.from_numpy(np.concatenate([graph.labels for graph in readable]).astype(np.int64))
    boxes = Boxes(torch.cat(list(inputs.values())), torch.cat([graph_geometry(graph) for graph in readable]), labels)
    counts = [len(graph) for graph in readable]
    image = torch.arange(len(readable)).repeat_interleave(torch.tensor(counts))
    fold = torch.from_numpy(folds_of(len(readable), options.folds, seed))[image]
    logits = torch.zeros(len(labels), len(vocabulary.objects))
    machine = replace(MachineConfig(), device=(machine or MachineConfig()).device)
    for k in range(options.folds + 1):
        with torch.random.fork_rng(devices=[]), one_thread():
            torch.manual_seed(seed * 1000 + k)
            model = VisionModel(config, vocabulary)
            _train(model, Boxes(*(each[fold != k] for each in boxes.all)), options, seed * 1000 + k, machine)
        if k < options.folds:
            logits[fold == k] = _logits(model, *(each[fold == k] for each in boxes.all[:2]))
        if progress is not None:
            progress("label heads", k + 1, options.folds + 1)
    temperature = fit_temperature(logits, labels, image)
    model.head.temperature.fill_(temperature)
    held_out = dict(zip(inputs, (logits / temperature).softmax(1).split(counts), strict=True))
    rows = [held_out[k].numpy() if k in held_out else None for k in range(len(photos))]
    return FittedVision(model.eval(), rows, label_figures(logits, labels, temperature))


def folds_of(images: int, folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each image (G,), sizes as even as can be."""
    place = np.random.default_rng(seed).permutation(images)
    return np.asarray(place % folds, dtype=np.int64)


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
    """Of a trained model: ``(N, C)``."""
    found = [model.head(*some) for some in zip(features.split(READ), geometry.split(READ), strict=True)]
    return torch.cat([*found, torch.empty(0, len(model.vocabulary.objects))])
