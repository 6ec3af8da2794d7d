"""The trainings behind `vrd_photos.py`: label predictors and graph models, for each fold or on all photos.

Settings were chosen on photos of the training part of fold 0 (three quarters to train, one to choose by), and not
changed after the folds were scored.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenegpi.data import Dataset
from scenegpi.data.files import read_object
from scenegpi.graph import SceneGraph
from scenegpi.models import load_model, save_model
from scenegpi.training.config import TrainConfig, train_config
from scenegpi.training.photos import SeenImages, fit_photos, look_at, stage_figures
from scenegpi.training.run import read_run, train_graph
from scenegpi.training.sources import Images
from scenegpi.vision.model import VisionModel

VALIDATION = 64
"""Photos of the training part that only choose the epoch."""
LOOKS: dict[str, dict[str, Any]] = {"crop": {"nodes": "crop"}, "both": {}}
"""A box looked at by itself; or also by RoIAlign on the map of the whole photo, which shows of its surroundings too."""
BASE: dict[str, Any] = {"counts": False}
CONTEXT: dict[str, Any] = {"read_again": True, "dropout": 0.35, "input_dropout": 0.2}
ORIGIN = (
    "trained on photos and annotations of Visual Relationship Detection (Lu et al. 2016), which are for research use "
    "only; no photo is contained. The backbone is EfficientNet-Lite0 (ImageNet) from its package, not contained"
)
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "baseline": ("baseline", {}),
    "gpi-feature-attention": ("gpi-feature-attention", {}),
    "gpi-no-attention": ("gpi-no-attention", {}),
    "gpi-neighbour-attention": ("gpi-neighbour-attention", {}),
    "gpi-linguistic": ("gpi-linguistic", {}),
    "gpi-feature-attention, 2 steps": ("gpi-feature-attention", {"steps": 2}),
    "gpi-feature-attention, 3 steps": ("gpi-feature-attention", {"steps": 3}),
}
"""Row -> preset, and what its context changes."""


class Setup(NamedTuple):
    """What all runs share: how boxes are looked at, word vectors, and epochs where not the usual ones."""

    looks: str = "crop"
    words: Path | None = None
    epochs: int | None = None


class Photos(NamedTuple):
    """Annotated images without pixels; and those with photos, in the order of the data set."""

    layouts: list[SceneGraph]
    graphs: list[SceneGraph]
    paths: list[Path]


class SeenPhotos(NamedTuple):
    """The photos' graphs with label distributions, held out wherever the label predictor was trained; and itself."""

    graphs: list[SceneGraph]
    vision: VisionModel


def open_photos(data: Dataset) -> Photos:
    """Images with a photo against training images without."""
    train = data.split("train").drop_empty()
    layouts = [graph for i, graph in enumerate(train) if train.image_path(i) is None]
    test = data.split("test")
    found = [(graph, test.image_path(i)) for i, graph in enumerate(test)]
    seen = [(graph, path) for graph, path in found if path is not None]
    return Photos(layouts, [graph for graph, _ in seen], [path for _, path in seen])


def deal(photos: int, folds: int) -> NDArray[np.int64]:
    """The fold of each photo, (n,)."""
    fold = np.empty(photos, dtype=np.int64)
    fold[np.random.default_rng(0).permutation(photos)] = np.arange(photos) % folds
    return fold


def settings(row: str, setup: Setup, start: Path | None = None) -> TrainConfig:
    """The run of a row."""
    name, changes = ROWS[row]
    values: dict[str, Any] = {"preset": name, "stage": "graph", "task": "both", "data": {"path": "vrd"}}
    values["model"] = {"vision": {"looks": LOOKS[setup.looks]}, "baseline": BASE}
    values["optim"] = {"epochs": setup.epochs or 5, "first_epochs": 0, "patience": 100}
    values["augment"] = {"photos": 2}
    if name != "baseline":
        values["model"]["context"] = {**CONTEXT, **changes}
        values["optim"] |= {"epochs": setup.epochs or 6, "learning_rate": 2e-3, "pair_rate": 0.03}
        values["augment"] = {"photos": 3, "drop": 0.3, "given": 0.2}
        values["loss"] = {"entities": 16.0}
        values["start"] = str(start)
        values["data"]["words"] = str(setup.words) if name == "gpi-linguistic" else None
    return train_config(values)


def fit_fold(images: Photos, train: NDArray[np.bool_], folder: Path, cache: Path, setup: Setup) -> SeenPhotos:
    """Trains the label predictor on the photos of `train` (n,), unless that is done, and looks at all photos."""
    config = settings("baseline", setup)
    config = replace(config, data=replace(config.data, cache=str(cache)))
    useful = np.array([len(graph) > 0 for graph in images.graphs])
    sides = [np.flatnonzero(useful & side) for side in (train, ~train)]
    parts = [[images.graphs[i] for i in side] for side in sides]
    paths = [[images.paths[i] for i in side] for side in sides]
    both = Images(*parts, images.graphs[0].vocabulary, *paths)  # type: ignore[arg-type]
    if stage_figures(folder) is None:
        print(f"{folder}: label predictor, held out {fit_photos(config, both, folder)}", flush=True)
    seen = look_at(config, both, folder)
    graphs = list(images.graphs)
    for side, found in zip(sides, (seen.images.train, seen.images.validation), strict=True):
        for i, graph in zip(side.tolist(), found, strict=True):
            graphs[i] = graph
    return SeenPhotos(graphs, seen.vision)


def train_row(
    row: str,
    layouts: Sequence[SceneGraph],
    seen: SeenPhotos,
    train: NDArray[np.bool_],
    folder: Path,
    setup: Setup,
) -> Path:
    """The model of a row, trained on the layouts and the photos of `train` (n,) unless it is there."""
    run = folder / row.replace(", ", "-").replace(" ", "-")
    if not (run / "finished.json").is_file():
        print(f"{run}: training", flush=True)
        photos = [graph for graph, inside in zip(seen.graphs, train, strict=True) if inside and len(graph.relations)]
        aside = min(VALIDATION, len(photos) // 4)
        images = Images([*layouts, *photos[aside:]], photos[:aside], photos[0].vocabulary)
        # The graph models read label distributions alone, not the looks of pairs: see docs/vrd-photos.md.
        blind = [[None] * len(images.train), [None] * aside]
        resume = (run / "config.json").is_file() and (run / "last.ckpt").is_file()
        if not resume:
            shutil.rmtree(run, ignore_errors=True)
        config = read_run(run) if resume else settings(row, setup, folder / "baseline" / "model")
        train_graph(config, images, SeenImages(images, *blind, seen.vision), run, resume, False)  # type: ignore[arg-type]
    return run / "model"


def ship(
    images: Photos,
    runs: Path,
    cache: Path,
    row: str,
    setup: Setup,
    out: Path,
    metrics: dict[str, Any] | None = None,
) -> Path:
    """Trains a row on all photos and writes its model, with `metrics` of the folds on its card."""
    folder = runs / "all"
    everything = np.ones(len(images.graphs), dtype=bool)
    seen = fit_fold(images, everything, folder, cache, setup)
    for name in ("baseline", row):
        model = train_row(name, images.layouts, seen, everything, folder, setup)
    loaded, about = load_model(model), read_object(model / "config.json")["training"]
    figures = read_object(model / "metrics.json")
    record = {**about, "photos": len(images.graphs), "images without pixels": len(images.layouts), "origin": ORIGIN}
    save_model(loaded, out, {**figures, **(metrics or {})}, record, overwrite=out.exists(), half=True)
    return out
