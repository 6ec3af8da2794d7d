"""The photo network in two processes: the steps of one with their batches together, killed and resumed, by torchrun."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import torch

from training.coloured import write_scenes
from training.training_cases import ENVIRONMENT
from vision.vision_cases import needs_package

pytestmark = needs_package
SCRIPT = """
import json, os, signal, sys, torch
torch.set_num_threads(1)
from pathlib import Path
from scenegpi.data import open_dataset
from scenegpi.training import MachineConfig, photo_module, photo_network
from scenegpi.training.config import PhotoFitConfig
from scenegpi.training.photo_sets import LabelSets, own_photos
from scenegpi.vision.config import BoxFeatureConfig, HeadConfig, VisionConfig

how, data, folder, devices, batch = sys.argv[1:]
photo_module.JITTER = 0.0  # drawn by each process on its own
photo_network.PART = 8
ended = photo_network._KeepState.on_train_epoch_end
def told(self, trainer, module):
    ended(self, trainer, module)
    if trainer.is_global_zero:
        print(f"exact {float(trainer.callback_metrics['loss']):.9f}", flush=True)
photo_network._KeepState.on_train_epoch_end = told
if how == "die" and os.environ.get("RANK") == "1":  # one of the two, once the first part is on disk
    photo_network._KeepState.on_train_epoch_start = lambda self, trainer, module: (
        os.kill(os.getpid(), signal.SIGKILL) if trainer.current_epoch else None
    )
dataset = open_dataset(Path(data) / "data.jsonl", images=Path(data) / "images")
rows = range(15)
photos = own_photos([dataset.image_path(i) for i in rows], [dataset[i] for i in rows])
config = VisionConfig(BoxFeatureConfig(backbone="photo", photo_size=64, mirror=False), HeadConfig(8, 0.0, 0.0))
vision = photo_network.new_vision(config, dataset.vocabulary, 0)
options = PhotoFitConfig(epochs=2, sizes=(64,), batch=int(batch), frozen=6)
sets = LabelSets(vision.labels.objects, vision.names)
machine = MachineConfig(devices=int(devices))
photo_network.fit_network(vision, photos, sets, options, Path(folder), machine=machine)
"""


def run(folder, name, how, devices, batch):
    """What was printed of each part, and the exit code."""
    words = [str(folder / "script.py"), how, str(folder), str(folder / name), str(devices), str(batch)]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={devices}"]
    command = [*(launcher if devices > 1 else [sys.executable]), *words]
    done = subprocess.run(command, env=ENVIRONMENT, cwd=folder, capture_output=True, text=True, timeout=3600)
    losses = [float(value) for value in re.findall(r"exact ([\d.]+)", done.stdout)]
    return losses, done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = write_scenes(tmp_path_factory.mktemp("photos"), images=15, photos=15)
    (folder / "script.py").write_text(SCRIPT)
    return folder


def test_two_processes_are_one_also_when_one_of_them_is_killed(folder):
    one, done = run(folder, "one", "train", 1, 4)
    assert len(one) == 4, done.stderr[-2000:]
    first, done = run(folder, "killed", "die", 2, 2)
    assert done.returncode != 0
    assert len(first) == 1
    assert (folder / "killed" / "last.ckpt").is_file()
    rest, done = run(folder, "killed", "resume", 2, 2)
    assert done.returncode == 0, done.stderr[-2000:]
    assert [*first, *rest] == pytest.approx(one, rel=1e-4)  # Adam blows up the last bits of a gradient
    assert first[0] == pytest.approx(one[0], rel=1e-5)
    assert not (folder / "killed" / "last.ckpt").exists()
    weights = [load(folder / name / "vision.safetensors") for name in ("one", "killed")]
    for name, value in weights[1].items():
        torch.testing.assert_close(weights[0][name], value, rtol=1e-2, atol=1e-3, msg=name)


def load(file):
    from safetensors.torch import load_file

    return load_file(file)
