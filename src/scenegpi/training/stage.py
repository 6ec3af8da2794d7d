"""One stage of a run, the baseline or the context: build, train, keep an epoch, calibrate, write."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import lightning as L
from lightning.pytorch.loggers import TensorBoardLogger
from torch.utils.data import DataLoader

from scenegpi.errors import DataError, OptionError
from scenegpi.features.batch import grouped
from scenegpi.files import write_json
from scenegpi.metrics import RecallState
from scenegpi.models.build import SceneModel, build_model, prepare_model
from scenegpi.models.calibration import Calibrations, fit_calibrations
from scenegpi.models.checkpoint import load_model, round_to_half, save_model
from scenegpi.models.fingerprint import Fingerprint
from scenegpi.options import plain
from scenegpi.training.batches import TrainingImages, as_they_are, train_loader
from scenegpi.training.config import TrainConfig
from scenegpi.training.data_split import Images, open_words
from scenegpi.training.folder import BASELINE, FINISHED, MODEL, STATE, RunFolder
from scenegpi.training.label_resampling import LabelResampler
from scenegpi.training.module import MONITOR, SceneModule, recall_figures, recall_plan, scored
from scenegpi.training.more_relations import count_more
from scenegpi.training.trainer import Bar, Patience, RunningMean, fit, make_trainer
from scenegpi.vision.model import VisionModel


class Run(NamedTuple):
    """A run in progress: what a stage is given, and changes for the next one.

    `vision` is the label predictor that gave the images' `label_dist`, `figures` its own; `start` a model whose
    baseline is used.
    """

    config: TrainConfig
    images: Images
    folder: Path
    shown: bool = False
    vision: VisionModel | None = None
    figures: dict[str, Any] | None = None
    resampler: LabelResampler | None = None
    start: Path | str | None = None


def train_stage(run: Run) -> Path:
    """Trains `config.model`, or continues after its last whole epoch, unless it is finished; returns its folder."""
    config, images, folder, optim = run.config, run.images, run.folder, run.config.stage.optim
    if (folder / FINISHED).is_file():
        return folder / MODEL
    if not images.validation and optim.keep == "best":
        raise OptionError('optim.keep: "best" needs validation images, and there are none')
    module = make_module(run)
    trainer, writer = stage_trainer(run)
    training = TrainingImages(images.train, config, run.resampler)
    loader = train_loader(training, trainer.global_rank, trainer.world_size)
    mine: Any = list(grouped(images.validation[trainer.global_rank :: trainer.world_size]))
    validation = DataLoader(mine, batch_size=None, collate_fn=as_they_are) if images.validation else None
    started = time.perf_counter()
    fit(trainer, module, loader, folder / STATE, validation)
    if trainer.is_global_zero:
        finish(run, writer)
        kept = writer.rows[-1].get(MONITOR) if optim.keep == "last" else writer.best
        figures = {MONITOR: kept} if images.validation else {}
        summary = {"epochs": len(writer.rows), **figures, "seconds": round(time.perf_counter() - started, 1)}
        write_json(folder / FINISHED, summary)
    trainer.strategy.barrier()
    return folder / MODEL


def finish(run: Run, writer: RunFolder) -> None:
    """Calibrates the kept model, computes its validation figures again, and writes it for the last time."""
    config, validation, model = run.config, run.images.validation, writer.kept
    if config.half:  # before calibration: if killed after writing, this is repeated with what was written
        round_to_half(model)
    calibration = config.calibration
    if calibration is None and validation and model.network.probabilities:
        calibration = fit_calibrations(model, validation, config.task)
    model.calibration = calibration or Calibrations()
    if model.calibration != Calibrations():
        given, found = model.calibration.predcls, model.calibration.sgcls
        print(f"calibrated: labels given, {given}; labels found, {found}", flush=True)
        for entry in writer.metrics.values():  # the order of relations over all pairs may change
            state = RecallState(recall_plan(config, model))
            state.update(scored(model, validation, config.scored_task), validation)
            entry["figures"] = recall_figures(state)
    save_model(model, run.folder / MODEL, writer.metrics, writer.record, overwrite=True, half=config.half)


def make_module(run: Run) -> SceneModule:
    """Model and loss, prepared on the training images; everything random starts from the seed."""
    config, images = run.config, run.images
    L.seed_everything(config.seed, workers=True, verbose=False)
    model = build_model(config.model, images.vocabulary, open_words(config, images.vocabulary))
    if run.start is None or config.model.system is not None:  # a baseline's counts and scales come with it
        prepare_model(model, images.train)
        count_more(model, config.data.more)
    model.trained_on = Fingerprint.of(images.train)
    if run.vision is not None and model.vision is not None:
        model.vision.load_state_dict(run.vision.state_dict())
        model.vision.requires_grad_(False)
    if run.start is not None:
        take_baseline(model, run.start)
    return SceneModule(model, config, str(run.folder))


def take_baseline(model: SceneModel, source: Path | str) -> None:
    """Weights, counts and scales of another model's baseline (in place); DataError if it is built differently."""
    other = load_model(source)
    if other.labels != model.labels:
        raise DataError(source, "vocabulary: differs from that of the training data")
    if model.baseline is None or other.baseline is None or other.config.baseline != model.config.baseline:
        raise DataError(source, "model.baseline: its settings differ from this run's")
    model.baseline.load_state_dict(other.baseline.state_dict())
    if other.trained_on is not None:
        model.trained_on = Fingerprint((model.trained_on or frozenset()) | other.trained_on)


def stage_trainer(run: Run) -> tuple[L.Trainer, RunFolder]:
    """The trainer with a running mean, early stopping, the stage's folder, and TensorBoard if it is installed."""
    config, optim = run.config, run.config.stage.optim
    mean = RunningMean(optim.average) if optim.average else None
    writer = RunFolder(run.folder, _record(run), mean, optim.keep == "last")
    callbacks: list[L.Callback] = [] if mean is None else [mean]
    if optim.keep == "best":
        callbacks.append(Patience(MONITOR, optim.patience))
    if run.shown:
        callbacks.append(Bar(config.model.system or ("context" if config.model.two_stages else BASELINE)))
    board = TensorBoardLogger(str(run.folder), name="", version="tensorboard") if find_spec("tensorboard") else False
    # A compared system may have weights that a batch does not use, such as those that decode labels.
    unused, epochs = config.model.system is not None, config.stage.epochs
    return make_trainer(config, config.seed, epochs, [*callbacks, writer], unused=unused, logger=board), writer


def _record(run: Run) -> dict[str, Any]:
    """How the model is made, for its card."""
    config, images, figures = run.config, run.images, run.figures
    record: dict[str, Any] = {"preset": config.preset, "task": config.task, "data": Path(config.data.path).name}
    record |= {"seed": config.seed, "training images": len(images.train), "validation images": len(images.validation)}
    if figures is not None:
        record["label predictor, held out"] = listed(figures)
    record["baseline"] = Path(config.start).name if config.start else plain(config.baseline)
    if config.model.two_stages:
        record["context"] = plain(config.context)
    return record


def listed(figures: dict[str, Any]) -> str:
    """Names and figures in one line."""
    return ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
