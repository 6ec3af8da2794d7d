"""A training run from configuration to model: a list of stages, each of which can be resumed after a kill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from scenegpi.bulk.digests import weights_digest
from scenegpi.errors import DataError, OptionError, SceneGPIError, naming
from scenegpi.files import read_object, tidy, write_json
from scenegpi.locks import LOCK, folder_lock
from scenegpi.models.config import ModelConfig
from scenegpi.models.shipped import find_model
from scenegpi.options import plain
from scenegpi.training.config import START, TrainConfig, stored_config
from scenegpi.training.data_split import open_images, open_words
from scenegpi.training.folder import BASELINE, CONFIG, FINISHED, MODEL, check_empty
from scenegpi.training.label_predictor import STAGE as VISION
from scenegpi.training.label_predictor import fit_stage, load_stage, stage_figures, with_label_dist
from scenegpi.training.label_resampling import LabelResampler
from scenegpi.training.more_relations import add_relations
from scenegpi.training.photo_network import continue_network
from scenegpi.training.processes import is_first_process
from scenegpi.training.stage import Run, listed, train_stage
from scenegpi.vision.config import HF
from scenegpi.vision.hf_trunk import read_architecture


def train(config: TrainConfig, folder: str | Path, *, progress: bool = False) -> Path:
    """Trains a new run in a folder that is empty or does not exist; returns the folder of its model."""
    folder = Path(folder)
    if not is_first_process():
        return _train(config, folder, False)
    with folder_lock(folder):
        check_empty(folder)
        write_json(folder / CONFIG, plain(config) | {START: start_digest(config.start)})
        try:
            return _train(config, folder, progress)
        except SceneGPIError:
            _free(folder)
            raise


def resume(folder: str | Path, *, progress: bool = False) -> Path:
    """Continues a run after its last whole epoch, with its own settings; returns the folder of its model."""
    folder = Path(folder)
    config = read_run(folder)
    if not is_first_process():
        return _train(config, folder, False)
    with folder_lock(folder):
        tidy(folder)
        return _train(config, folder, progress)


def read_run(folder: str | Path) -> TrainConfig:
    """The configuration of a run to resume; DataError if the folder contains no run, or a finished one, or if the model
    that it starts from has changed."""
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        raise DataError(folder, "no run to resume (no config.json)")
    if (folder / FINISHED).is_file():
        raise DataError(folder, f"this run is finished; its model is {folder / MODEL}")
    stored = read_object(folder / CONFIG)
    with naming(folder / CONFIG, OptionError):
        config = stored_config(stored)
    if stored.get(START) not in (None, start_digest(config.start)):  # None: no start, or a run of an earlier version
        raise DataError(folder / CONFIG, f"start: {config.start} is not what it was when this run began: train anew")
    return config


def start_digest(start: str | None) -> str | None:
    """The digest of all that a run takes from its start: the model's files, and the label predictor's."""
    if start is None:
        return None
    vision = _vision_run(start)
    return weights_digest(str(_start_model(start)), None if vision is None else str(vision / VISION))


def stages(config: TrainConfig) -> list[Callable[[Run], Run]]:
    """The stages, in order. A stage whose result is in the folder takes it from there."""
    photos = [] if config.model.vision is None else [label_predictor]
    return [*photos, label_distributions, *([baseline] if config.model.two_stages else []), graph_model]


def _train(config: TrainConfig, folder: Path, shown: bool) -> Path:
    config = replace(config, model=with_architecture(config.model))
    images = open_images(config.data, photos=config.model.vision is not None)
    open_words(config, images.vocabulary)  # now, not after hours: the last stage needs readable words
    if config.data.more.only:
        add_relations(config, images.vocabulary, folder)
    elif config.photo.continued:
        continue_network(config, images, folder, shown)
    else:
        run = Run(config, images, folder, shown)
        for stage in stages(config):
            run = stage(run)
    return folder / MODEL


def with_architecture(model: ModelConfig) -> ModelConfig:
    """What a trained model must know about a backbone of transformers once its folder is gone."""
    if model.vision is None or not model.vision.features.backbone.startswith(HF):
        return model
    features = model.vision.features
    features = replace(features, architecture=read_architecture(features.backbone.removeprefix(HF)))
    return replace(model, vision=replace(model.vision, features=features))


def label_predictor(run: Run) -> Run:
    """Photos -> label distributions, by a predictor trained here or taken from another run."""
    config, images, shown = run.config, run.images, run.shown
    folder = _vision_run(config.start) or run.folder
    if stage_figures(folder) is None:
        figures = fit_stage(config, images, folder, shown)
        if is_first_process():
            print(f"label predictor, on boxes it was not trained on: {listed(figures)}", flush=True)
    vision = load_stage(config, images.vocabulary, folder)
    images = with_label_dist(config, images, folder, vision, shown)
    config = replace(config, model=replace(config.model, vision=vision.config))
    return run._replace(config=config, images=images, vision=vision, figures=stage_figures(folder))


def label_distributions(run: Run) -> Run:
    """Images without label distributions get those of other images, drawn anew each epoch."""
    images = run.images
    if run.config.task == "predcls" or all(graph.label_dist is not None for graph in images.train):
        return run
    if run.vision is None:
        raise OptionError("task: sgcls needs label distributions (photos or --distributions)")
    return run._replace(resampler=LabelResampler(images.train, len(images.vocabulary.objects)))


def baseline(run: Run) -> Run:
    """Each box and each pair by itself: trained, or taken from another run."""
    config = run.config
    if config.start is not None:
        return run._replace(start=find_model(_start_model(config.start)))
    first = replace(config, preset=BASELINE, model=config.model.first_stage(), half=False, calibration=None)
    return run._replace(start=train_stage(run._replace(config=first, folder=run.folder / BASELINE)))


def graph_model(run: Run) -> Run:
    """The whole model, on its baseline if it has one."""
    train_stage(run)
    return run


def _vision_run(start: str | None) -> Path | None:
    """The run whose label predictor is used: the one to start from, or the one from which that took its own."""
    while start is not None and not (Path(start) / VISION).is_dir():
        config = Path(start) / CONFIG
        found = read_object(config).get("start") if config.is_file() else None
        start = found if isinstance(found, str) and found != start else None
    return None if start is None else Path(start)


def _start_model(start: str) -> Path | str:
    """The model whose baseline is used: that of a run's baseline, or of the run; or `start` is a model itself."""
    for folder in (Path(start) / BASELINE / MODEL, Path(start) / MODEL):
        if folder.is_dir():
            return folder
    return start


def _free(folder: Path) -> None:
    """The run wrote nothing but its settings: the folder can be used again."""
    if {each.name for each in folder.iterdir()} <= {CONFIG, LOCK}:
        (folder / CONFIG).unlink(missing_ok=True)
