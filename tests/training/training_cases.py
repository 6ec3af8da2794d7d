"""Data sets and configurations small enough to train in a second."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from models.model_cases import random_graph
from scenegpi.data import write_jsonl
from scenegpi.training.config import TrainConfig
from scenegpi.training.recipes import merged, train_config

SMALL = {
    "baseline": {"hidden": 16, "embedding": 8, "rank": 4},
    "network": {"hidden": 12, "phi": 10, "alpha": 9},
}
TESTS = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]), "OMP_NUM_THREADS": "1"}


def data_file(folder: Path, images: int = 24, seed: int = 0) -> Path:
    """A data set of random scenes as JSON lines, without splits."""
    rng = np.random.default_rng(seed)
    graphs = [random_graph(rng, int(rng.integers(2, 7)), dist=False) for _ in range(images)]
    write_jsonl(folder / "data.jsonl", graphs)
    return folder / "data.jsonl"


def small_config(path: Path, preset: str = "gpi-feature-attention", **sections: Any) -> TrainConfig:
    """A preset with narrow layers, one epoch per stage; `sections` are tables or values of the configuration."""
    model = SMALL if preset != "baseline" else {"baseline": SMALL["baseline"]}
    values: dict[str, Any] = {
        "preset": preset,
        "model": model,
        "data": {"path": str(path), "validation": 4},
        "optim": {"batch": 5, "warmup": 1, "patience": 50},
        "baseline": {"epochs": 1},
        "context": {"epochs": 1},
    }
    return train_config(merged(values, sections))
