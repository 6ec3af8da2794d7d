"""A folder belongs to one process at a time, and what a killed one left is removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from scenegpi.errors import DataError
from scenegpi.files import PART, tidy
from scenegpi.locks import LOCK, folder_lock

HOLD = """
import sys, time
from pathlib import Path
from scenegpi.locks import folder_lock
with folder_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_told_who_holds_the_folder_and_a_dead_one_holds_nothing(tmp_path):
    path = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(DataError, match=f"in use by process {other.pid}$"), folder_lock(tmp_path):
            pass
        other.send_signal(signal.SIGKILL)
    with folder_lock(tmp_path):
        assert (tmp_path / LOCK).read_text() == f"{os.getpid()}\n"
    assert not list(tmp_path.iterdir())


def test_the_same_process_does_not_lock_twice(tmp_path):
    with folder_lock(tmp_path):
        with pytest.raises(DataError, match="in use"), folder_lock(tmp_path):
            pass
        assert (tmp_path / LOCK).exists()  # what was refused took nothing away


def test_an_error_inside_frees_the_folder(tmp_path):
    with pytest.raises(KeyError), folder_lock(tmp_path / "new"):
        raise KeyError
    with folder_lock(tmp_path / "new"):
        pass


def test_a_lock_that_is_no_file(tmp_path):
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="cannot be written"), folder_lock(tmp_path):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_half_written_files_go_and_nothing_else(tmp_path):
    (tmp_path / f".a.x{PART}").touch()
    (tmp_path / f".model.y{PART}").mkdir()
    (tmp_path / f".model.y{PART}" / "config.json").touch()
    (tmp_path / "below" / "deep").mkdir(parents=True)
    (tmp_path / "below" / "deep" / f".c.z{PART}").touch()
    others = [".film.mkv.part", ".hidden", "b.part", "model"]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / ".cache.part").mkdir()
    tidy(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted([*others, ".cache.part", "below", "deep"])


def test_the_files_of_a_process_that_works_in_a_folder_below_stay(tmp_path):
    with folder_lock(tmp_path / "inner"):
        (tmp_path / "inner" / f".a.x{PART}").touch()
        tidy(tmp_path)
        assert (tmp_path / "inner" / f".a.x{PART}").exists()
    tidy(tmp_path)
    assert not list((tmp_path / "inner").iterdir())
