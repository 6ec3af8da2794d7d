"""The progress bar: loss and validation recall, and nothing about versions of logs."""

from __future__ import annotations

from typing import Any

import lightning as L
from lightning.pytorch.callbacks import RichProgressBar


class Bar(RichProgressBar):
    """Lightning's bar with the figures that the module logs for it."""

    def get_metrics(self, trainer: L.Trainer, pl_module: L.LightningModule) -> dict[str, Any]:
        return {name: value for name, value in super().get_metrics(trainer, pl_module).items() if name != "v_num"}
