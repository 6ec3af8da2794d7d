"""A run that was killed, at any moment, goes on as if nothing had happened."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys

import pytest
import torch

from scenegpi.errors import DataError
from scenegpi.locks import LOCK
from scenegpi.models import load_model
from scenegpi.options import plain
from scenegpi.training import resume, train
from scenegpi.training.folder import RunFolder
from scenegpi.training.run import read_run
from training.training_cases import ENVIRONMENT, data_file, small_config

SCRIPT = """
import json, os, signal, sys, torch
torch.set_num_threads(1)
from pathlib import Path
from scenegpi.options import override
from scenegpi.training import TrainConfig, folder, stage, train, trainer

MOMENTS = {
    "while the model is written": (folder, "save_model"),
    "before the state is written": (trainer.StateFile, "save_checkpoint"),
    "while it is calibrated": (stage, "save_model"),
    "before the end is noted": (stage, "write_json"),
}

def run_until(run, settings, moment, times):
    place, name = MOMENTS[moment]
    plain, calls = getattr(place, name), []
    def die(*words, **named):
        calls.append(words)
        if len(calls) <= times:
            return plain(*words, **named)
        if name == "save_model":
            (run / ".model.abc.scenegpi.part").mkdir()
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(place, name, die)
    train(override(TrainConfig(), settings, ""), run)

for run, settings, moment, times in json.loads(sys.argv[1]):
    child = os.fork()  # this process has one thread, and Lightning is loaded once
    if not child:
        run_until(Path(run), settings, moment, times)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
"""
KILLS = {
    "first": ("while the model is written", 0),
    "model": ("while the model is written", 1),
    "state": ("before the state is written", 0),
    "context": ("before the state is written", 2),
    "calibrated": ("while it is calibrated", 1),
    "finished": ("before the end is noted", 1),
}
"""When a run is killed: the moment, and how often it may pass before."""
STILL = {"epochs": 30, "optim": {"patience": 2, "learning_rate": 1e-9}}
"""Nothing gets better, so a run stops after three epochs."""


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def rows(run):
    with (run / "log.csv").open() as handle:
        return list(csv.DictReader(handle))


def assert_same(run, whole):
    for stage in ("baseline", "."):
        for a, b in zip(rows(run / stage), rows(whole / stage), strict=True):
            assert a["epoch"] == b["epoch"]
            for name in ("loss", "R@50"):
                assert float(a[name]) == pytest.approx(float(b[name]), rel=1e-6)
        kept, other = load_model(run / stage / "model"), load_model(whole / stage / "model")
        for (key, a), b in zip(kept.state_dict().items(), other.state_dict().values(), strict=True):
            assert torch.allclose(a.float(), b.float(), atol=1e-6), key
        assert kept.calibration == other.calibration
        assert kept.trained_on == other.trained_on
    assert not [path for path in run.rglob(".*") if path.name != LOCK]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that nothing disturbed, "whole"; those that were killed; and two that stop early, killed as well."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("runs")
    data = data_file(folder, 50)
    settings = {"data": {"validation": 22}, "optim": {"batch": 7}}
    config = small_config(data, baseline={"epochs": 2}, context={"epochs": 2}, half=True, **settings)
    still = small_config(data, "baseline", baseline=STILL, **settings)
    wanted = [(str(folder / name), plain(config), *kill) for name, kill in KILLS.items()]
    wanted.append((str(folder / "stopped"), plain(still), "before the end is noted", 0))
    wanted.append((str(folder / "impatient"), plain(still), "before the state is written", 1))
    subprocess.run([sys.executable, "-c", SCRIPT, json.dumps(wanted)], env=ENVIRONMENT, check=True)
    train(config, folder / "whole")
    return folder


@pytest.mark.parametrize("name", KILLS)
def test_killed_and_resumed_is_never_interrupted(name, runs):
    run = runs / name
    assert (run / "config.json").is_file()
    assert not (run / "finished.json").exists()
    resume(run)
    assert_same(run, runs / "whole")
    with pytest.raises(DataError, match="finished"):
        read_run(run)


@pytest.mark.parametrize("name", ["stopped", "impatient"])
def test_early_stopping_is_part_of_the_state(name, runs):
    """A resumed run once trained one epoch more than an undisturbed one."""
    resume(runs / name)
    assert len(rows(runs / name)) == 3


def test_a_second_process_is_refused(tmp_path, monkeypatch):
    config = small_config(data_file(tmp_path), "baseline")
    plain_end, caught = RunFolder.on_train_epoch_end, []

    def meanwhile(self, trainer, module):
        for again in (lambda: resume(tmp_path / "run"), lambda: train(config, tmp_path / "run")):
            with pytest.raises(DataError, match=f"in use by process {os.getpid()}") as error:
                again()
            caught.append(error)
        plain_end(self, trainer, module)

    monkeypatch.setattr(RunFolder, "on_train_epoch_end", meanwhile)
    train(config, tmp_path / "run")
    assert len(caught) == 2
    assert load_model(tmp_path / "run" / "model")


def test_a_run_that_was_killed_before_it_had_settings_is_started_again(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / ".config.json.abc.scenegpi.part").write_text("{")
    (run / LOCK).write_text("1\n")
    train(small_config(data_file(tmp_path), "baseline"), run)
    assert not list(run.rglob(".*"))


def test_there_must_be_something_to_resume(tmp_path):
    with pytest.raises(DataError, match="no run to resume"):
        resume(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def stopped(tmp_path):
    """A run that has a state and is not finished."""
    run = tmp_path / "run"
    train(small_config(data_file(tmp_path), "baseline"), run)
    (run / "finished.json").unlink()
    return run


def test_a_hostile_state_is_refused_not_run(stopped, tmp_path):
    class Evil:
        def __reduce__(self):
            return os.system, ("touch " + str(tmp_path / "evil"),)

    torch.save({"state_dict": Evil()}, stopped / "last.ckpt")
    with pytest.raises(DataError, match="not a training state") as caught:
        resume(stopped)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "evil").exists()


def test_a_pipe_in_place_of_the_state_is_refused_not_waited_for(stopped):
    (stopped / "last.ckpt").unlink()
    os.mkfifo(stopped / "last.ckpt")
    with pytest.raises(DataError, match=r"last\.ckpt: is not a regular file"):
        resume(stopped)
