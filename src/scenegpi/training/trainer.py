"""The trainer of all stages, on the machine that the run names, with a running mean of the weights, early stopping, a
progress bar, and a state on disk from which a killed run continues.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import lightning as L
import numpy as np
import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO
from lightning.pytorch.callbacks import Callback, EarlyStopping, WeightAveraging
from torch import Tensor

from scenegpi.errors import DataError, OptionError, SceneGPIError
from scenegpi.files import check_file, whole_file
from scenegpi.models.build import SceneModel
from scenegpi.progress import progress
from scenegpi.training.config import MachineConfig
from scenegpi.training.module import SceneModule

CLIP = 5.0
"""Maximum norm of a gradient."""
WARM = 10
"""The decay of the running mean is (n + 1) / (n + WARM) at first."""


def make_trainer(
    machine: MachineConfig,
    seed: int,
    epochs: int,
    callbacks: Sequence[L.Callback],
    *,
    unused: bool = False,
    logger: Any = False,
) -> L.Trainer:
    """Lightning's Trainer for at most `epochs`, each step's random numbers by `seed`.

    The last of the `callbacks` writes the state. With `unused` a batch may leave weights unused, and
    processes look for them.
    """
    for name in ("lightning", "lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    strategy = machine.strategy
    if strategy == "auto" and machine.devices * machine.nodes > 1:
        strategy = "ddp_find_unused_parameters_true" if unused else "ddp"
    try:
        return L.Trainer(
            accelerator=machine.device,
            devices=machine.devices,
            num_nodes=machine.nodes,
            strategy=strategy,
            precision=machine.precision,
            max_epochs=epochs,
            gradient_clip_val=CLIP,
            callbacks=[_Steps(seed), *callbacks],
            logger=logger,
            plugins=[StateFile()],
            enable_checkpointing=False,
            enable_model_summary=False,
            enable_progress_bar=False,
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
            inference_mode=False,
        )
    except (ValueError, RuntimeError) as error:  # no such device here, or not in this precision
        raise OptionError(f"device, devices, precision, strategy: {' '.join(str(error).split()):.200}") from None


def one_cycle(rates: Sequence[tuple[float, Sequence[Tensor]]], decay: float, steps: int) -> dict[str, Any]:
    """AdamW for a Lightning module: (maximum rate, weights) each, decay of matrices, and the number of steps.

    Rates rise for a tenth of the steps and fall to 0 along a cosine.
    """
    groups = [
        {"params": [each for each in weights if each.requires_grad and (each.dim() > 1) == matrix], "weight_decay": by}
        for _, weights in rates
        for matrix, by in ((False, 0.0), (True, decay))
    ]
    optimiser, highest = torch.optim.AdamW(groups), [rate for rate, _ in rates for _ in range(2)]
    # Fewer than 11 steps can't be divided into a tenth and the rest.
    falling = torch.optim.lr_scheduler.OneCycleLR(optimiser, highest, total_steps=max(steps, 11), pct_start=0.1)
    return {"optimizer": optimiser, "lr_scheduler": {"scheduler": falling, "interval": "step"}}


def fit(
    trainer: L.Trainer, module: L.LightningModule, batches: Any, state: Path | None = None, validation: Any = None
) -> None:
    """Trains, or continues from the state on disk; DataError if that belongs to another training."""
    going_on = state is not None and state.exists()
    try:
        trainer.fit(module, batches, validation, ckpt_path=str(state) if going_on else None)
    except SystemExit as stop:
        if stop.code != 1:  # Lightning's answer to Ctrl+C; SIGTERM has another code
            raise
        raise KeyboardInterrupt from None
    except SceneGPIError:
        raise
    except Exception as error:
        stepped = next(each.stepped for each in trainer.callbacks if isinstance(each, _Steps))  # type: ignore[attr-defined]
        if stepped or state is None or not going_on:
            raise
        said = " ".join(str(error).split())
        raise DataError(state, f"cannot be resumed from ({type(error).__name__}: {said:.200})") from error


class RunningMean(WeightAveraging):
    """Lightning's running mean of the weights, with a decay that starts low; the mean is what is validated.

    Buffers are counts and scales, which never change: they are copied, not averaged.
    """

    def __init__(self, decay: float) -> None:
        def follow(means: Any, weights: Any, count: Tensor) -> None:
            n = int(count)
            torch._foreach_lerp_(list(means), list(weights), 1 - min(decay, (n + 1) / (n + WARM)))

        super().__init__(use_buffers=False, multi_avg_fn=follow)

    @property
    def model(self) -> SceneModel:
        """The scene model with the mean of the weights so far."""
        module = None if self._average_model is None else self._average_model.module
        if not isinstance(module, SceneModule):
            raise TypeError(f"no mean of a scene model ({type(module).__name__})")
        return module.model


class Patience(EarlyStopping):
    """Early stopping whose state is part of the run's: after a resume it still knows that it has stopped.

    It decides after the validation: at the end of an epoch, Lightning would call it after all other callbacks, too late
    for the one that writes the state.
    """

    def __init__(self, monitor: str, patience: int) -> None:
        super().__init__(monitor, mode="max", patience=patience, check_finite=False, check_on_train_epoch_end=False)

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        trainer.should_stop = self.wait_count >= self.patience


class Bar(Callback):
    """A progress bar per epoch."""

    def __init__(self, what: str) -> None:
        self.what, self._open = what, ExitStack()

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        epoch = f"{self.what}, epoch {trainer.current_epoch + 1} of {trainer.max_epochs}"
        self._advance = self._open.enter_context(progress(epoch, int(trainer.num_training_batches)))

    def on_train_batch_end(self, *args: Any) -> None:
        self._advance()

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self._open.close()

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        self._open.close()


class _Steps(L.Callback):
    """Seeds a step's random numbers by its position in the run, so that a resumed run repeats them."""

    def __init__(self, seed: int) -> None:
        self.seed, self.stepped = seed, False

    def on_train_batch_start(
        self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        place = (self.seed, trainer.current_epoch, batch_idx, trainer.global_rank)
        torch.manual_seed(int(np.random.SeedSequence(place).generate_state(1)[0]))

    def on_train_batch_end(self, *args: Any) -> None:
        self.stepped = True


class StateFile(TorchCheckpointIO):
    """The state that a run continues from: written whole, read without running code in it, loaded strictly."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        memory = io.BytesIO()  # torch's own writer does not report a full disk
        torch.save(checkpoint, memory)
        with whole_file(Path(path)) as part:
            part.write_bytes(memory.getbuffer())

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = True) -> dict[str, Any]:
        check_file(Path(path))
        try:
            state = torch.load(path, map_location=map_location or "cpu", weights_only=True)
        except Exception as error:  # torch's exception depends on where the file is broken
            raise DataError(path, f"is not a training state ({type(error).__name__})") from None
        if not isinstance(state, dict):
            raise DataError(path, f"is not a training state (a {type(state).__name__})")
        moments = [each.get("state") for each in state.get("optimizer_states", ()) if isinstance(each, dict)]
        if not moments or not all(moments):  # the optimizer would silently start anew
            raise DataError(path, "cannot be resumed from (optimizer_states: no moments)")
        if where := _not_finite(state):
            raise DataError(path, f"cannot be resumed from ({where}: a number that is not finite)")
        return state


def _not_finite(value: Any, where: str = "") -> str:
    """The first tensor in nested tables with a number that is not finite, by name; empty if all are."""
    if isinstance(value, Tensor):
        return "" if bool(value.isfinite().all()) else where
    each = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next(filter(None, (_not_finite(one, f"{where}.{key}".lstrip(".")) for key, one in each)), "")
