"""One stage of a run, the baseline or the context: build, train, keep an epoch, calibrate, write."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import lightning as L
from lightning.pytorch.loggers import TensorBoardLogger
from torch.utils.data import DataLoader

from scenegpi.errors import DataError, OptionError
from scenegpi.features.batch import grouped
from scenegpi.files import write_json
from scenegpi.graph import SceneGraph
from scenegpi.metrics import RecallState
from scenegpi.models.build import SceneModel, build_model, prepare_model
from scenegpi.models.calibration import Calibrations, fit_calibrations
from scenegpi.models.checkpoint import load_model, round_to_half, save_model
from scenegpi.models.config import ModelConfig
from scenegpi.models.fingerprint import Fingerprint
from scenegpi.training.batches import TrainingImages, as_they_are, train_loader
from scenegpi.training.callbacks import Bar, Patience, RunningMean
from scenegpi.training.config import StageConfig, TrainConfig
from scenegpi.training.data_split import Images, open_words
from scenegpi.training.folder import FINISHED, MODEL, STATE, RunFolder
from scenegpi.training.label_resampling import LabelResampler
from scenegpi.training.module import MONITOR, SceneModule, recall_figures, recall_plan, scored
from scenegpi.training.more_relations import count_more
from scenegpi.training.trainer import fit, make_trainer
from scenegpi.vision.model import VisionModel


class Stage(NamedTuple):
    """What is trained (`model`: the whole of `config.model`, or its baseline alone), how, and into which folder.

    `start` is a model whose baseline is taken over, `vision` the label predictor that gave the images' `label_dist`.
    """

    config: TrainConfig
    settings: StageConfig
    model: ModelConfig
    folder: Path
    start: Path | str | None = None
    vision: VisionModel | None = None
    resampler: LabelResampler | None = None

    @property
    def name(self) -> str:
        return self.model.system or ("context" if self.model.two_stages else "baseline")


def train_stage(stage: Stage, images: Images, record: dict[str, Any], progress: bool = False) -> Path:
    """Trains a stage, from its last whole epoch if there is one, unless it is finished; gives its model's folder."""
    folder, settings = stage.folder, stage.settings
    if (folder / FINISHED).is_file():
        return folder / MODEL
    if not images.validation and settings.optim.keep == "best":
        raise OptionError("optim.keep: the best epoch is chosen by validation images, and there are none")
    module = make_module(stage, images)
    trainer, writer = stage_trainer(stage, record, progress)
    training = TrainingImages(images.train, stage.config, settings, stage.resampler)
    loader = train_loader(training, trainer.global_rank, trainer.world_size)
    mine: Any = list(grouped(images.validation[trainer.global_rank :: trainer.world_size]))
    validation = DataLoader(mine, batch_size=None, collate_fn=as_they_are) if images.validation else None
    started = time.perf_counter()
    fit(trainer, module, loader, folder / STATE, validation)
    if trainer.is_global_zero:
        finish(stage, writer, images.validation)
        kept = writer.rows[-1].get(MONITOR) if settings.optim.keep == "last" else writer.best
        figures = {MONITOR: kept} if images.validation else {}
        summary = {"epochs": len(writer.rows), **figures, "seconds": round(time.perf_counter() - started, 1)}
        write_json(folder / FINISHED, summary)
    trainer.strategy.barrier()
    return folder / MODEL


def finish(stage: Stage, writer: RunFolder, validation: Sequence[SceneGraph]) -> None:
    """Calibrates the model that was kept, counts its validation figures anew, and writes it for the last time."""
    config, model = stage.config, writer.kept
    half = config.half and stage.model == config.model
    if half:  # before it is calibrated: killed after it was written, this is done again with what was written
        round_to_half(model)
    calibration = config.calibration if stage.model == config.model else None
    if calibration is None and validation and model.network.probabilities:
        calibration = fit_calibrations(model, validation, config.task)
    model.calibration = calibration or Calibrations()
    if model.calibration != Calibrations():
        given, found = model.calibration.predcls, model.calibration.sgcls
        print(f"calibrated: labels given, {given}; labels found, {found}", flush=True)
        for entry in writer.metrics.values():  # a list of relations over all pairs may change its order
            state = RecallState(recall_plan(config, model))
            state.update(scored(model, validation, config.scored_task), validation)
            entry["figures"] = recall_figures(state)
    save_model(model, stage.folder / MODEL, writer.metrics, writer.record, overwrite=True, half=half)


def make_module(stage: Stage, images: Images) -> SceneModule:
    """Model and loss, prepared on the training images; everything random starts from the seed."""
    config = stage.config
    L.seed_everything(config.seed, workers=True, verbose=False)
    words = open_words(config, images.vocabulary) if stage.model.words else None
    model = build_model(stage.model, images.vocabulary, words)
    if stage.start is None or stage.model.system is not None:  # the counts and scales of a baseline come with it
        prepare_model(model, images.train)
        count_more(model, config.data.more)
    model.trained_on = Fingerprint.of(images.train)
    if stage.vision is not None and model.vision is not None:
        model.vision.load_state_dict(stage.vision.state_dict())
        model.vision.requires_grad_(False)
    if stage.start is not None:
        take_baseline(model, stage.start)
    return SceneModule(model, config, stage.settings, str(stage.folder))


def take_baseline(model: SceneModel, source: Path | str) -> None:
    """Weights, counts and scales of another model's baseline (in place); DataError if it is built differently."""
    other = load_model(source)
    if other.labels != model.labels:
        raise DataError(source, "vocabulary: differs from that of the training data")
    if model.baseline is None or other.baseline is None or other.config.baseline != model.config.baseline:
        raise DataError(source, "model.baseline: built otherwise than the one that is to take over its weights")
    model.baseline.load_state_dict(other.baseline.state_dict())
    if other.trained_on is not None:
        model.trained_on = Fingerprint((model.trained_on or frozenset()) | other.trained_on)


def stage_trainer(stage: Stage, record: dict[str, Any], progress: bool = False) -> tuple[L.Trainer, RunFolder]:
    """The trainer with a running mean, early stopping, the stage's folder, and TensorBoard where there is one.

    `record` says how the model is made, for its card.
    """
    config, optim = stage.config, stage.settings.optim
    mean = RunningMean(optim.average) if optim.average else None
    writer = RunFolder(stage.folder, record, mean, optim.keep == "last")
    callbacks: list[L.Callback] = [] if mean is None else [mean]
    if optim.keep == "best":
        callbacks.append(Patience(MONITOR, optim.patience))
    if progress:
        callbacks.append(Bar(stage.name))
    board = TensorBoardLogger(str(stage.folder), name="", version="tensorboard") if find_spec("tensorboard") else False
    # A compared system may have weights that a batch does not use: those that decode labels, where all are given.
    unused = stage.model.system is not None
    epochs = stage.settings.epochs
    return make_trainer(config, config.seed, epochs, [*callbacks, writer], unused=unused, logger=board), writer
