"""What goes on beside the training steps: the running mean of the weights, early stopping, a progress bar."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, WeightAveraging
from torch import Tensor

from scenegpi.models.build import SceneModel
from scenegpi.progress import progress
from scenegpi.training.module import SceneModule

WARM = 10


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
    """Early stopping whose state is part of the run's: after a resume it knows that it had stopped already.

    It decides after the validation. At the end of an epoch, Lightning asks it after all other callbacks: too late for
    the one that writes the state.
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
