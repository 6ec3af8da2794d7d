"""The stage before graphs: a label predictor from photos, and what it shows of every training image.

    RUN/vision/vision.safetensors     the label predictor
    RUN/vision/held_out.safetensors   its label distributions of the training boxes, each from a predictor that was
                                      trained without that image: what the graph stage learns to correct
    RUN/vision/figures.json           how good they are; written last, so the stage is done when it is there

A photo that can't be read is reported, and its image then trains as one without pixels.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from scenegpi.errors import DataError, OptionError
from scenegpi.files import read_object, whole_file
from scenegpi.graph import SceneGraph
from scenegpi.models.checkpoint import read_tensors
from scenegpi.models.config import ModelConfig
from scenegpi.training.config import TrainConfig
from scenegpi.training.data_split import Images
from scenegpi.training.folder import write_json
from scenegpi.vision.cache import photo_looks
from scenegpi.vision.config import VisionConfig
from scenegpi.vision.fit import fit_vision
from scenegpi.vision.model import VisionModel
from scenegpi.vision.photos import open_photo
from scenegpi.vocabulary import Vocabulary

STAGE, WEIGHTS, HELD_OUT, FIGURES = "vision", "vision.safetensors", "held_out.safetensors", "figures.json"
Progress = Callable[[str, int, int], None]
Looks = list[NDArray[np.floating] | None]


class SeenImages(NamedTuple):
    """Images whose graphs carry label distributions where there are photos, their pair looks, and who saw them."""

    images: Images
    train_looks: Looks
    validation_looks: Looks
    vision: VisionModel


def seeing(config: TrainConfig) -> TrainConfig:
    """The configuration with a vision model, and a baseline that reads as many columns as that gives."""
    vision = config.model.vision or VisionConfig()
    with torch.device("meta"):
        width = VisionModel(vision, Vocabulary(["a"], ["b"])).pair_width
    model: ModelConfig = replace(config.model, vision=vision, baseline=replace(config.model.baseline, looks=width))
    return replace(config, model=model)


def fit_photos(config: TrainConfig, images: Images, folder: Path, progress: Progress | None = None) -> dict[str, Any]:
    """Trains the label predictor on the photos of the training images and writes the stage; gives its figures."""
    photos, graphs, _ = _with_photos(images.train, images.train_photos, say=True)
    if len(photos) < 2:
        raise DataError(config.data.path, f"photos of {len(photos)} training images were found (data.photos, --photos)")
    fitted = fit_vision(
        _vision(config),
        images.vocabulary,
        photos,
        graphs,
        cache_of(config, folder),
        seed=config.seed,
        options=config.fit,
        progress=progress,
    )
    if not fitted.held_out:
        raise OptionError("fit.folds: the graph stage needs held-out distributions, so at least 2 folds")
    from safetensors.torch import save_file

    with whole_file(folder / STAGE / WEIGHTS) as part:
        save_file({name: value.contiguous() for name, value in fitted.model.state_dict().items()}, part)
    with whole_file(folder / STAGE / HELD_OUT) as part:
        save_file({"label_dist": torch.from_numpy(np.concatenate(fitted.held_out).astype(np.float32))}, part)
    figures = {"photos": len(photos), **fitted.figures}
    write_json(folder / STAGE / FIGURES, figures)
    return figures


def look_at(config: TrainConfig, images: Images, folder: Path, progress: Progress | None = None) -> SeenImages:
    """What the label predictor of the stage shows of all images with photos; DataError where the stage is not done."""
    vision = VisionModel(_vision(config), images.vocabulary)
    vision.load_state_dict(read_tensors(folder / STAGE / WEIGHTS, vision.state_dict()))
    vision.eval().requires_grad_(False)
    _, graphs, places = _with_photos(images.train, images.train_photos, say=False)
    shape = (sum(map(len, graphs)), len(images.vocabulary.objects))
    rows = read_tensors(folder / STAGE / HELD_OUT, {"label_dist": torch.empty(shape, device="meta")})["label_dist"]
    train = list(images.train)
    for place, dist in zip(places, rows.split([len(graph) for graph in graphs]), strict=True):
        train[place] = train[place].replace(label_dist=dist.numpy())
    cache = cache_of(config, folder)
    train_looks, _ = _looks(vision, images.train, images.train_photos, cache, progress)
    validation_looks, dists = _looks(vision, images.validation, images.validation_photos, cache, progress)
    pairs = zip(images.validation, dists, strict=True)
    validation = [graph if dist is None else graph.replace(label_dist=dist) for graph, dist in pairs]
    return SeenImages(images._replace(train=train, validation=validation), train_looks, validation_looks, vision)


def stage_figures(folder: Path) -> dict[str, Any] | None:
    """The figures of the stage, or None where it is not done."""
    path = folder / STAGE / FIGURES
    return read_object(path) if path.is_file() else None


def wait_for_stage(folder: Path, seconds: float = 24 * 3600.0) -> None:
    """Returns when another process has done the stage."""
    until = time.monotonic() + seconds
    while stage_figures(folder) is None:
        if time.monotonic() > until:
            raise DataError(folder / STAGE, "the first process did not finish the vision stage")
        time.sleep(1.0)


def cache_of(config: TrainConfig, folder: Path) -> Path:
    """Where looks are kept."""
    return Path(config.data.cache) if config.data.cache else folder / STAGE / "looks"


def _vision(config: TrainConfig) -> VisionConfig:
    if config.model.vision is None:
        raise OptionError("model.vision: this stage needs a vision model")
    return config.model.vision


def _with_photos(
    graphs: Sequence[SceneGraph], paths: Sequence[Path | None], say: bool
) -> tuple[list[Path], list[SceneGraph], list[int]]:
    """Of the images whose photo can be read: photos, graphs, and their places among all; `say` which can't."""
    found: list[tuple[Path, SceneGraph, int]] = []
    for place, (graph, path) in enumerate(zip(graphs, paths, strict=True)):
        if path is None:
            continue
        try:
            open_photo(path)
        except DataError as error:
            if say:
                print(f"{error}: left out", file=sys.stderr)
            continue
        found.append((path, graph, place))
    return [path for path, _, _ in found], [graph for _, graph, _ in found], [place for _, _, place in found]


def _looks(
    vision: VisionModel,
    graphs: Sequence[SceneGraph],
    paths: Sequence[Path | None],
    cache: Path,
    progress: Progress | None,
) -> tuple[Looks, list[NDArray[np.float32] | None]]:
    looks: Looks = []
    dists: list[NDArray[np.float32] | None] = []
    for k, (graph, path) in enumerate(zip(graphs, paths, strict=True)):
        try:
            found = None if path is None else photo_looks(vision.extractor, path, graph, cache)
        except DataError:  # said when photos were first opened
            found = None
        looks.append(None if found is None else found.pairs.numpy())
        dists.append(None if found is None else vision.label_dist(found, graph))
        if progress is not None:
            progress("photos", k + 1, len(graphs))
    return looks, dists
