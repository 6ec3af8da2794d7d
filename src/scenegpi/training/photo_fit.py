"""One training of the photo network, from start to weights on disk; it goes on after a kill.

FOLDER/last.ckpt              weights, optimiser and counters after the last part
FOLDER/vision.safetensors     the running mean of the weights; written when it is done
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lightning as L
import torch
from torch.utils.data import DataLoader, Sampler

from scenegpi.files import whole_file
from scenegpi.models.checkpoint import read_tensors
from scenegpi.training.batches import Key, as_they_are
from scenegpi.training.callbacks import Bar, RunningMean
from scenegpi.training.folder import STATE
from scenegpi.training.kept_maps import KeptMaps, drop_maps
from scenegpi.training.photo_batches import TrainingPhotos
from scenegpi.training.photo_config import PhotoFitConfig
from scenegpi.training.photo_module import FIRST, PhotoModule, measure_head
from scenegpi.training.photo_sets import LabelSets, TrainingPhoto
from scenegpi.training.state import StateFile
from scenegpi.vision.config import VisionConfig
from scenegpi.vision.model import VisionModel
from scenegpi.vision.network import PhotoNetwork
from scenegpi.vocabulary import Vocabulary

WEIGHTS = "vision.safetensors"
PART = 4096
"""Photos after which the state is written; a pass over more is divided evenly."""
CLIP = 5.0


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
    device: str = "cpu",
) -> VisionModel:
    """Trains a vision model that has a photo network, in place, unless the folder holds the result already.

    Args:
        vision: where it starts from.
        photos, sets: what it is trained on.
        epochs: passes over the photos.
        folder: where state and weights are written.
        name: of what is shown while it goes on.
        measure: measure the label head's inputs first; not if the head goes on from another training.
        device: one of Lightning's accelerators.
    """
    done = folder / WEIGHTS
    if done.is_file():
        return take_weights(vision, done)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    L.seed_everything(seed, workers=True, verbose=False)
    network = vision.backbone
    data = TrainingPhotos(photos, options.sizes, seed)
    if options.keep and isinstance(network, PhotoNetwork):
        data = KeptMaps(photos, options.sizes[0], seed, network, folder)
    parts = max(-(-len(data) // PART), 1)
    order = _Parts(len(data), options.batch, parts, seed)
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
    last = max(round(epochs * parts), 1)
    module = PhotoModule(vision, sets, options, order.steps(last))
    vision.backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    state = folder / STATE
    if measure and not state.exists():
        measure_head(vision, [data[keys] for keys in order.batches(0)[:FIRST]], module)
    file = StateFile(module.state_dict(), averaged=True, logged=False)
    if state.exists():  # a process that reads ahead asks for batches before Lightning says which part comes next
        order.set_epoch(int(file.load_checkpoint(state)["epoch"]) + 1)
    mean = RunningMean(options.average)
    callbacks: list[L.Callback] = [mean, *([Bar(name)] if progress else []), _KeepState(folder, order, name)]
    trainer = L.Trainer(
        accelerator=device,
        devices=1,
        max_epochs=last,
        gradient_clip_val=CLIP,
        callbacks=callbacks,
        logger=False,
        plugins=[file],
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )
    try:
        trainer.fit(module, loader, ckpt_path=str(state) if state.exists() else None)
    except SystemExit as stop:
        if stop.code != 1:  # Lightning's answer to Ctrl+C; SIGTERM has another code
            raise
        raise KeyboardInterrupt from None
    averaged = mean.module
    if not isinstance(averaged, PhotoModule):
        raise TypeError("the running mean is not that of a photo module")
    vision.load_state_dict(averaged.vision.state_dict())
    save_weights(vision, done)
    state.unlink(missing_ok=True)
    drop_maps(folder)
    return vision.eval()


def new_vision(config: VisionConfig, vocabulary: Vocabulary, seed: int) -> VisionModel:
    """A vision model with ImageNet's weights in its backbone and random ones elsewhere."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        vision = VisionModel(config, vocabulary)
    if isinstance(vision.backbone, PhotoNetwork):
        vision.backbone.start_from_imagenet()
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


class _Parts(Sampler[list[Key]]):
    """Batches of a shuffled pass over the photos, dealt into parts that Lightning takes for epochs."""

    def __init__(self, photos: int, batch: int, parts: int, seed: int) -> None:
        self.photos, self.batch, self.parts, self.seed, self.epoch = photos, batch, parts, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Which part comes next; called by Lightning."""
        self.epoch = epoch

    def steps(self, epochs: int) -> int:
        """Batches of the first parts."""
        return sum(len(self.batches(k)) for k in range(epochs))

    def batches(self, epoch: int) -> list[list[Key]]:
        rng = torch.Generator().manual_seed(self.seed * 1000 + epoch // self.parts)
        mine = torch.randperm(self.photos, generator=rng).tensor_split(self.parts)[epoch % self.parts]
        return [[(epoch, i) for i in rows.tolist()] for rows in mine.split(self.batch)]

    def __iter__(self) -> Iterator[list[Key]]:
        # Which part it is, is asked for with the first batch: Lightning says so after it has made the iterator.
        yield from self.batches(self.epoch)

    def __len__(self) -> int:
        return len(self.batches(self.epoch))


class _KeepState(L.Callback):
    """Writes the state after every part, and prints a line."""

    def __init__(self, folder: Path, order: _Parts, name: str) -> None:
        self.folder, self.order, self.name, self.started = folder, order, name, time.perf_counter()

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.started = time.perf_counter()

    def on_train_batch_start(
        self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        # Dropout and jitter depend on the step alone, not on what was drawn before a kill.
        torch.manual_seed(self.order.seed * 1_000_000 + trainer.global_step)

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        shown = ", ".join(f"{key} {float(value):.4f}" for key, value in trainer.callback_metrics.items())
        seconds = time.perf_counter() - self.started
        done = f"{(trainer.current_epoch + 1) / self.order.parts:.3g}"
        print(f"{self.name}: after {done} passes, {shown}, {seconds:.0f} s", flush=True)
        trainer.save_checkpoint(self.folder / STATE)
