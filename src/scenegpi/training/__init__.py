"""Losses, batches, the Lightning module, and a run on disk that can be stopped and resumed.

from scenegpi.training import TrainConfig, train
train(TrainConfig(...), "runs/first")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenegpi.training.config import TrainConfig, read_toml
    from scenegpi.training.run import train
    from scenegpi.training.simulate import simulate_labels

_HOMES = {"TrainConfig": "config", "read_toml": "config", "simulate_labels": "simulate", "train": "run"}

__all__ = ["TrainConfig", "read_toml", "simulate_labels", "train"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"scenegpi.training.{_HOMES[name]}"), name)
