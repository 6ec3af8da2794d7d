"""Processes on one machine or on several take the steps of one with their batches together, also when resumed."""

from __future__ import annotations

import csv
import json
import socket
import subprocess
import sys

import pytest
import torch

from scenegpi.models import load_model
from scenegpi.options import plain
from scenegpi.training import train
from scenegpi.training.processes import is_first_process
from training.training_cases import ENVIRONMENT, SMALL, data_file, small_config

SCRIPT = """
import json, os, signal, sys, torch
torch.set_num_threads(1)
from pathlib import Path
from scenegpi.options import override
from scenegpi.training import TrainConfig, resume, train, trainer

how, settings, run = sys.argv[1:]
if how == "resume":
    resume(Path(run))
    sys.exit()
if how == "die":  # all processes, once the first epoch is on disk
    save = trainer.StateFile.save_checkpoint
    def die(*words, **named):
        save(*words, **named)
        os.kill(os.getpid(), signal.SIGKILL)
    trainer.StateFile.save_checkpoint = die
train(override(TrainConfig(), json.loads(settings), ""), Path(run))
"""
TIMEOUT = 3600


def settings(path, batch, **where):
    still = {"dropout": 0.0, "input_dropout": 0.0}
    return small_config(
        path,
        **where,
        loss={"kind": "released"},  # weighs all negatives of a batch together: those of both processes
        optim={"batch": batch, "keep": "last"},
        augment={"mirror": False, "drop": 0.0},
        baseline={"epochs": 2},
        model={name: {**table, **still} for name, table in SMALL.items()},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data set, a script, and two runs of one process: with the batch of two processes together, and with that of one."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("processes")
    path = data_file(folder, 24)
    (folder / "script.py").write_text(SCRIPT)
    for name, batch in (("one", 10), ("other", 5)):
        train(settings(path, batch), folder / name)
    return folder


def by_torchrun(machines):
    """The words before the script, and the environment: two processes here, or two launches that meet on loopback."""
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    if machines == 1:
        return [([*torchrun, "--standalone", "--nproc_per_node=2"], {})]
    meet = ["--nnodes=2", "--nproc_per_node=1", "--master_addr=127.0.0.1", f"--master_port={free_port()}"]
    return [([*torchrun, *meet, f"--node_rank={k}"], {}) for k in range(2)]


def by_srun():
    """What SLURM's srun tells two tasks on two machines."""
    job = {"SLURM_JOB_ID": "1", "SLURM_JOB_NAME": "train", "SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "1"}
    job |= {"SLURM_NNODES": "2", "SLURM_NODELIST": "127.0.0.1", "SLURM_LOCALID": "0"}
    job |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return [([sys.executable], {**job, "SLURM_PROCID": str(k), "SLURM_NODEID": str(k)}) for k in range(2)]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def launch(folder, run, how, config, launches):
    """Runs the script, and gives what each launch wrote to stderr, and its exit code."""
    words = [str(folder / "script.py"), how, json.dumps(plain(config)), str(folder / run)]
    started = [
        subprocess.Popen(
            [*before, *words],
            env={**ENVIRONMENT, **extra},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for before, extra in launches
    ]
    try:
        return [(process.communicate(timeout=TIMEOUT)[1], process.returncode) for process in started]
    finally:
        for process in started:
            process.kill()


def assert_as_one(folder, run):
    for stage in ("baseline", "."):
        # Adam blows up the last bits of a gradient that is nearly zero: so not the same, but much nearer than another
        assert distance(folder, stage, run, "one") < 0.1 * distance(folder, stage, run, "other")
        curves = [losses(folder / name / stage) for name in (run, "one")]
        assert len(curves[0]) == len(curves[1]) > 0
        assert curves[0] == pytest.approx(curves[1], rel=1e-3)
        finished = [json.loads((folder / name / stage / "finished.json").read_text()) for name in ("one", run)]
        assert finished[0]["R@50"] == pytest.approx(finished[1]["R@50"], abs=1e-3)


def losses(stage):
    with (stage / "log.csv").open() as handle:
        return [float(row["loss"]) for row in csv.DictReader(handle)]


def distance(folder, stage, *runs):
    """Between the weights of two runs."""
    weights = [load_model(folder / run / stage / "model").requires_grad_(False) for run in runs]
    pairs = zip(*(model.parameters() for model in weights), strict=True)
    return float(sum((a - b).square().sum() for a, b in pairs)) ** 0.5


def test_two_processes_are_one_with_twice_the_batch(folder):
    config = settings(folder / "data.jsonl", 5, devices=2)
    for errors, code in launch(folder, "two", "train", config, by_torchrun(1)):
        assert code == 0, errors[-2000:]
    assert_as_one(folder, "two")


def test_two_machines_are_one_with_twice_the_batch_also_when_killed_and_resumed(folder):
    config = settings(folder / "data.jsonl", 5, nodes=2)
    died = launch(folder, "machines", "die", config, by_torchrun(2))
    assert any(code != 0 for _, code in died)
    assert (folder / "machines" / "baseline" / "log.csv").is_file(), [errors[-2000:] for errors, _ in died]
    assert len(losses(folder / "machines" / "baseline")) == 1
    for errors, code in launch(folder, "machines", "resume", config, by_srun()):
        assert code == 0, errors[-2000:]
    assert_as_one(folder, "machines")


@pytest.mark.parametrize(
    ("places", "first"),
    [
        ({}, True),
        ({"LOCAL_RANK": "1"}, False),
        ({"RANK": "0", "LOCAL_RANK": "1"}, True),
        ({"RANK": "1", "LOCAL_RANK": "0"}, False),
        ({"SLURM_PROCID": "0"}, True),
        ({"SLURM_PROCID": "3", "SLURM_LOCALID": "1"}, False),
        ({"RANK": "2", "SLURM_PROCID": "0"}, False),  # torchrun, started by srun
    ],
)
def test_one_process_is_the_first(monkeypatch, places, first):
    for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in places.items():
        monkeypatch.setenv(name, value)
    assert is_first_process() == first
