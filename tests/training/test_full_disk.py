"""A disk that is full: one line with the file, nothing half-written, and the run goes on once there is room."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import contextmanager

import pytest
import torch

from models.model_cases import small_model
from scenegpi.errors import DataError
from scenegpi.locks import folder_lock
from scenegpi.models import save_model
from scenegpi.training import resume, train
from scenegpi.training.trainer import StateFile
from training.training_cases import data_file, small_config


@contextmanager
def small_files(size):
    """Writes beyond `size` bytes of a file fail, as they do on a full disk."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


@pytest.mark.parametrize("write", [0, 1, 4, 5, 9, 11])
def test_a_run_meets_a_full_disk(tmp_path, monkeypatch, write):
    """After `write` files; config.json is the first, then a model, the log, the state; the last is finished.json."""
    torch.set_num_threads(1)
    data, run, plain, count = data_file(tmp_path), tmp_path / "run", os.fsync, 0

    def full(handle):
        nonlocal count
        count += 1
        if count > write:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        plain(handle)

    monkeypatch.setattr(os, "fsync", full)
    config = small_config(data, "baseline", baseline={"epochs": 2})
    with pytest.raises(DataError, match=rf"^{run}.*: cannot be written \(No space left on device\)"):
        train(config, run)
    monkeypatch.undo()
    assert not list(run.rglob(".*"))
    assert (run / "config.json").exists() == (write > 1)
    if write > 1:
        resume(run)
    else:
        train(config, run)
    assert (run / "finished.json").is_file()


def test_the_writers_of_torch_and_safetensors_say_so_too(tmp_path):
    model, state = small_model("baseline"), {"weights": torch.zeros(10_000)}
    with small_files(2000), pytest.raises(DataError, match=r"model: cannot be written \(File too large\)"):
        save_model(model, tmp_path / "model")
    with small_files(2000), pytest.raises(DataError, match=r"last.ckpt: cannot be written \(File too large\)"):
        StateFile().save_checkpoint(state, tmp_path / "last.ckpt")
    assert not list(tmp_path.iterdir())


def test_a_lock_on_a_full_disk_holds_without_naming_its_process(tmp_path):
    used = pytest.raises(DataError, match="in use by process unknown")
    with small_files(0), folder_lock(tmp_path), used, folder_lock(tmp_path):
        pass
    assert not list(tmp_path.iterdir())
