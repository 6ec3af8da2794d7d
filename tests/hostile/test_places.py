"""What is no regular file is refused at once: pipes would be waited for, devices read for ever."""

from __future__ import annotations

import os

import pytest

import vg_files
from scenegpi.data import DataError, open_dataset
from scenegpi.data.class_names import read_names_file
from scenegpi.data.distributions import read_distributions
from scenegpi.data.evaluation_npz import EvaluationNpz
from scenegpi.data.images import photo_size
from scenegpi.files import check_file, open_file, read_bytes, read_json, read_text
from scenegpi.vision.photos import open_photo
from scenegpi.words.vectors import WordVectors, load_words

READERS = {
    "open_file": open_file,
    "check_file": check_file,
    "read_bytes": read_bytes,
    "read_text": read_text,
    "read_json": read_json,
    "photo": open_photo,
    "photo size": photo_size,
    "words": load_words,
    "own words": WordVectors.load,
    "names": read_names_file,
    "distributions": read_distributions,
    "evaluation": lambda path: EvaluationNpz(path, "sgdet"),
    "data": open_dataset,
}


def fifo(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def loop(path):
    path.symlink_to(path)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (fifo, "is not a regular file"),
        (device, "is not a regular file"),
        (loop, "Too many levels|no such file"),
        (lambda path: path.mkdir(), "is a directory|contains no known data set"),
        (lambda path: path.touch(), "the file is empty|no label"),
        (lambda path: None, "No such file|no such file"),
    ],
    ids=["fifo", "device", "loop", "folder", "empty", "nothing"],
)
def test_it_is_said_in_one_line(tmp_path, reader, make, said):
    path = tmp_path / "x.jsonl"
    make(path)
    with pytest.raises(DataError, match=said) as caught:
        READERS[reader](path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("make", [fifo, device])
@pytest.mark.parametrize("name", ["VG-SGG.h5", "VG-SGG-dicts.json", "image_data.json"])
def test_inside_a_data_set(tmp_path, name, make):
    folder = vg_files.write(tmp_path)
    (folder / name).unlink()
    make(folder / name)
    with pytest.raises(DataError, match=f"{name}: is not a regular file"):
        open_dataset(folder)


@pytest.mark.parametrize("make", [fifo, device])
def test_beside_a_data_set(tmp_path, make):
    """Photos and names that are no files are not there."""
    (tmp_path / "a.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    make(tmp_path / "a.jpg")
    make(tmp_path / "classes.txt")
    assert len(open_dataset(tmp_path)) == 1


def test_a_path_that_cannot_be(tmp_path):
    for path in (f"{tmp_path}/a\0b", f"{tmp_path}/{'x' * 5000}", f"{tmp_path}/\ud800"):
        with pytest.raises(DataError) as caught:
            check_file(path)
        assert str(caught.value).isprintable()
