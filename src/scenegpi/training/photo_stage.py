"""The photo network of a run: pretrained, trained on each half of the photos, then on all of them.

    RUN/vision/pretrain/    other photos, with boxes that are complete (COCO)
    RUN/vision/half0/       all photos but those of the first half; it predicts them (held_out.safetensors)
    RUN/vision/half1/       and the other way round
    RUN/vision/whole/       starts from the mean of the two, and goes on with all photos

Each step writes its state while it goes on and its weights when it is done, so a killed run loses at most a part of a
pass (scenegpi.training.photo_fit).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError
from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph
from scenegpi.metrics.calibration import fit_temperature
from scenegpi.models.checkpoint import read_tensors
from scenegpi.training.photo_config import PhotoFitConfig, PretrainConfig
from scenegpi.training.photo_fit import PhotoSet, fit_network, new_vision
from scenegpi.training.photo_module import mean_weights
from scenegpi.vision.config import VisionConfig
from scenegpi.vision.fit import FittedVision, folds_of, label_figures
from scenegpi.vision.model import VisionModel, graph_geometry
from scenegpi.vision.photos import pixels_and_boxes
from scenegpi.vocabulary import Vocabulary

HALVES = 2
HELD_OUT = "held_out.safetensors"


def fit_photo_network(
    config: VisionConfig,
    vocabulary: Vocabulary,
    photos: Sequence[Path],
    graphs: Sequence[SceneGraph],
    options: PhotoFitConfig,
    folder: Path,
    *,
    seed: int = 0,
    progress: Callable[[str, int, int], Any] | None = None,
    shown: bool = False,
    unreadable: Callable[[DataError], Any] | None = None,
) -> FittedVision:
    """Trains the network and its label head on photos and the labels of their graphs, as `fit_vision` does heads.

    Args:
        folder: of the stage.
        progress: called with what is being done, the number done, and the total, where no bar of `shown` tells.
        unreadable: called with the error of a photo that can't be read; its held-out distribution is None.
    """
    first = _pretrained(config, options, folder, seed, shown) if options.pretrain.path else None
    halves: list[VisionModel] = []
    logits: dict[int, Tensor] = {}
    for k in range(HALVES):
        vision = _started(config, vocabulary, first, seed)
        others = fit_half(
            vision, k, photos, graphs, options, folder / f"half{k}", seed=seed, shown=shown, measure=first is None
        )
        halves.append(vision)
        logits |= held_out_logits(
            vision, others, photos, graphs, folder / f"half{k}" / HELD_OUT, k, progress=progress, unreadable=unreadable
        )
    whole = _started(config, vocabulary, first, seed)
    whole.load_state_dict(mean_weights(list(halves)))
    slower = replace(
        options,
        rate=options.rate * options.whole_rate,
        backbone_rate=options.backbone_rate * options.whole_rate,
        size=options.whole_size or options.size,
    )
    fit_network(
        whole,
        PhotoSet(photos, graphs, complete=False),
        slower,
        options.whole_epochs,
        folder / "whole",
        seed=seed + HALVES,
        name="photos, all",
        progress=shown,
        measure=False,
    )
    return _calibrated(whole, graphs, logits)


def fit_half(
    vision: VisionModel,
    k: int,
    photos: Sequence[Path],
    graphs: Sequence[SceneGraph],
    options: PhotoFitConfig,
    folder: Path,
    *,
    seed: int,
    shown: bool,
    measure: bool,
) -> list[int]:
    """Trains the network of a half, in place, on all photos but those of half k; gives the numbers of these."""
    fold = folds_of(len(photos), HALVES, seed)
    mine, others = (np.flatnonzero(which).tolist() for which in (fold != k, fold == k))
    data = PhotoSet([photos[i] for i in mine], [graphs[i] for i in mine], complete=False)
    fit_network(
        vision,
        data,
        options,
        options.epochs,
        folder,
        seed=seed + k,
        name=f"photos, half {k + 1}",
        progress=shown,
        measure=measure,
    )
    return others


def held_out_logits(
    vision: VisionModel,
    others: Sequence[int],
    photos: Sequence[Path],
    graphs: Sequence[SceneGraph],
    file: Path,
    k: int,
    *,
    progress: Callable[[str, int, int], Any] | None = None,
    unreadable: Callable[[DataError], Any] | None = None,
) -> dict[int, Tensor]:
    """Number of a photo -> logits ``(N, C)`` of its boxes, by a network that has not seen it; kept in `file`."""
    from safetensors.torch import save_file

    counts, labels = [len(graphs[i]) for i in others], len(vision.vocabulary.objects)
    if not file.is_file():
        rows = [torch.full((count, labels), torch.nan) for count in counts]  # of a photo that can't be read
        for done, i in enumerate(others):
            try:
                rows[done] = box_logits(vision, photos[i], graphs[i])
            except DataError as error:
                if unreadable is None:
                    raise
                unreadable(error)
            if progress is not None:
                progress(f"held out, half {k + 1}", done + 1, len(others))
        with whole_file(file) as part:
            save_file({"logits": torch.cat(rows)}, part)
    wanted = {"logits": torch.empty(sum(counts), labels, device="meta")}
    kept = read_tensors(file, wanted)["logits"].split(counts)
    return {i: rows for i, rows in zip(others, kept, strict=True) if not bool(rows.isnan().any())}


@torch.inference_mode()
def box_logits(vision: VisionModel, photo: Any, graph: SceneGraph) -> Tensor:
    """The label head's logits for the boxes of a photo, ``(N, C)``, the temperature not applied."""
    return vision.head(vision.extractor(*pixels_and_boxes(photo, graph)), graph_geometry(graph))


def _calibrated(whole: VisionModel, graphs: Sequence[SceneGraph], logits: dict[int, Tensor]) -> FittedVision:
    """The model with the temperature that suits what the halves said of the photos they had not seen."""
    places = sorted(logits)
    rows = torch.cat([logits[i] for i in places])
    labels = torch.from_numpy(np.concatenate([graphs[i].labels for i in places]).astype(np.int64))
    image = torch.arange(len(places)).repeat_interleave(torch.tensor([len(logits[i]) for i in places]))
    temperature = fit_temperature(rows, labels, image)
    whole.head.temperature.fill_(temperature)
    held_out: list[NDArray[np.float32] | None] = [None] * len(graphs)
    for i in places:
        held_out[i] = (logits[i] / temperature).softmax(1).numpy()
    return FittedVision(whole.eval(), held_out, label_figures(rows, labels, temperature))


def _pretrained(config: VisionConfig, options: PhotoFitConfig, folder: Path, seed: int, shown: bool) -> VisionModel:
    settings = options.pretrain
    photos, graphs, vocabulary = _open(settings)
    vision = new_vision(config, vocabulary, seed)
    data = PhotoSet(photos, graphs, complete=True)
    return fit_network(
        vision, data, options, settings.epochs, folder / "pretrain", seed=seed, name="pretraining", progress=shown
    )


def _open(settings: PretrainConfig) -> tuple[list[Path], list[SceneGraph], Vocabulary]:
    dataset = open_dataset(settings.path, images=settings.photos)
    if settings.limit and settings.limit < len(dataset):
        dataset = dataset[np.arange(settings.limit) * len(dataset) // settings.limit]
    found = [(path, i) for i in range(len(dataset)) if (path := dataset.image_path(i)) is not None]
    if not found:
        raise DataError(settings.path, "no photo of its images was found (photo.pretrain.photos)")
    return [path for path, _ in found], [dataset[i] for _, i in found], dataset.vocabulary


def _started(config: VisionConfig, vocabulary: Vocabulary, first: VisionModel | None, seed: int) -> VisionModel:
    """A new vision model that takes everything but the names from the one before, if there is one."""
    vision = new_vision(config, vocabulary, seed)
    if first is not None:
        vision.backbone.load_state_dict(first.backbone.state_dict())
        wanted, found = vision.head.state_dict(), first.head.state_dict()
        same = {name: value for name, value in found.items() if value.shape == wanted[name].shape}
        vision.head.load_state_dict({**wanted, **same})
    return vision
