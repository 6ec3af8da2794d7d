"""Two processes take the steps of one with twice the batch, through both stages of a run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from scenegpi.models import load_model
from scenegpi.options import plain
from scenegpi.training import train
from training.training_cases import ENVIRONMENT, SMALL, data_file, small_config

SCRIPT = """
import json, sys, torch
torch.set_num_threads(1)
from pathlib import Path
from scenegpi.options import override
from scenegpi.training import TrainConfig, train
train(override(TrainConfig(), json.loads(sys.argv[1]), ""), Path(sys.argv[2]))
"""


def settings(path, processes, batch):
    still = {"dropout": 0.0, "input_dropout": 0.0}
    return small_config(
        path,
        devices=processes,
        loss={"kind": "released"},  # weighs all negatives of a batch together: those of both processes
        optim={"batch": batch, "keep": "last"},
        augment={"mirror": False, "drop": 0.0},
        model={name: {**table, **still} for name, table in SMALL.items()},
    )


def test_two_processes_are_one_with_twice_the_batch(tmp_path):
    torch.set_num_threads(1)
    path, script = data_file(tmp_path, 24), tmp_path / "script.py"
    script.write_text(SCRIPT)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(script)]
    words = [json.dumps(plain(settings(path, 2, 5))), str(tmp_path / "two")]
    done = subprocess.run(
        [*launcher, *words], env=ENVIRONMENT, capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for name, batch in (("one", 10), ("other", 5)):
        train(settings(path, 1, batch), tmp_path / name)
    for stage in ("baseline", "."):
        # Adam blows up the last bits of a gradient that is nearly zero: so not the same, but much nearer than another
        assert distance(tmp_path, stage, "two", "one") < 0.1 * distance(tmp_path, stage, "two", "other")
        finished = [json.loads((tmp_path / run / stage / "finished.json").read_text()) for run in ("one", "two")]
        assert finished[0]["R@50"] == pytest.approx(finished[1]["R@50"], abs=1e-3)


def distance(folder, stage, *runs):
    """Between the weights of two runs."""
    weights = [load_model(folder / run / stage / "model").requires_grad_(False) for run in runs]
    pairs = zip(*(model.parameters() for model in weights), strict=True)
    return float(sum((a - b).square().sum() for a, b in pairs)) ** 0.5
