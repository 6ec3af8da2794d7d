"""The stage before graphs: a label predictor from photos, and its held-out label distributions of every training image.

    fit_stage(config, images, folder)                   # once per run
    vision = load_stage(config, images.vocabulary, folder)
    images = with_label_dist(config, images, folder, vision)      # the same; graphs with a photo carry `label_dist`

    RUN/vision/features/              box features, one file per photo (or in `data.cache`)
    RUN/vision/vision.safetensors     the label predictor
    RUN/vision/held_out.safetensors   its label distributions of the training boxes, each from a predictor that was not
                                      trained on that image: what the graph stage learns to correct
    RUN/vision/finder.json            the finder's settings, calibrated on validation photos, for a photo network
    RUN/vision/figures.json           accuracies; the stage is done once this exists

Every file is written whole, figures.json last: after a kill at any moment `fit_stage` starts again, and existing
features of photos are not computed again. A photo that cannot be read is reported, and its image then trains as one
without a photo.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scenegpi.errors import DataError
from scenegpi.files import read_figures, read_object, whole_file, write_json
from scenegpi.graph import SceneGraph
from scenegpi.models.checkpoint import read_tensors
from scenegpi.options import override, plain
from scenegpi.progress import watched
from scenegpi.training.config import TrainConfig
from scenegpi.training.data_split import Images
from scenegpi.training.finder_calibration import fit_finder
from scenegpi.training.label_head import fit_vision, report_unreadable
from scenegpi.training.photo_network import WEIGHTS, fit_photo_network, save_weights, take_weights
from scenegpi.training.processes import is_first_process, wait_for
from scenegpi.vision.cache import cached_box_features
from scenegpi.vision.config import FinderConfig, VisionConfig
from scenegpi.vision.model import VisionModel
from scenegpi.vision.network import PhotoNetwork
from scenegpi.vocabulary import Vocabulary

STAGE, HELD_OUT, FINDER, FIGURES = "vision", "held_out.safetensors", "finder.json", "figures.json"


def fit_stage(config: TrainConfig, images: Images, folder: Path, shown: bool = False) -> dict[str, Any]:
    """Trains the label predictor on the photos of the training images, writes the stage, and gives its figures.

    The figures are "photos", the number of training photos, and those of `FittedVision`. All processes train a photo
    network; the first one writes, and it trains a label head alone.
    """
    from safetensors.torch import save_file

    stage, first = folder / STAGE, is_first_process()
    places = {i: path for i, path in enumerate(images.train_photos) if path is not None}
    if len(places) < 2:
        raise DataError(config.data.path, f"photos of {len(places)} training images were found (--photos)")
    vision = config.model.vision or VisionConfig()
    data = images.vocabulary, list(places.values()), [images.train[i] for i in places]
    if vision.features.finds:
        fitted = fit_photo_network(config, vision, *data, stage, shown)
    elif first:
        cache, options = _cache(config, folder), config.fit
        fitted = fit_vision(vision, *data, cache, options=options, seed=config.seed, machine=config, shown=shown)
    if not first:
        wait_for(stage / FIGURES)
        return read_figures(stage / FIGURES)
    # Rows of zeros, which are not a distribution, mark boxes without a readable photo.
    rows = [np.zeros((len(graph), len(images.vocabulary.objects)), dtype=np.float32) for graph in images.train]
    readable = {i: dist for i, dist in zip(places, fitted.held_out, strict=True) if dist is not None}
    for i, dist in readable.items():
        rows[i] = dist
    (stage / FIGURES).unlink(missing_ok=True)
    save_weights(fitted.model, stage / WEIGHTS)
    with whole_file(stage / HELD_OUT) as part:
        save_file({"label_dist": torch.from_numpy(np.concatenate(rows))}, part)
    validation = [(p, g) for p, g in zip(images.validation_photos, images.validation, strict=True) if p is not None]
    if isinstance(fitted.model.backbone, PhotoNetwork) and validation:
        write_json(stage / FINDER, plain(fit_finder(fitted.model, validation)))
    figures = {"photos": len(readable), **fitted.figures}
    write_json(stage / FIGURES, figures)
    return figures


def with_label_dist(
    config: TrainConfig, images: Images, folder: Path, vision: VisionModel, shown: bool = False
) -> Images:
    """The images, with `label_dist` in every graph whose photo can be read.

    Those of training images are the held-out ones; validation images are predicted by `vision`, the stage's own.
    """
    counts = [len(graph) for graph in images.train]
    wanted = {"label_dist": torch.empty(sum(counts), len(images.vocabulary.objects), device="meta")}
    rows = read_tensors(folder / STAGE / HELD_OUT, wanted)["label_dist"].split(counts)
    train = [
        graph.replace(label_dist=dist.numpy()) if bool(dist.any()) else graph
        for graph, dist in zip(images.train, rows, strict=True)
    ]
    cache, key = _cache(config, folder), vision.extractor.key()
    both = zip(images.validation, images.validation_photos, strict=True)
    validation: list[SceneGraph] = []
    for graph, path in watched(both, "photos", len(images.validation), shown):
        validation.append(graph if path is None else _labelled(vision, path, graph, cache, key))
    return images._replace(train=train, validation=validation)


def load_stage(config: TrainConfig, vocabulary: Vocabulary, folder: Path) -> VisionModel:
    """The label predictor of the stage, for prediction only; DataError if the stage is not done."""
    if stage_figures(folder) is None:
        raise DataError(folder / STAGE, "the label predictor is not trained yet")
    vision = VisionModel(config.model.vision or VisionConfig(), vocabulary)
    vision.everyday = False  # the graph model learns with labels alone
    take_weights(vision, folder / STAGE / WEIGHTS)
    finder = folder / STAGE / FINDER
    if finder.is_file():
        vision.config = replace(vision.config, finder=override(FinderConfig(), read_object(finder), ""))
    return vision.requires_grad_(False)


def stage_figures(folder: Path) -> dict[str, Any] | None:
    """The figures of the stage; None if it is not done."""
    path = folder / STAGE / FIGURES
    return read_figures(path) if path.is_file() else None


def _labelled(vision: VisionModel, path: Path, graph: SceneGraph, cache: Path, key: str) -> SceneGraph:
    try:
        features = cached_box_features(vision.extractor, path, graph, cache, key)
    except DataError as error:
        report_unreadable(error)
        return graph
    return graph.replace(label_dist=vision.label_dist_of(features, graph))


def _cache(config: TrainConfig, folder: Path) -> Path:
    return Path(config.data.cache) if config.data.cache else folder / STAGE / "features"
