"""One training of the photo network, from start to weights on disk; it goes on after a kill.

FOLDER/last.ckpt              weights, optimiser and counters after the last part
FOLDER/vision.safetensors     the running mean of the weights; written when it is done
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import lightning as L
import torch
from torch.utils.data import DataLoader

from scenegpi.errors import OptionError
from scenegpi.files import whole_file
from scenegpi.models.checkpoint import read_tensors
from scenegpi.training.batches import EpochBatches, as_they_are
from scenegpi.training.callbacks import Bar, RunningMean
from scenegpi.training.config import MachineConfig
from scenegpi.training.folder import STATE
from scenegpi.training.kept_maps import KeptMaps, drop_maps
from scenegpi.training.photo_batches import TrainingPhotos
from scenegpi.training.photo_config import PhotoFitConfig
from scenegpi.training.photo_module import FIRST, PhotoModule, measure_head
from scenegpi.training.photo_sets import LabelSets, TrainingPhoto
from scenegpi.training.processes import wait_for
from scenegpi.training.trainer import StateFile, fit, make_trainer
from scenegpi.vision.config import VisionConfig
from scenegpi.vision.model import VisionModel
from scenegpi.vision.network import PhotoNetwork
from scenegpi.vocabulary import Vocabulary

WEIGHTS = "vision.safetensors"
PART = 4096
"""Photos after which the state is written; a pass over more is divided evenly."""


def fit_network(
    vision: VisionModel,
    photos: Sequence[TrainingPhoto],
    sets: LabelSets,
    options: PhotoFitConfig,
    epochs: float,
    folder: Path,
    *,
    seed: int = 0,
    name: str = "photos",
    progress: bool = False,
    measure: bool = True,
    machine: MachineConfig | None = None,
) -> VisionModel:
    """Trains a vision model that has a photo network, in place, unless the folder holds the result already.

    Args:
        vision: where it starts from.
        photos, sets: what it is trained on.
        epochs: passes over the photos.
        folder: where state and weights are written.
        name: of what is shown while it goes on.
        measure: measure the label head's inputs first; not if the head goes on from another training.
        machine: where, and by how many processes, which all call this.
    """
    vision.backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    done = folder / WEIGHTS
    if done.is_file():  # laid out as they were trained, or the last bits of what they say would differ
        return take_weights(vision, done)
    machine = machine or MachineConfig()
    if options.keep and machine.devices * machine.nodes > 1:
        raise OptionError("photo.keep: maps are kept by one process (devices = 1)")
    L.seed_everything(seed, workers=True, verbose=False)
    data, network = TrainingPhotos(photos, options.sizes, seed), vision.backbone
    if options.keep and isinstance(network, PhotoNetwork):
        data = KeptMaps(photos, options.sizes[0], seed, network, folder)
    parts = max(-(-len(data) // PART), 1)
    last = max(round(epochs * parts), 1)
    callbacks = [RunningMean(options.average), *([Bar(name)] if progress else []), _KeepState(folder, parts, name)]
    trainer = make_trainer(machine, seed, last, callbacks, unused=True)
    order = EpochBatches(len(data), options.batch, seed, trainer.global_rank, trainer.world_size, parts)
    own = torch.Generator()  # a new iterator draws a number, at another moment after a resume
    # Maps are computed by a process of its own, beside the training.
    loader = DataLoader(
        data,
        batch_size=None,
        sampler=order,
        collate_fn=as_they_are,
        generator=own,
        num_workers=int(options.keep),
        prefetch_factor=8 if options.keep else None,
        persistent_workers=options.keep,
    )
    module = PhotoModule(vision, sets, options, last * len(order))
    state = folder / STATE
    if state.exists():  # a process that reads ahead asks for batches before Lightning says which part comes next
        order.set_epoch(int(StateFile().load_checkpoint(state).get("epoch", 0)) + 1)
    elif measure:
        some = islice(EpochBatches(len(data), options.batch, seed, parts=parts), FIRST)
        measure_head(vision, [data[keys] for keys in some], module)
    fit(trainer, module, loader, state)
    if trainer.is_global_zero:  # what was trained is the running mean now
        save_weights(vision.cpu(), done)
        state.unlink(missing_ok=True)
        drop_maps(folder)
    else:
        wait_for(done)
    return take_weights(vision.cpu(), done)


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
