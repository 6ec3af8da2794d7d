"""A training run from configuration to model: opens the data, builds, trains, and can be resumed after a kill."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping
from lightning.pytorch.loggers import TensorBoardLogger
from torch.utils.data import DataLoader

from scenegpi.errors import DataError, OptionError
from scenegpi.features.batch import Seen
from scenegpi.files import read_object
from scenegpi.metrics import Plan, Protocol, RecallState
from scenegpi.models.build import SceneModel, build_model, prepare_model
from scenegpi.models.calibrate import fit_calibrations
from scenegpi.models.checkpoint import load_model, save_model
from scenegpi.models.grouping import grouped
from scenegpi.models.predict import predict_seen
from scenegpi.options import override, plain
from scenegpi.training.batches import TrainingImages, train_loader
from scenegpi.training.config import TrainConfig
from scenegpi.training.data_split import Images, open_images, open_words
from scenegpi.training.folder import (
    CONFIG,
    FINISHED,
    MODEL,
    STATE,
    RunFolder,
    WholeFiles,
    check_empty,
    tidy,
    write_json,
)
from scenegpi.training.label_resampling import Lender
from scenegpi.training.losses import predicate_balance
from scenegpi.training.module import KS, MONITOR, SceneModule, recall_figures
from scenegpi.training.progress import Bar, photo_counter, print_figures
from scenegpi.training.simulate import label_shares, simulated
from scenegpi.training.vision_stage import (
    STAGE,
    fit_stage,
    load_stage,
    stage_figures,
    wait_for_stage,
    with_label_dist,
)
from scenegpi.vision.model import VisionModel


def train(config: TrainConfig, folder: str | Path, *, resume: bool = False, progress: bool = False) -> Path:
    """Trains, and gives the folder of the best model; after the vision stage alone, that of the stage.

    Args:
        config: of the run.
        folder: of the run; must be empty unless `resume`, or the graph stage follows the vision stage in it.
        resume: go on after the last whole epoch of the run in `folder`, with `config` as it says there.
        progress: show a bar.
    """
    folder = Path(folder)
    first = is_first_process()
    if first and not resume:
        check_empty(folder, but=STAGE if config.stage == "graph" else None)
    sees = config.stage != "layout"
    images = open_images(config.data, photos=sees)
    vision: VisionModel | None = None
    if sees:
        if config.stage == "vision" or (config.stage == "both" and stage_figures(folder) is None):
            if first:
                print_figures(fit_stage(config, images, folder, photo_counter(progress)))
            else:
                wait_for_stage(folder)
        if config.stage == "vision":
            return folder / STAGE
        images = with_label_dist(config, images, folder, photo_counter(progress))
        vision = load_stage(config, images.vocabulary, folder)
    return train_graph(config, images, vision, folder, resume, progress)


def train_graph(
    config: TrainConfig, images: Images, vision: VisionModel | None, folder: Path, resume: bool, progress: bool
) -> Path:
    """Trains on images that were opened before, with the label predictor that gave their `label_dist`; as `train`."""
    validation = images.validation
    if not validation and config.optim.keep == "best":
        raise OptionError("optim.keep: the best epoch is chosen by validation images, and there are none")
    module = make_module(config, images, folder, vision)
    labels = len(images.vocabulary.objects)
    shares = label_shares(images.train, labels)
    lender = None
    if config.simulate is not None:
        validation = list(simulated(validation, shares, config.simulate, config.seed))
    elif config.task != "predcls" and any(graph.label_dist is None for graph in images.train):
        if vision is None:
            raise OptionError("task: sgcls needs label distributions (data.distributions, or simulate to make them up)")
        lender = Lender(images.train, labels)
    if is_first_process():
        if not resume:
            write_json(folder / CONFIG, plain(config))
        tidy(folder)
    trainer = make_trainer(config, folder, progress, stage_figures(folder))
    training = TrainingImages(images.train, config, shares, None, lender)
    loader = train_loader(training, trainer.global_rank, trainer.world_size)
    both = [Seen(graph) for graph in validation]
    mine = both[trainer.global_rank :: trainer.world_size]
    started = time.perf_counter()
    state = folder / STATE
    try:
        trainer.fit(
            module,
            loader,
            validation_loader(mine) if validation else None,
            ckpt_path=str(state) if resume and state.exists() else None,
        )
    except SystemExit:  # Lightning's answer to Ctrl+C
        raise KeyboardInterrupt from None
    writer = next(each for each in trainer.callbacks if isinstance(each, RunFolder))  # type: ignore[attr-defined]
    if trainer.is_global_zero:
        if config.calibrate and validation:
            calibrate_model(config, both, folder / MODEL)
        kept = writer.rows[-1].get(MONITOR) if config.optim.keep == "last" else writer.best
        figures = {MONITOR: kept} if validation else {}
        summary = {"epochs": len(writer.rows), **figures, "seconds": round(time.perf_counter() - started, 1)}
        write_json(folder / FINISHED, summary)
    return folder / MODEL


def calibrate_model(config: TrainConfig, validation: Sequence[Seen], folder: Path) -> None:
    """Fits the temperatures of the model in `folder` to the validation images; what gains nothing stays neutral.

    Its validation figures are counted anew: a list of relations over all pairs may change its order.
    """
    model, task = load_model(folder), config.scored_task
    fitted = fit_calibrations(model, validation, config.task)
    if fitted == model.calibration:
        return
    model.calibration = fitted
    state = RecallState(Plan(Protocol(task=task, constraint="graph", ks=KS), model.vocabulary))
    state.update(predict_seen(model, validation, task), [image.graph for image in validation])
    about, metrics = read_object(folder / "config.json")["training"], read_object(folder / "metrics.json")
    for entry in metrics.values():
        entry["figures"] = recall_figures(state)
    save_model(model, folder, metrics, about, overwrite=True)
    print(f"calibrated: labels given, {fitted.predcls}; labels found, {fitted.sgcls}", flush=True)


def read_run(folder: str | Path) -> TrainConfig:
    """The configuration of a run that is to be resumed; DataError if there is none, or nothing left to do."""
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        raise DataError(folder, "no run to resume: it holds no config.json")
    if (folder / FINISHED).is_file():
        raise DataError(folder, f"this run is finished; its model is {folder / MODEL}")
    try:
        return override(TrainConfig(), read_object(folder / CONFIG), "")
    except OptionError as error:
        raise DataError(folder / CONFIG, str(error)) from None


def make_module(config: TrainConfig, images: Images, folder: Path, vision: VisionModel | None = None) -> SceneModule:
    """Model and loss, prepared on the training images; everything random starts from the seed."""
    L.seed_everything(config.seed, workers=True, verbose=False)
    model = build_model(config.model, images.vocabulary, open_words(config, images.vocabulary))
    prepare_model(model, images.train)
    if vision is not None and model.vision is not None:
        model.vision.load_state_dict(vision.state_dict())
        model.vision.requires_grad_(False)
    if config.start is not None:
        take_baseline(model, config.start)
    elif config.model.context is not None and config.model.context.freeze and not config.optim.first_epochs:
        raise OptionError("optim.first_epochs: a frozen baseline has to be trained first, or taken over (start)")
    balance = None
    if config.loss.kind == "balanced":
        rows = np.concatenate([graph.relations[:, 2] for graph in images.train])
        counts = torch.from_numpy(np.bincount(rows, minlength=len(images.vocabulary.predicates)))
        balance = predicate_balance(counts, config.loss.beta)
    return SceneModule(model, config, balance, str(folder))


def take_baseline(model: SceneModel, source: str) -> None:
    """Weights, counts and scales of another model's baseline (in place); DataError if it is built differently."""
    other = load_model(source)
    if other.vocabulary != model.vocabulary:
        raise DataError(source, "vocabulary: differs from that of the training data")
    if other.config.baseline != model.config.baseline:
        raise DataError(source, "model.baseline: built otherwise than the one that is to take over its weights")
    model.baseline.load_state_dict(other.baseline.state_dict())


def make_trainer(
    config: TrainConfig, folder: Path, progress: bool = False, stage: dict[str, Any] | None = None
) -> L.Trainer:
    """Lightning's Trainer with early stopping, the run's folder, and TensorBoard where it is installed.

    `stage` are the figures of the label predictor, for the record.
    """
    for name in ("lightning", "lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    record: dict[str, Any] = {"preset": config.preset, "task": config.task, "data": Path(config.data.path).name}
    record |= {"seed": config.seed, "loss": plain(config.loss), "optim": plain(config.optim)}
    record |= {"augment": plain(config.augment), "simulate": config.simulate and plain(config.simulate)}
    if stage is not None:
        record["label predictor, held out"] = ", ".join(f"{name} {value:.4g}" for name, value in stage.items())
    optim = config.optim
    last = optim.keep == "last"
    callbacks: list[Callback] = []
    if not last:
        patience = optim.patience + optim.first_epochs
        callbacks.append(EarlyStopping(MONITOR, mode="max", patience=patience, check_finite=False))
    if progress:
        callbacks.append(Bar(leave=False))
    simulated = config.simulate is not None and config.scored_task == "sgcls"
    callbacks.append(RunFolder(folder, record, simulated, last))
    board = TensorBoardLogger(str(folder), name="", version="tensorboard") if find_spec("tensorboard") else False
    processes = config.devices * config.nodes
    return L.Trainer(
        accelerator=config.device,
        devices=config.devices,
        num_nodes=config.nodes,
        strategy="ddp_find_unused_parameters_true" if processes > 1 else "auto",
        max_epochs=optim.epochs,
        gradient_clip_val=optim.clip or None,
        callbacks=callbacks,
        logger=board,
        plugins=[WholeFiles()],
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=progress,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        inference_mode=False,
    )


def validation_loader(images: Sequence[Seen]) -> DataLoader[Any]:
    """Groups of validation images, as `predict_seen` takes them."""
    return DataLoader(list(grouped(images)), batch_size=None, collate_fn=_as_it_is)  # type: ignore[arg-type]


def _as_it_is(images: list[Seen]) -> list[Seen]:
    return images


def is_first_process() -> bool:
    """Whether this process makes the folder: RANK comes from torchrun, the others from Lightning's own launcher."""
    names = ("RANK",) if "RANK" in os.environ else ("LOCAL_RANK", "NODE_RANK")
    return all(os.environ.get(name, "0") == "0" for name in names)
