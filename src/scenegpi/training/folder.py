"""A run on disk: what it was told, its log, its best model, and the state to go on from.

    config.json   every setting
    log.csv       one row an epoch
    model/        the best model so far (a checkpoint folder)
    last.ckpt     weights, optimiser and counters after the last whole epoch
    finished.json when it is done

Files are replaced whole, the model before the state: a kill at any moment costs the current epoch at most.
"""

from __future__ import annotations

import csv
import json
import math
import shutil
import time
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.fabric.plugins.io.torch_io import TorchCheckpointIO

from scenegpi.errors import DataError
from scenegpi.files import whole_file
from scenegpi.models.checkpoint import save_model
from scenegpi.training.module import MONITOR, SceneModule

CONFIG, LOG, MODEL, STATE, FINISHED = "config.json", "log.csv", "model", "last.ckpt", "finished.json"


class WholeFiles(TorchCheckpointIO):
    """State files are written whole, and read without running what is in them."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        with whole_file(Path(path)) as part:
            torch.save(checkpoint, part)

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = True) -> dict[str, Any]:
        try:
            return torch.load(path, map_location=map_location or "cpu", weights_only=True)
        except Exception as error:  # what torch raises depends on where the file is broken
            raise DataError(path, f"is no state to resume from ({type(error).__name__})") from None


class RunFolder(L.Callback):
    """Writes the run after every epoch. Stands last among the callbacks, so that it saves what the others know."""

    def __init__(self, folder: Path, record: dict[str, Any], simulated: bool, keep_last: bool = False) -> None:
        self.folder, self.record, self.simulated, self.keep_last = folder, record, simulated, keep_last
        self.rows: list[dict[str, float]] = []
        self.best = -1.0
        self.started = time.perf_counter()

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "best": self.best}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.rows, self.best = list(state_dict["rows"]), float(state_dict["best"])

    def on_train_epoch_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.started = time.perf_counter()

    def on_train_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if not isinstance(pl_module, SceneModule):
            raise TypeError(f"RunFolder writes runs of SceneModule, not of {type(pl_module).__name__}")
        seconds = time.perf_counter() - self.started
        metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
        row = {"epoch": trainer.current_epoch + 1, "seconds": round(seconds, 2), **metrics}
        self.rows.append(row)
        found = metrics.get(MONITOR, 0.0)
        better = found > self.best
        self.best = max(self.best, found)
        if trainer.is_global_zero:
            if better or self.keep_last:
                self._save_model(pl_module, trainer.current_epoch + 1)
            self._save_log()
            mark = " (best)" if better and not self.keep_last else ""
            recall = f", {MONITOR} {found:.2f}{mark}" if MONITOR in metrics else ""
            print(
                f"epoch {row['epoch']}: loss {metrics.get('loss', math.nan):.4f}{recall}, {seconds:.0f} s", flush=True
            )
        trainer.save_checkpoint(self.folder / STATE)

    def _save_model(self, module: SceneModule, epoch: int) -> None:
        count = int(module.recall.sums[module.plan.layout.blocks["images"]][0])
        what = "validation" + (" (simulated label distributions)" if self.simulated else "")
        entry = {"figures": module.figures(), "images": count, "protocol": str(module.plan.protocol), "epoch": epoch}
        metrics = {what: entry} if count else {}
        save_model(module.best_model, self.folder / MODEL, metrics, self.record, overwrite=True)

    def _save_log(self) -> None:
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        with whole_file(self.folder / LOG) as part, part.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, names)
            writer.writeheader()
            writer.writerows(self.rows)


def check_empty(folder: Path, but: str | None = None) -> None:
    """DataError if there is something in the folder of a new run, other than what is called `but`."""
    if folder.exists() and (not folder.is_dir() or any(each.name != but for each in folder.iterdir())):
        raise DataError(folder, "exists already (--resume goes on with a run, or choose another folder)")


def tidy(folder: Path) -> None:
    """What a kill may leave: half-written files go; a model that was being replaced comes back."""
    for old in folder.glob(f".{MODEL}.*.old"):
        if not (folder / MODEL).exists():
            old.rename(folder / MODEL)
    for left in (*folder.glob(".*.part"), *folder.glob(".*.old")):
        shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)


def write_json(path: Path, data: Any) -> None:
    """A JSON file, written whole."""
    with whole_file(path) as part:
        part.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
