"""A run on disk: its settings, log, model, and the state to resume from.

    config.json   every setting; written first
    vision/       the label predictor, see `scenegpi.training.label_predictor`
    baseline/     the stage before the context: a log, a model and a state of its own
    log.csv       one row per epoch
    model/        the best model so far, or the last (a checkpoint folder)
    last.ckpt     weights, optimiser and counters after the last whole epoch
    finished.json when it is done

Files are replaced whole, the model before the state: a kill at any moment loses at most the current epoch.
"""

from __future__ import annotations

import copy
import csv
import math
import time
from pathlib import Path
from typing import Any

import lightning as L

from scenegpi.errors import DataError
from scenegpi.files import whole_file
from scenegpi.locks import LOCK
from scenegpi.models.build import SceneModel
from scenegpi.models.checkpoint import load_model, save_model
from scenegpi.training.module import MONITOR, SceneModule, recall_figures
from scenegpi.training.trainer import RunningMean

CONFIG, LOG, MODEL, STATE, FINISHED = "config.json", "log.csv", "model", "last.ckpt", "finished.json"
BASELINE = "baseline"


class RunFolder(L.Callback):
    """Writes a stage after every epoch. It is the last callback, so that it saves the state of the others.

    `record` tells how the model is made, for its card. The model of `mean`, or else the trained one, is kept: of the
    best epoch, or of the last with `keep_last`.
    """

    def __init__(self, folder: Path, record: dict[str, Any], mean: RunningMean | None, keep_last: bool) -> None:
        self.folder, self.record, self.mean, self.keep_last = folder, record, mean, keep_last
        self.rows: list[dict[str, float]] = []
        self.best = -1.0
        self.metrics: dict[str, Any] = {}
        self._kept: SceneModel | None = None
        self.started = time.perf_counter()

    @property
    def kept(self) -> SceneModel:
        """The model of the kept epoch; read from the folder if that was before a resume."""
        return load_model(self.folder / MODEL) if self._kept is None else self._kept

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "best": self.best, "metrics": self.metrics}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.rows, self.best, self.metrics = (state_dict[name] for name in ("rows", "best", "metrics"))

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.started = time.perf_counter()

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if not isinstance(pl_module, SceneModule):
            raise TypeError(f"RunFolder writes runs of SceneModule, not of {type(pl_module).__name__}")
        seconds = time.perf_counter() - self.started
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        epoch = trainer.current_epoch + 1
        self.rows.append({"epoch": epoch, "seconds": round(seconds, 2), **metrics})
        found = metrics.get(MONITOR, 0.0)
        better = found > self.best
        self.best = max(self.best, found)
        if trainer.is_global_zero:
            if better or self.keep_last:
                self._keep(pl_module, epoch)
            self._save_log()
            mark = " (best)" if better and not self.keep_last else ""
            recall = f", {MONITOR} {found:.2f}{mark}" if MONITOR in metrics else ""
            print(f"epoch {epoch}: loss {metrics.get('loss', math.nan):.4f}{recall}, {seconds:.0f} s", flush=True)
        trainer.save_checkpoint(self.folder / STATE)

    def _keep(self, module: SceneModule, epoch: int) -> None:
        self._kept = copy.deepcopy(module.model if self.mean is None else self.mean.model)
        count = int(module.recall.sums[module.plan.layout.blocks["images"]][0])
        if count:
            entry = {"figures": recall_figures(module.recall), "images": count, "protocol": str(module.plan.protocol)}
            self.metrics = {"validation": {**entry, "epoch": epoch}}
        save_model(self._kept, self.folder / MODEL, self.metrics, self.record, overwrite=True)

    def _save_log(self) -> None:
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        with whole_file(self.folder / LOG) as part, part.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, names)
            writer.writeheader()
            writer.writerows(self.rows)


def check_empty(folder: Path) -> None:
    """DataError if a new run's folder contains anything but the half-written settings of a killed one."""
    for left in folder.glob(f".{CONFIG}.*.part"):
        left.unlink(missing_ok=True)
    if any(each.name != LOCK for each in folder.iterdir()):
        raise DataError(folder, "exists already (--resume continues a run; or choose another folder)")
