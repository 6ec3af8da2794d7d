"""Edges of the program: settings, tables, videos and surroundings that are odd cost one line, not a fault."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest

from scenegpi.data import DataError, open_dataset
from scenegpi.data.video import MAX_PIXELS, frames
from scenegpi.training.recipes import read_toml


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"epochs = {'9' * 5000}", "thousands of digits"),
        (f"epochs = 0x{'f' * 6000}", "epochs: a whole number of more than 64 bits"),
        (f"[a]\nb = [1, {2**64}]", r"a\.b\.1: a whole number of more than 64 bits"),
        (".".join("a" * 100_000) + " = 1", "line 1: a key of more than 100 parts"),
        ("a = {" + ".".join("b" * 50_000) + " = 1}", "line 1: a key of more than 100 parts"),
        ("a = " + "[" * 50_000, "is not TOML"),
    ],
)
def test_toml_that_is_too_much(tmp_path, text, said):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(DataError, match=said) as error:
        read_toml(tmp_path / "a.toml")
    assert "\n" not in str(error.value)


def test_toml_may_have_a_byte_order_mark(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfepochs = 3\n")
    assert read_toml(tmp_path / "a.toml") == {"epochs": 3}


def test_labels_of_a_category_type_are_named(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    boxes = pa.array([[[0.0, 0.0, 1.0, 1.0]]] * 2)
    pq.write_table(
        pa.table({"boxes": boxes, "labels": pa.array(["a", "b"]).dictionary_encode()}), tmp_path / "a.parquet"
    )
    with pytest.raises(DataError, match="labels: expected lists of strings, found dictionary"):
        open_dataset(tmp_path / "a.parquet")


def clip(path, sizes, format="avi", metadata=None):
    """A video of JPEG frames of these sizes; what it says of itself is the first."""
    av = pytest.importorskip("av", reason="the extra [video] is not installed")
    import io

    from PIL import Image

    with av.open(str(path), "w", format=format) as container:
        container.metadata.update(metadata or {})
        stream = container.add_stream("mjpeg", rate=10)
        stream.width, stream.height = sizes[0]
        stream.pix_fmt = "yuvj420p"
        for k, size in enumerate(sizes):
            data = io.BytesIO()
            Image.new("RGB", size).save(data, "JPEG", quality=5)
            packet = av.Packet(data.getvalue())
            packet.pts = packet.dts = k
            packet.stream = stream
            container.mux(packet)
    return path


def test_later_frames_are_not_larger_than_allowed(tmp_path, monkeypatch):
    monkeypatch.setattr("scenegpi.data.video.MAX_PIXELS", 128 * 96)
    assert MAX_PIXELS > 128 * 96
    small = clip(tmp_path / "small.avi", [(64, 48)] * 3)
    assert [frame.photo.shape for frame in frames(small)] == [(48, 64, 3)] * 3
    with pytest.raises(DataError, match=r"grows\.avi: "):
        list(frames(clip(tmp_path / "grows.avi", [(64, 48), (64, 48), (640, 480)])))


@pytest.mark.parametrize("text", ["ffconcat version 1.0\nfile small.avi\n", "#EXTM3U\n#EXTINF:1,\nsmall.avi\n"])
def test_a_playlist_does_not_open_other_files(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    clip(tmp_path / "small.avi", [(64, 48)] * 2)
    (tmp_path / "list.mp4").write_text(text)
    with pytest.raises(DataError, match="cannot be read as a video"):
        list(frames("list.mp4"))


def test_a_damaged_video_is_one_line(tmp_path):
    data = clip(tmp_path / "a.mp4", [(64, 48)] * 2, "mp4").read_bytes()
    at = data.index(b"stsd")
    rng = np.random.default_rng(0)
    for _ in range(40):
        broken = bytearray(data)
        for place in rng.integers(at, min(at + 120, len(data)), 3):
            broken[place] = rng.integers(256)
        (tmp_path / "b.mp4").write_bytes(broken)
        with suppress(DataError):
            list(frames(tmp_path / "b.mp4"))


@pytest.mark.parametrize("form", ["mp4", "avi"])
def test_metadata_of_a_video_need_not_be_utf_8(tmp_path, form):
    data = clip(tmp_path / "a", [(64, 48)] * 2, form, {"title": "#######"}).read_bytes()
    assert data.count(b"#######") == 1
    (tmp_path / f"b.{form}").write_bytes(data.replace(b"#######", b"\xff\xfe\x80####"))
    assert len(list(frames(tmp_path / f"b.{form}"))) == 2


MAIN = "from scenegpi.cli import main; main()"


def scenegpi(*words, **how):
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words], capture_output=True, text=True, timeout=600, check=False, **how
    )


def test_a_closed_output_is_no_fault(tmp_path):
    command = f"{sys.executable} -c '{MAIN}' data convert --help >&- 2>{tmp_path}/said"
    assert subprocess.run(["sh", "-c", command], timeout=600, check=False).returncode == 0
    assert (tmp_path / "said").read_text() == ""


def test_a_folder_that_leads_to_itself_or_is_gone_is_one_line(tmp_path):
    from scenegpi.data import sample_path

    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    done = scenegpi("data", "convert", str(sample_path()), str(tmp_path / "loop" / "a.jsonl"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"cd {gone} && rmdir {gone} && {sys.executable} -c '{MAIN}' data convert {sample_path()} a.jsonl"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert os.path.basename(gone) not in os.listdir(tmp_path)
