"""Rendered scenes on disk: what is written is read back, whatever the number of processes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from scenegpi.data import DataError, open_dataset, validate
from scenegpi.paper.rendered import render_folder, render_scene, rendered_vocabulary


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("rendered") / "scenes"
    return target, render_folder(target, 24, seed=5)


def test_written_is_read(folder):
    target, graphs = folder
    data = open_dataset(target)
    assert data.format == "visual-genome"
    assert list(data) == graphs
    assert data.vocabulary == rendered_vocabulary()
    assert data.vocabulary.name == "rendered"
    assert graphs[7] == render_scene(5, 7)[1]
    report = validate(target)
    assert (report.errors, report.warnings) == (0, 0)


def test_every_picture_is_found(folder):
    data = open_dataset(folder[0])
    for i, graph in enumerate(data):
        with Image.open(data.image_path(i)) as photo:
            assert photo.format == "JPEG"
            assert photo.size == (graph.width, graph.height)


def test_two_processes_write_the_same(folder, tmp_path):
    render_folder(tmp_path / "two", 24, seed=5, jobs=2)
    names = sorted(path.relative_to(folder[0]) for path in folder[0].rglob("*") if path.is_file())
    assert names == sorted(
        path.relative_to(tmp_path / "two") for path in (tmp_path / "two").rglob("*") if path.is_file()
    )
    for name in names:
        one, two = folder[0] / name, tmp_path / "two" / name
        if name.suffix == ".jpg":  # the last bit of a sum may differ, and with it here and there a pixel
            a, b = (np.asarray(Image.open(path), dtype=float) for path in (one, two))
            assert a.shape == b.shape, name
            assert np.abs(a - b).mean() < 0.05, name
        elif name.suffix != ".h5":
            assert one.read_bytes() == two.read_bytes(), name
    assert list(open_dataset(tmp_path / "two")) == folder[1]


def test_a_longer_run_begins_with_the_shorter_one(folder, tmp_path):
    assert render_folder(tmp_path / "short", 3, seed=5) == folder[1][:3]
    codes = open_dataset(folder[0]).split_codes()
    assert open_dataset(tmp_path / "short").split_codes().tolist() == codes[:3].tolist()


def test_splits(tmp_path):
    render_folder(tmp_path / "a", 3, validation=0.0, test=1.0)
    assert set(open_dataset(tmp_path / "a").split_codes().tolist()) == {2}
    with pytest.raises(DataError, match=r"validation 0\.7 and test 0\.6"):
        render_folder(tmp_path / "b", 3, validation=0.7, test=0.6)
    assert not (tmp_path / "b").exists()


def test_a_folder_with_things_in_it_is_left_alone(folder, tmp_path):
    with pytest.raises(DataError, match="not empty"):
        render_folder(folder[0], 2)
    assert len(open_dataset(folder[0])) == 24
    with pytest.raises(DataError, match="images: expected 1 to"):
        render_folder(tmp_path / "none", 0)


def test_nothing_is_left_of_a_run_that_fails(tmp_path):
    def broken(scenes):
        yield next(iter(scenes))
        raise DataError("x", "stopped")

    with pytest.raises(DataError, match="stopped"):
        render_folder(tmp_path / "x", 3, watch=broken)
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_it_wrote(tmp_path):
    code = "from scenegpi.cli import main; main()"
    words = ["data", "render", "--scenes", "3", "--seed", "5", "--jobs", "1", "--out", str(tmp_path / "s")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path / 's'}: wrote 3 scenes" in done.stdout
    assert len(list((tmp_path / "s" / "images").iterdir())) == 3
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "not empty" in done.stderr
