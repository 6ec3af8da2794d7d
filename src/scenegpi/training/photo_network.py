"""The photo network of a run: trained on each half of the photos, then on all of them, other photos in every batch.
A half's predictions on the other half are held out: the graph model learns from them. A run that starts from a photo
model uses its network and trains only the halves; or it trains that network further, on all photos (`photo.continued`).

    RUN/vision/half0/       all photos but those of the first half; it predicts them (held_out.safetensors)
    RUN/vision/half1/       and the other way round
    RUN/vision/whole/       starts from the mean of the two, and continues with all photos

In each folder:

    last.ckpt               weights, optimiser and counters after the last part of a pass
    vision.safetensors      the running mean of the weights; written when it is done

so a killed run loses at most part of a pass.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import lightning as L
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from scenegpi.errors import DataError, OptionError
from scenegpi.files import whole_file, write_json
from scenegpi.graph import SceneGraph
from scenegpi.models.build import SceneModel
from scenegpi.models.calibration import fit_calibration
from scenegpi.models.checkpoint import load_model, read_tensors, round_to_half, save_model
from scenegpi.models.shipped import vision_settings
from scenegpi.progress import progress
from scenegpi.training.batches import EpochBatches, as_they_are
from scenegpi.training.config import MachineConfig, PhotoFitConfig, TrainConfig
from scenegpi.training.data_split import Images
from scenegpi.training.finder_calibration import fit_finder
from scenegpi.training.folder import FINISHED, MODEL, STATE
from scenegpi.training.label_head import FittedVision, calibrated, folds_of, report_unreadable
from scenegpi.training.photo_batches import TrainingPhotos
from scenegpi.training.photo_module import PhotoModule
from scenegpi.training.photo_sets import LabelSets, TrainingPhoto, open_annotations
from scenegpi.training.processes import is_first_process, wait_for
from scenegpi.training.taught import read_finds
from scenegpi.training.trainer import Bar, RunningMean, fit, make_trainer
from scenegpi.vision.config import VisionConfig
from scenegpi.vision.model import VisionModel, graph_geometry
from scenegpi.vision.network import PhotoNetwork
from scenegpi.vision.photos import pixels_and_boxes
from scenegpi.vocabulary import Vocabulary

HALVES = 2
NAMING, FINDING = "backbone.naming.", "backbone.finding."
HELD_OUT, WEIGHTS = "held_out.safetensors", "vision.safetensors"
PART = 4096
"""Number of photos after which the state is written; a longer pass is divided evenly."""
FIRST = 4
"""Number of batches on which the label head's inputs are measured."""


def fit_network(
    vision: VisionModel,
    photos: Sequence[TrainingPhoto],
    sets: LabelSets,
    options: PhotoFitConfig,
    folder: Path,
    *,
    machine: MachineConfig | None = None,
    seed: int = 0,
    name: str = "photos",
    whole: bool = False,
    shown: bool = False,
) -> VisionModel:
    """Trains a vision model that has a photo network, in place, unless the folder holds the result already.

    All processes of `machine` call this. With `whole` it continues another training, for `whole_epochs` at
    `whole_rate`; else it trains for `epochs`, and the label head's inputs are measured first.
    """
    vision.backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    done = folder / WEIGHTS
    if done.is_file():  # in the memory layout of training, or the last bits of the outputs would differ
        return take_weights(vision, done)
    L.seed_everything(seed, workers=True, verbose=False)
    data = TrainingPhotos(photos, options.sizes, seed)
    parts = max(-(-len(data) // PART), 1)
    last = max(round((options.whole_epochs if whole else options.epochs) * parts), 1)
    callbacks = [RunningMean(options.average), *([Bar(name)] if shown else []), _KeepState(folder, parts, name)]
    trainer = make_trainer(machine or MachineConfig(), seed, last, callbacks, unused=True)
    order = EpochBatches(len(data), options.batch, seed, trainer.global_rank, trainer.world_size, parts)
    own = torch.Generator()  # creating an iterator draws a number, at a different time after a resume
    loader = DataLoader(data, batch_size=None, sampler=order, collate_fn=as_they_are, generator=own)
    module = PhotoModule(vision, sets, options, last * len(order), options.whole_rate if whole else 1.0)
    state = folder / STATE
    if not whole and not state.exists():
        some = islice(EpochBatches(len(data), options.batch, seed, parts=parts), FIRST)
        module.measure_head([data[keys] for keys in some])
    fit(trainer, module, loader, state)
    if trainer.is_global_zero:  # the trained weights are now the running mean
        save_weights(vision.cpu(), done)
        state.unlink(missing_ok=True)
    else:
        wait_for(done)
    return take_weights(vision.cpu(), done)


def fit_photo_network(
    config: TrainConfig,
    vision: VisionConfig,
    vocabulary: Vocabulary,
    photos: Sequence[Path],
    graphs: Sequence[SceneGraph],
    folder: Path,
    shown: bool = False,
) -> FittedVision:
    """Trains the network and its label head on photos and the labels of their graphs, as `fit_vision` does heads.

    `folder` is the stage's. All processes call this.
    """
    model, taken = new_vision(vision, vocabulary, config.seed), started_vision(config.start, vision, vocabulary)
    data = open_annotations(model.labels.objects, model.names, graphs, config.photo.other)
    fold = folds_of(len(photos), HALVES, config.seed)
    states: list[dict[str, Tensor]] = []
    logits: dict[int, Tensor] = {}
    for k in range(HALVES):
        half, place, name = new_vision(vision, vocabulary, config.seed), folder / f"half{k}", f"photos, half {k + 1}"
        mine, others = (np.flatnonzero(which).tolist() for which in (fold != k, fold == k))
        some = data.training([photos[i] for i in mine], [graphs[i] for i in mine])
        fit_network(
            half, some, data.sets, config.photo, place, machine=config, seed=config.seed + k, name=name, shown=shown
        )
        states.append(half.state_dict())
        logits |= held_out_logits(half, others, photos, graphs, place / HELD_OUT, shown)
    if taken is not None:  # it is calibrated already: the temperature fitted here is that of the halves
        return replace(calibrated(half, graphs, logits), model=taken)
    model.load_state_dict({key: torch.stack([state[key].float() for state in states]).mean(0) for key in states[0]})
    every, place, seed = data.training(photos, graphs), folder / "whole", config.seed + HALVES
    fit_network(model, every, data.sets, config.photo, place, machine=config, seed=seed, whole=True, shown=shown)
    return calibrated(model, graphs, logits)


def started_vision(start: str | None, wanted: VisionConfig, vocabulary: Vocabulary) -> VisionModel | None:
    """The vision of the start model, if that is a photo model; its settings must be those of this run."""
    if start is None or not vision_settings(start).get("finder"):
        return None
    model = load_model(start)
    if model.labels != vocabulary or model.vision is None:
        raise DataError(start, "is not a photo model of this data set's labels")
    if replace(model.vision.config, finder=wanted.finder) != wanted:
        raise DataError(start, "model.vision: its settings differ from this run's")
    return model.vision


def continue_network(config: TrainConfig, images: Images, folder: Path, shown: bool = False) -> None:
    """Trains the photo network of the model `config.start` further, and writes the resulting model into the run's
    folder.

    The mean of the weights before and after is kept (`photo.before`): it names and finds better than either (Wortsman
    et al. 2022). The graph model is unchanged. The calibration of label head, finder and graph model is fitted again to
    validation photos.
    """
    wanted = config.model.vision
    if config.start is None or wanted is None or not wanted.features.finds:
        raise OptionError("photo.continued: needs a photo model to start from (--start)")
    model = load_model(config.start)
    if model.labels != images.vocabulary or model.vision is None:
        raise DataError(config.start, "is not a photo model of this data set's labels")
    vision = VisionModel(wanted, images.vocabulary)
    take_over(vision, model.vision)
    photos, graphs = with_photos(images.train_photos, images.train)
    data = open_annotations(vision.labels.objects, vision.names, graphs, config.photo.other)
    rest = data.rest  # made anew by each look
    count = min(config.photo.other.taught, len(rest))
    some = {name: data.other[name][0] for name in (rest[k * len(rest) // count] for k in range(count))}
    place = folder / "vision" / "taught"
    data = data._replace(finds=read_finds(config.start, some, place, processes=config.devices, shown=shown))
    every, place = data.training(photos, graphs), folder / "vision" / "whole"
    fit_network(
        vision, every, data.sets, config.photo, place, machine=config, seed=config.seed, whole=True, shown=shown
    )
    if not is_first_process():
        wait_for(folder / FINISHED)
        return
    before = VisionModel(wanted, images.vocabulary)
    take_over(before, model.vision)
    old, new = before.state_dict(), vision.state_dict()
    vision.load_state_dict({key: torch.lerp(new[key], old[key], config.photo.before) for key in new})
    if config.half:
        round_to_half(vision)
    figures = calibrate_model(model, vision, *with_photos(images.validation_photos, images.validation))
    model.calibration = config.calibration or model.calibration
    record = {"preset": config.preset, "task": config.task, "seed": config.seed, "graph": f"of {config.start}"}
    save_model(model, folder / MODEL, {}, record | figures, overwrite=True, half=config.half)
    write_json(folder / FINISHED, {"photos": len(photos), **figures})


def calibrate_model(
    model: SceneModel, vision: VisionModel, photos: Sequence[Path], graphs: Sequence[SceneGraph]
) -> dict[str, float]:
    """Gives the model another vision (in place), calibrates its parts on photos that neither was trained on, and
    returns the label head's figures there. Without a readable photo nothing changes."""
    model.vision, model.config = vision, replace(model.config, vision=vision.config)
    logits: dict[int, Tensor] = {}
    for i, pair in enumerate(zip(photos, graphs, strict=True)):
        try:
            logits[i] = box_logits(vision, *pair)
        except DataError as error:
            report_unreadable(error)
    if not logits:
        return {}
    pairs = [(photos[i], graphs[i]) for i in logits]
    fitted = calibrated(vision, graphs, logits)
    vision.config = replace(vision.config, finder=fit_finder(vision, pairs))
    model.config = replace(model.config, vision=vision.config)
    labelled = [graphs[i].replace(label_dist=fitted.held_out[i]) for i in logits]
    found = fit_calibration(model, labelled, "sgcls")
    model.calibration = replace(model.calibration, sgcls=found)
    return fitted.figures


def with_photos(photos: Sequence[Path | None], graphs: Sequence[SceneGraph]) -> tuple[list[Path], list[SceneGraph]]:
    """Those images that have a photo."""
    pairs = [(path, graph) for path, graph in zip(photos, graphs, strict=True) if path is not None]
    return [path for path, _ in pairs], [graph for _, graph in pairs]


def take_over(vision: VisionModel, other: VisionModel) -> None:
    """The weights of another vision model (in place). A second look that it does not have starts anew, on maps like
    those that names are read from.
    """
    found, wanted = other.state_dict(), vision.state_dict()
    if not any(name.startswith(FINDING) for name in found):
        found |= {name.replace(NAMING, FINDING): value for name, value in found.items() if name.startswith(NAMING)}
    for name in found.keys() & wanted.keys():
        if wanted[name].shape != found[name].shape:
            raise OptionError(f"model.vision: {name} has another shape in the start model")
        wanted[name] = found[name]
    vision.load_state_dict(wanted)


def held_out_logits(
    vision: VisionModel,
    others: Sequence[int],
    photos: Sequence[Path],
    graphs: Sequence[SceneGraph],
    file: Path,
    shown: bool = False,
) -> dict[int, Tensor]:
    """Photo number -> logits ``(N, C)`` of its boxes, by a network that has not seen it; kept in `file`."""
    from safetensors.torch import save_file

    counts, names = [len(graphs[i]) for i in others], len(vision.labels.objects)
    if not is_first_process():
        wait_for(file)
    elif not file.is_file():
        rows = [torch.zeros(count, names) for count in counts]  # zeros remain for a photo that can't be read
        with progress("held-out photos", len(others), shown) as advance:
            for done, i in enumerate(others):
                try:
                    rows[done] = box_logits(vision, photos[i], graphs[i])
                except DataError as error:
                    report_unreadable(error)
                advance()
        with whole_file(file) as part:
            save_file({"logits": torch.cat(rows)}, part)
    wanted = {"logits": torch.empty(sum(counts), names, device="meta")}
    kept = read_tensors(file, wanted)["logits"].split(counts)
    return {i: rows for i, rows in zip(others, kept, strict=True) if bool(rows.any())}


@torch.inference_mode()
def box_logits(vision: VisionModel, photo: Any, graph: SceneGraph) -> Tensor:
    """The label head's logits for the boxes of a photo, ``(N, C)``, before the temperature."""
    return vision.head(vision.extractor(*pixels_and_boxes(photo, graph)), graph_geometry(graph))


def new_vision(config: VisionConfig, vocabulary: Vocabulary, seed: int) -> VisionModel:
    """A vision model with trained weights in its backbone and random ones elsewhere."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        vision = VisionModel(config, vocabulary)
    if isinstance(vision.backbone, PhotoNetwork):
        vision.backbone.start(config.features.backbone)
    return vision


def take_weights(vision: VisionModel, file: Path) -> VisionModel:
    """The weights of a file that `save_weights` wrote (in place); DataError if it holds others."""
    vision.load_state_dict(read_tensors(file, vision.state_dict()))
    return vision.eval()


def save_weights(vision: VisionModel, file: Path) -> None:
    """The weights as one file, whole or not at all."""
    from safetensors.torch import save_file

    with whole_file(file) as part:
        save_file({key: value.contiguous() for key, value in vision.state_dict().items()}, part)


class _KeepState(L.Callback):
    """Writes the state after every part, and prints a line."""

    def __init__(self, folder: Path, parts: int, name: str) -> None:
        self.folder, self.parts, self.name, self.started = folder, parts, name, time.perf_counter()

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.started = time.perf_counter()

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        shown = ", ".join(f"{key} {float(value):.4f}" for key, value in trainer.callback_metrics.items())
        seconds = time.perf_counter() - self.started
        done = f"{(trainer.current_epoch + 1) / self.parts:.3g}"
        if trainer.is_global_zero:
            print(f"{self.name}: after {done} passes, {shown}, {seconds:.0f} s", flush=True)
        trainer.save_checkpoint(self.folder / STATE)
