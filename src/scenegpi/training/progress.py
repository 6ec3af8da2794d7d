"""What a run shows while it goes on: a bar with loss and validation recall, and how many photos were looked at."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import lightning as L
from lightning.pytorch.callbacks import RichProgressBar


class Bar(RichProgressBar):
    """Lightning's bar with the figures that the module logs for it."""

    def get_metrics(self, trainer: L.Trainer, pl_module: L.LightningModule) -> dict[str, Any]:
        return {name: value for name, value in super().get_metrics(trainer, pl_module).items() if name != "v_num"}


def photo_counter(shown: bool) -> Callable[[str, int, int], None] | None:
    """Counts on one line of the terminal: what, how many are done, of how many."""
    if not shown:
        return None

    def count(what: str, done: int, total: int) -> None:
        end = "\r\033[K" if done >= total else ""
        print(f"\r{what} {done:,} / {total:,}", end=end, file=sys.stderr, flush=True)

    return count


def print_figures(figures: Mapping[str, Any]) -> None:
    """One line about the label predictor."""
    parts = [f"{name} {value:.4g}" for name, value in figures.items()]
    print(f"label predictor, on boxes it was not trained on: {', '.join(parts)}", flush=True)
