"""Data sets and configurations small enough to train in a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from models.model_cases import random_graph
from scenegpi.data import write_jsonl
from scenegpi.training.config import TrainConfig, train_config

SMALL = {
    "baseline": {"hidden": 16, "embedding": 8, "rank": 4},
    "context": {"hidden": 12, "phi": 10, "alpha": 9},
}


def data_file(folder: Path, images: int = 24, seed: int = 0) -> Path:
    """A data set of random scenes as JSON lines, without splits."""
    rng = np.random.default_rng(seed)
    graphs = [random_graph(rng, int(rng.integers(2, 7)), dist=False) for _ in range(images)]
    write_jsonl(folder / "data.jsonl", graphs)
    return folder / "data.jsonl"


def small_config(path: Path, preset: str = "gpi-feature-attention", **sections: Any) -> TrainConfig:
    """A preset with narrow layers; `sections` are tables or values of the configuration."""
    model = {"baseline": SMALL["baseline"]}
    if preset != "baseline":
        model["context"] = SMALL["context"]
    values: dict[str, Any] = {
        "preset": preset,
        "model": model,
        "data": {"path": str(path), "validation": 4},
        "optim": {
            "epochs": 2,
            "first_epochs": 0 if preset == "baseline" else 1,
            "batch": 5,
            "warmup": 1,
            "patience": 50,
        },
    }
    for key, value in sections.items():
        values[key] = {**values.get(key, {}), **value} if isinstance(value, dict) else value
    return train_config(values)
