"""Files that are broken as a whole: one line, the file's name, no traceback; and nothing half-written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import vg_files
from scenegpi import SceneGraph, files
from scenegpi.data import DataError, convert, jsonl, open_dataset, sample_path, write_jsonl
from strategies import VOCABULARY

NAMES = ["x.jsonl", "x.json", "x.csv", "x.h5"]


def complain(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        open_dataset(path)
    text = str(caught.value)
    assert text.startswith(str(path.parent))
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", NAMES)
def test_empty(tmp_path, name):
    vg_files.write(tmp_path)
    (tmp_path / name).write_bytes(b"")
    assert "the file is empty" in complain(tmp_path / name)


@pytest.mark.parametrize("name", NAMES)
def test_noise(tmp_path, name):
    vg_files.write(tmp_path)
    (tmp_path / name).write_bytes(bytes(range(256)) * 40)
    complain(tmp_path / name)


@pytest.mark.parametrize("name", NAMES)
def test_a_directory_in_the_place_of_a_file(tmp_path, name):
    (tmp_path / name).mkdir()
    complain(tmp_path / name)


@pytest.mark.parametrize("name", [*NAMES, "x.txt"])
def test_what_is_no_regular_file_is_not_waited_for(tmp_path, name):
    vg_files.write(tmp_path)
    os.mkfifo(tmp_path / name)
    assert "is not a regular file" in complain(tmp_path / name)


def test_nothing_there(tmp_path):
    assert "no such file or folder" in complain(tmp_path / "x.json")


def test_unknown_kind(tmp_path):
    (tmp_path / "x.xml").write_text("<a/>")
    assert "unknown kind of file" in complain(tmp_path / "x.xml")
    assert "the folder contains no known data set" in complain(tmp_path)


def test_no_permission(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    path.write_text("{}")

    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert complain(path).endswith("cannot be read (Permission denied)")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_truncated_h5(tmp_path, share):
    folder = vg_files.write(tmp_path)
    path = folder / "VG-SGG.h5"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert "HDF5" in complain(folder)


def test_h5_of_an_older_garbled_kind(tmp_path):
    folder = vg_files.write(tmp_path)
    (folder / "VG-SGG.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 4000)
    assert "HDF5" in complain(folder)


@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000])
def test_deep_nesting(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    complain(tmp_path / name)


@pytest.mark.parametrize("text", ["3", '"x"', "null", "{}", "[]", "[3]", '{"images": 3}'])
@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_wrong_json_type(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    if text == "[]" and name == "x.json":
        assert len(open_dataset(tmp_path / name)) == 0  # a detector that found nothing
    elif text == "[3]" and name == "x.json":
        assert "[0].image_id" in str(open_dataset(tmp_path / name).report.defects[0])
    elif text.startswith("{") and name == "x.jsonl":
        assert "line 1: vocabulary: missing" in str(open_dataset(tmp_path / name).report.defects[0])
    else:
        complain(tmp_path / name)


def test_a_line_that_never_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "MAX_LINE", 1000)
    path = tmp_path / "x.jsonl"
    write_jsonl(path, [SceneGraph([], [], VOCABULARY, image_id=1)])
    with path.open("a") as handle:
        handle.write('{"image": "' + "x" * 5000)
    assert "line 2: longer than 1,000 bytes" in complain(path)


def test_json_larger_than_allowed_is_not_even_read(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    path.write_text("[" + "1," * 1000 + "1]")
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("it was read"))
    with pytest.raises(DataError, match="more than the 1,000 this reader accepts"):
        files.read_json(path, max_bytes=1000)


GIGABYTE_LINE = """
import resource, sys
from pathlib import Path
from scenegpi.data import DataError, open_dataset
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    open_dataset(sys.argv[1])
except DataError as error:
    print(error, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_gigabyte_in_one_line_costs_bounded_memory(tmp_path):
    path = tmp_path / "x.jsonl"
    with path.open("wb") as handle:
        handle.truncate(2**30)  # a sparse file: a gigabyte of zero bytes, no disk
    done = subprocess.run([sys.executable, "-c", GIGABYTE_LINE, str(path)], capture_output=True, text=True, check=True)
    message, megabytes = done.stdout.strip().rsplit(" ", 1)
    assert "line 1: longer than" in message
    assert int(megabytes) < 700


WRITE = """
import resource, signal, sys
from scenegpi.data import DataError, convert, open_dataset, sample_path
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
try:
    convert(open_dataset(sample_path()), sys.argv[1], overwrite=True)
except DataError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "folder"])
def test_a_full_disk_leaves_what_was_there(tmp_path, name):
    """The system refuses to write more than 1,500 bytes a file, as a full disk would."""
    target = tmp_path / name
    convert(open_dataset(sample_path()), target)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = subprocess.run([sys.executable, "-c", WRITE, str(target)], capture_output=True, text=True, check=True)
    assert f"{target}: cannot be written (File too large)" in done.stdout
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", ["x.jsonl", "x.json", "folder"])
def test_nothing_is_replaced_unasked(tmp_path, name):
    data = open_dataset(sample_path())
    convert(data, tmp_path / name)
    with pytest.raises(DataError, match="exists already"):
        convert(data, tmp_path / name)
    assert convert(data, tmp_path / name, overwrite=True) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_force_touches_only_its_own_files(tmp_path):
    data = open_dataset(sample_path())
    (tmp_path / "folder" / "VG_100K").mkdir(parents=True)
    (tmp_path / "folder" / "VG_100K" / "1.jpg").write_text("a photo")
    convert(data, tmp_path / "folder", overwrite=True)
    assert (tmp_path / "folder" / "VG_100K" / "1.jpg").read_text() == "a photo"
    assert len(open_dataset(tmp_path / "folder")) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_links_are_not_written_through_and_devices_are_refused(tmp_path):
    data = open_dataset(sample_path())
    (tmp_path / "real.jsonl").write_text("old")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real.jsonl")
    convert(data, tmp_path / "link.jsonl", overwrite=True)
    assert not (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "real.jsonl").read_text() == "old"
    assert len(open_dataset(tmp_path / "link.jsonl")) == 3
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(DataError, match="is not a regular file"):
        convert(data, tmp_path / "pipe.jsonl", overwrite=True)


def test_nothing_to_write(tmp_path):
    with pytest.raises(DataError, match="no images to write"):
        convert(open_dataset(sample_path())[:0], tmp_path / "x.jsonl")


def test_a_failure_midway_leaves_nothing(tmp_path):
    def break_off(graphs):
        yield next(iter(graphs))
        raise RuntimeError("stop")

    for name in ("x.jsonl", "x.json", "folder"):
        with pytest.raises(RuntimeError):
            convert(open_dataset(sample_path()), tmp_path / name, watch=break_off)
    assert list(tmp_path.iterdir()) == []


def test_written_files_follow_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        convert(open_dataset(sample_path()), tmp_path / "x.jsonl")
        convert(open_dataset(sample_path()), tmp_path / "folder")
    finally:
        os.umask(old)
    assert (tmp_path / "x.jsonl").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o750


def test_targets_that_cannot_be(tmp_path):
    data = open_dataset(sample_path())
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="is a file, expected a folder"):
        convert(data, tmp_path / "file", "visual-genome")
    with pytest.raises(DataError, match="is a directory, expected a file"):
        convert(data, tmp_path, "jsonl")
    with pytest.raises(DataError, match="cannot be written"):
        convert(data, tmp_path / "file" / "x.jsonl")
    with pytest.raises(DataError, match="does not tell the format"):
        convert(data, tmp_path / "x.png")
