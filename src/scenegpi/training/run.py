"""A training run from configuration to model: label predictor, baseline, context; it can be resumed after a kill."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from scenegpi.errors import DataError, OptionError, SceneGPIError
from scenegpi.files import read_object, tidy, write_json
from scenegpi.locks import LOCK, folder_lock
from scenegpi.models.old_settings import one_network
from scenegpi.models.shipped import find_model
from scenegpi.options import override, plain
from scenegpi.training.callbacks import StageBar
from scenegpi.training.config import TrainConfig
from scenegpi.training.data_split import Images, open_images, open_words
from scenegpi.training.folder import BASELINE, CONFIG, FINISHED, MODEL, check_empty
from scenegpi.training.label_resampling import LabelResampler
from scenegpi.training.simulate import label_shares, simulated
from scenegpi.training.stage import Stage, train_stage
from scenegpi.training.vision_stage import STAGE as VISION
from scenegpi.training.vision_stage import fit_stage, load_stage, stage_figures, wait_for_stage, with_label_dist
from scenegpi.vision.model import VisionModel


def train(config: TrainConfig, folder: str | Path, *, progress: bool = False) -> Path:
    """Trains a new run and gives the folder of its model.

    Args:
        config: of the run.
        folder: of the run; must be empty, or not there.
        progress: show bars.
    """
    folder = Path(folder)
    if not is_first_process():
        return _train(config, folder, False)
    with folder_lock(folder):
        check_empty(folder)
        write_json(folder / CONFIG, plain(config))
        try:
            return _train(config, folder, progress)
        except SceneGPIError:
            _free(folder)
            raise


def resume(folder: str | Path, *, progress: bool = False) -> Path:
    """Goes on with a run after its last whole epoch, with its own settings; gives the folder of its model."""
    folder = Path(folder)
    config = read_run(folder)
    if not is_first_process():
        return _train(config, folder, False)
    with folder_lock(folder):
        tidy(folder)
        return _train(config, folder, progress)


def read_run(folder: str | Path) -> TrainConfig:
    """The configuration of a run that is to be resumed; DataError if there is none, or nothing left to do."""
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        raise DataError(folder, "no run to resume: it holds no config.json")
    if (folder / FINISHED).is_file():
        raise DataError(folder, f"this run is finished; its model is {folder / MODEL}")
    try:
        values = read_object(folder / CONFIG)
        return override(TrainConfig(), values | {"model": one_network(values.get("model", {}))}, "")
    except OptionError as error:
        raise DataError(folder / CONFIG, str(error)) from None


def is_first_process() -> bool:
    """Whether this process makes the folder.

    RANK comes from torchrun, SLURM_PROCID from srun, the others from Lightning's own launcher.
    """
    one = next((name for name in ("RANK", "SLURM_PROCID") if name in os.environ), None)
    names = ("LOCAL_RANK", "NODE_RANK") if one is None else (one,)
    return all(os.environ.get(name, "0") == "0" for name in names)


def _train(config: TrainConfig, folder: Path, progress: bool) -> Path:
    images = open_images(config.data, photos=config.model.vision is not None)
    open_words(config, images.vocabulary)  # now, not after hours: a run whose words cannot be read has no last stage
    if config.photo.only:
        from scenegpi.training.eyes import train_eyes

        return train_eyes(config, images, folder, progress)
    vision, figures = None, None
    if config.model.vision is not None:
        images, vision, figures = _vision(config, images, folder, progress)
        config = replace(config, model=replace(config.model, vision=vision.config))
    resampler = None
    if config.simulate is not None:
        shares = label_shares(images.train, len(images.vocabulary.objects))
        images = images._replace(validation=list(simulated(images.validation, shares, config.simulate, config.seed)))
    elif config.task != "predcls" and any(graph.label_dist is None for graph in images.train):
        if vision is None:
            raise OptionError("task: sgcls needs label distributions (data.distributions, or simulate to make them up)")
        resampler = LabelResampler(images.train, len(images.vocabulary.objects))
    record = _record(config, images, figures)
    last = Stage(config, config.stage, config.model, folder, vision=vision, resampler=resampler)
    if not config.model.two_stages:
        return train_stage(last, images, record, progress)
    if config.start is not None:
        start = find_model(_start_model(config.start))
    else:
        first = last._replace(settings=config.baseline, model=config.model.first_stage(), folder=folder / BASELINE)
        about = {key: value for key, value in record.items() if key != "context"}
        start = train_stage(first, images, {**about, "preset": BASELINE}, progress)
    return train_stage(last._replace(start=start), images, record, progress)


def _vision(
    config: TrainConfig, images: Images, folder: Path, progress: bool
) -> tuple[Images, VisionModel, dict[str, Any] | None]:
    """The images with label distributions, the label predictor that gave them, and its figures."""
    folder = _vision_run(config.start) or folder
    with StageBar(progress) as bar:
        if stage_figures(folder) is None:
            if is_first_process():
                figures = fit_stage(config, images, folder, bar)
                shown = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
                print(f"label predictor, on boxes it was not trained on: {shown}", flush=True)
            else:
                wait_for_stage(folder)
        images = with_label_dist(config, images, folder, bar)
    return images, load_stage(config, images.vocabulary, folder), stage_figures(folder)


def _vision_run(start: str | None) -> Path | None:
    """The run whose label predictor is taken over: the one to start from, or the one that it took its own from."""
    while start is not None and not (Path(start) / VISION).is_dir():
        config = Path(start) / CONFIG
        found = read_object(config).get("start") if config.is_file() else None
        start = found if isinstance(found, str) and found != start else None
    return None if start is None else Path(start)


def _start_model(start: str) -> Path | str:
    """The model of a run whose baseline is taken over: its baseline's, or its own; or `start` is a model itself."""
    for folder in (Path(start) / BASELINE / MODEL, Path(start) / MODEL):
        if folder.is_dir():
            return folder
    return start


def _record(config: TrainConfig, images: Images, figures: dict[str, Any] | None) -> dict[str, Any]:
    """How the model is made, for its card."""
    record: dict[str, Any] = {"preset": config.preset, "task": config.task, "data": Path(config.data.path).name}
    record |= {"seed": config.seed, "training images": len(images.train), "validation images": len(images.validation)}
    if figures is not None:
        record["label predictor, held out"] = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
    record["baseline"] = config.start or plain(config.baseline)
    if config.model.two_stages:
        record["context"] = plain(config.context)
    if config.simulate is not None:
        record["simulate"] = plain(config.simulate)
    return record


def _free(folder: Path) -> None:
    """Nothing came of the run but its settings: the folder can be used again."""
    if {each.name for each in folder.iterdir()} <= {CONFIG, LOCK}:
        (folder / CONFIG).unlink(missing_ok=True)
