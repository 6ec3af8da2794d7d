"""Two processes give the gradient of one with twice the batch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from training.training_cases import data_file

TESTS = Path(__file__).resolve().parents[1]
SCRIPT = """
import sys
from pathlib import Path
import lightning as L
import torch
from scenegpi.features.batch import Seen
from scenegpi.training import run
from scenegpi.training.batches import TrainingImages, train_loader
from scenegpi.training.simulate import label_shares
from scenegpi.training.data_split import open_images
from training.training_cases import small_config

torch.set_num_threads(1)
data, out, processes, batch, loss = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
still = {"dropout": 0.0, "input_dropout": 0.0}
config = small_config(
    data, device="cpu", devices=processes, loss={"kind": loss}, optim={"epochs": 1, "first_epochs": 0, "batch": batch, "clip": 0.0},
    model={"baseline": {"hidden": 16, "embedding": 8, "rank": 4, **still},
           "context": {"hidden": 12, "phi": 10, "alpha": 9, "dropout": 0.0, "input_dropout": 0.0, "freeze": False}},
)

class Keep(L.Callback):
    def on_before_optimizer_step(self, trainer, module, optimizer):
        if trainer.global_step == 0 and trainer.is_global_zero:
            torch.save({name: p.grad for name, p in module.model.named_parameters()}, out)

images = open_images(config.data)
module = run.make_module(config, images, Path("run"))
trainer = run.make_trainer(config, out.parent / f"folder{processes}{loss}")
trainer.callbacks.append(Keep())
shares = label_shares(images.train, len(images.vocabulary.objects))
loader = train_loader(TrainingImages(images.train, config, shares), trainer.global_rank, trainer.world_size)
assert trainer.world_size == processes
mine = [Seen(each) for each in images.validation][trainer.global_rank :: trainer.world_size]
trainer.fit(module, loader, run.validation_loader(mine))
if trainer.is_global_zero:
    print("R@50", float(trainer.callback_metrics["R@50"]))
"""


def run(tmp_path, processes, batch, loss):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]), "OMP_NUM_THREADS": "1"}
    script, out = tmp_path / "script.py", tmp_path / f"{processes}.pt"
    script.write_text(SCRIPT)
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"] if processes > 1 else []
    command = [
        sys.executable,
        *launcher,
        str(script),
        str(tmp_path / "data.jsonl"),
        str(out),
        str(processes),
        str(batch),
        loss,
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return torch.load(out, weights_only=True), done.stdout


@pytest.mark.parametrize("loss", ["released"])
def test_two_processes_are_one_with_twice_the_batch(loss, tmp_path):
    data_file(tmp_path, 24)
    one, told = run(tmp_path, 1, 10, loss)
    two, also = run(tmp_path, 2, 5, loss)
    assert one.keys() == two.keys()
    assert any(grad is not None and grad.abs().max() > 1e-3 for grad in one.values())
    for name, grad in one.items():
        if grad is None:
            assert two[name] is None or not two[name].any(), name
        else:
            assert torch.allclose(grad, two[name], atol=1e-5, rtol=1e-4), name
    assert told.splitlines()[-1].startswith("R@50")
    assert "R@50" in also
