"""The trainings behind `vrd_photos.py`: label predictors and graph models, for each fold or on all photos.

Settings were chosen on photos of the training part of fold 0 (see `vrd_tried.py`); that the last epoch is kept, on the
folds themselves.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenegpi.data import Dataset
from scenegpi.features.batch import Seen
from scenegpi.files import read_object
from scenegpi.graph import SceneGraph
from scenegpi.models import load_model, save_model
from scenegpi.options import override
from scenegpi.training.config import TrainConfig, train_config
from scenegpi.training.data_split import Images
from scenegpi.training.photos import SeenImages, fit_photos, look_at, seeing, stage_figures
from scenegpi.training.run import read_run, train_graph
from scenegpi.vision.model import VisionModel

EYES: dict[str, dict[str, Any]] = {
    "crop": {"looks": {"nodes": "crop"}},
    "both": {},
}
"""A box looked at by itself; or also by RoIAlign on the map of the whole photo, which shows of its surroundings too."""
FIT: dict[str, dict[str, Any]] = {"crop": {}, "both": {"batch": 64, "rate": 1e-3}}
"""How the label predictor is trained, where not as usual."""
BASE: dict[str, Any] = {"counts": False}
CONTEXT: dict[str, Any] = {"read_again": True, "dropout": 0.35, "input_dropout": 0.2}
ORIGIN = (
    "trained on photos and annotations of Visual Relationship Detection (Lu et al. 2016), which are for research use "
    "only; no photo is contained. The backbone is EfficientNet-Lite0 (ImageNet) from its package, not contained"
)


class Row(NamedTuple):
    """A preset, what its context and its run change; and the row whose baseline it stands on.

    With `pair_looks` the graph models read what pixels show of pairs, and not label distributions alone.
    """

    preset: str
    context: Mapping[str, Any] = MappingProxyType({})
    run: Mapping[str, Any] = MappingProxyType({})
    base: str = "baseline"
    pair_looks: bool = False


ROWS: dict[str, Row] = {
    "baseline": Row("baseline"),
    "gpi-feature-attention": Row("gpi-feature-attention"),
    "gpi-no-attention": Row("gpi-no-attention"),
    "gpi-neighbour-attention": Row("gpi-neighbour-attention"),
    "gpi-linguistic": Row("gpi-linguistic"),
    "gpi-feature-attention, 2 steps": Row("gpi-feature-attention", {"steps": 2}),
    "gpi-feature-attention, 3 steps": Row("gpi-feature-attention", {"steps": 3}),
}


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
    """The photos' graphs with label distributions, held out wherever the label predictor was trained; their pair looks
    (None without boxes); and the label predictor."""

    graphs: list[SceneGraph]
    looks: list[NDArray[np.floating] | None]
    vision: VisionModel

    def of(self, rows: NDArray[np.bool_], pair_looks: bool) -> list[Seen]:
        """The photos in `rows` (n,) that have relations."""
        chosen = zip(self.graphs, self.looks, rows, strict=True)
        return [
            Seen(graph, look if pair_looks else None)
            for graph, look, inside in chosen
            if inside and len(graph.relations)
        ]


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


def settings(row: Row, setup: Setup, start: Path | None = None) -> TrainConfig:
    """The run of a row."""
    values: dict[str, Any] = {"preset": row.preset, "stage": "graph", "task": "both", "data": {"path": "vrd"}}
    values["model"] = {"vision": EYES[setup.looks], "baseline": BASE}
    values["fit"] = FIT[setup.looks] or None
    values["optim"] = {"epochs": setup.epochs or 5, "first_epochs": 0, "keep": "last"}
    values["augment"] = {"photos": 2}
    if row.preset != "baseline":
        values["model"]["context"] = {**CONTEXT, **row.context}
        values["optim"] |= {"epochs": setup.epochs or 6, "learning_rate": 2e-3, "pair_rate": 0.03}
        values["augment"] = {"photos": 3, "drop": 0.3, "given": 0.2}
        values["loss"] = {"entities": 16.0}
        values["start"] = str(start)
        values["data"]["words"] = str(setup.words) if row.preset == "gpi-linguistic" else None
    config = override(train_config(values), row.run, "")
    return seeing(config) if row.pair_looks else config


def fit_fold(images: Photos, train: NDArray[np.bool_], folder: Path, cache: Path, setup: Setup) -> SeenPhotos:
    """Trains the label predictor on the photos of `train` (n,), unless that is done, and looks at all photos."""
    config = settings(ROWS["baseline"], setup)
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
    looks: list[NDArray[np.floating] | None] = [None] * len(graphs)
    found = (seen.images.train, seen.train_looks), (seen.images.validation, seen.validation_looks)
    for side, (seen_graphs, seen_looks) in zip(sides, found, strict=True):
        for i, graph, look in zip(side.tolist(), seen_graphs, seen_looks, strict=True):
            graphs[i], looks[i] = graph, look
    return SeenPhotos(graphs, looks, seen.vision)


def train_row(
    name: str,
    row: Row,
    layouts: Sequence[SceneGraph],
    seen: SeenPhotos,
    train: NDArray[np.bool_],
    folder: Path,
    setup: Setup,
) -> Path:
    """The model of a row, trained on the layouts and the photos of `train` (n,) unless it is there."""
    run = run_folder(folder, name)
    if not (run / "finished.json").is_file():
        print(f"{run}: training", flush=True)
        photos = seen.of(train, row.pair_looks)
        images = Images([*layouts, *(each.graph for each in photos)], [], photos[0].graph.vocabulary)
        looks = [None] * len(layouts) + [each.pair_looks for each in photos]
        shown = SeenImages(images, looks, [], seen.vision)
        resume = (run / "config.json").is_file() and (run / "last.ckpt").is_file()
        if not resume:
            shutil.rmtree(run, ignore_errors=True)
        config = read_run(run) if resume else settings(row, setup, run_folder(folder, row.base) / "model")
        train_graph(config, images, shown, run, resume, False)
    return run / "model"


def run_folder(folder: Path, name: str) -> Path:
    """Where the run of a row is kept."""
    return folder / name.replace(", ", "-").replace(" ", "-")


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
        model = train_row(name, ROWS[name], images.layouts, seen, everything, folder, setup)
    loaded, about = load_model(model), read_object(model / "config.json")["training"]
    figures = read_object(model / "metrics.json")
    record = {**about, "photos": len(images.graphs), "images without pixels": len(images.layouts), "origin": ORIGIN}
    save_model(loaded, out, {**figures, **(metrics or {})}, record, overwrite=out.exists(), half=True)
    return out
