"""`predict video.mp4`: a line per frame, numbers that stay, a clip and a sheet; files that are no video."""

from __future__ import annotations

import io
import json
import os
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from commands import predict_cases
from models.model_cases import VOCABULARY, random_graphs, small_model
from scenegpi.bulk.run_folder import PredictionLog, Row
from scenegpi.bulk.video_run import run_video
from scenegpi.bulk.workers import Setup
from scenegpi.commands.predict_report import print_video
from scenegpi.data.video import frames, video_of, video_rate
from scenegpi.errors import DataError
from scenegpi.models import save_model
from scenegpi.prediction import PredictOptions
from scenegpi.vision.detect import Detections
from scenegpi.viz.clip import MOST, FrameSheet, film

av = pytest.importorskip("av", reason="the extra [video] is not installed")
SIZE, COUNT = (96, 160), 20


def scene(t: int) -> np.ndarray:
    """A red and a green square that move to the right."""
    pixels = np.full((*SIZE, 3), 40, dtype=np.uint8)
    pixels[10:40, 5 + 3 * t : 35 + 3 * t] = (220, 30, 30)
    pixels[50:90, 20 + 2 * t : 60 + 2 * t] = (30, 200, 30)
    return pixels


class SquareFinder:
    """Finds the two squares by their colours, the green one first in every other frame."""

    names = VOCABULARY.objects

    def __init__(self) -> None:
        self.calls = 0

    def detect(self, photo):
        self.calls += 1
        colours = [(0, 0), (1, 1)] if self.calls % 2 else [(1, 1), (0, 0)]
        boxes = []
        for channel, _ in colours:
            others = photo.astype(int)[..., [c for c in range(3) if c != channel]].max(-1)
            rows, columns = np.nonzero(photo[..., channel].astype(int) - others > 60)
            boxes.append([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
        labels = np.array([label for _, label in colours])
        return Detections(np.array(boxes, dtype=float), labels, np.array([0.9, 0.8]), self.names, photo.shape[1::-1])


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    path = tmp_path_factory.mktemp("video") / "squares.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.height, stream.width, stream.pix_fmt = *SIZE, "yuv420p"
        for t in range(COUNT):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(scene(t), format="rgb24")))
        container.mux(stream.encode())
    return path


@pytest.fixture
def setup(tmp_path):
    save_model(small_model("baseline"), tmp_path / "model")
    options = PredictOptions(min_relation=0.0)
    return Setup(str(tmp_path / "model"), SquareFinder(), options, tmp_path / "out", ("png", "mp4"))


def lines(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]


SETTINGS = {"scenegpi": "1"}


def predict_video(path, every, limit, setup, force=False):
    with PredictionLog(setup.folder, SETTINGS, force, [path]) as log:
        return run_video(path, every, limit, setup, log, film, lambda: None)


def test_a_line_per_frame_and_numbers_that_stay(video, setup):
    summary = predict_video(video, 2, 0, setup)
    found = lines(setup.folder)
    assert (summary.frames, summary.things, summary.skipped) == (COUNT // 2, 2, [])
    assert summary.written == [setup.folder / "squares.frames.png", setup.folder / "squares.clip.mp4"]
    assert summary.relations[0].frames == COUNT // 2
    assert {summary.relations[0].subject, summary.relations[0].object} == {"dog #0", "man #1"}
    assert [row["frame"] for row in found] == list(range(0, COUNT, 2))
    np.testing.assert_allclose([row["seconds"] for row in found], np.arange(0, COUNT, 2) / 10, atol=1e-3)
    assert [[one["label"] for one in row["objects"]] for row in found[:2]] == [["dog", "man"], ["man", "dog"]]
    for row in found:
        assert {one["label"]: one["thing"] for one in row["objects"]} == {"dog": 0, "man": 1}
    with av.open(str(setup.folder / "squares.clip.mp4")) as container:
        assert sum(1 for _ in container.decode(video=0)) == COUNT // 2
        assert float(container.streams.video[0].average_rate) == pytest.approx(5)
    assert Image.open(setup.folder / "squares.frames.png").size[0] > 3 * 320


def test_relations_and_files_of_a_video_are_printed(video, setup):
    summary = predict_video(video, 1, 2, replace(setup, formats=("png",)))
    screen = io.StringIO()
    print_video(Console(width=200, file=screen), summary, setup.folder / "predictions.jsonl")
    text = screen.getvalue()
    seen = summary.relations[0]
    assert re.search(rf"{seen.score:.2f} +{seen.subject} +{seen.predicate} +{seen.object} +2 frames", text)
    assert "predictions.jsonl: 2 frames, 2 things" in text
    assert "squares.frames.png" in text


def test_files_of_another_in_the_place_of_sheet_and_clip_stay(video, setup):
    setup.folder.mkdir()
    for name, format in (("squares.frames.png", "png"), ("squares.clip.mp4", "mp4")):
        (setup.folder / name).write_text("mine")
        with pytest.raises(DataError, match=f"{name}: exists and was not written by this run"):
            predict_video(video, 10, 0, replace(setup, formats=(format,)))
        assert (setup.folder / name).read_text() == "mine"
    (setup.folder / name).unlink()
    os.link(video, setup.folder / name)
    with pytest.raises(DataError, match=f"{name}: is an input"):
        predict_video(video, 10, 0, replace(setup, formats=("mp4",)), force=True)
    assert video.stat().st_nlink == 2


def test_a_folder_of_frames_is_a_video(tmp_path, setup):
    folder = tmp_path / "frames"
    folder.mkdir()
    for t in range(5):
        Image.fromarray(scene(t)).save(folder / f"{t:03d}.png")
    predict_video(folder, 1, 3, replace(setup, formats=()))
    assert [row["frame"] for row in lines(setup.folder)] == [0, 1, 2]
    assert sorted(file.name for file in setup.folder.iterdir()) == ["manifest.jsonl", "predictions.jsonl", "run.json"]


def test_its_own_sheet_is_no_frame(tmp_path, setup):
    folder = tmp_path / "frames"
    folder.mkdir()
    for t in range(3):
        Image.fromarray(scene(t)).save(folder / f"{t:03d}.png")
    setup = replace(setup, folder=folder, formats=("png",))
    for _ in range(2):
        assert predict_video(folder, 1, 0, setup).frames == 3
    assert (folder / "frames.frames.png").exists()


def test_a_video_leaves_other_lines_alone_and_replaces_its_own(video, setup):
    with PredictionLog(setup.folder, SETTINGS) as log:
        log.append([Row("a.jpg", "squares", random_graphs((3,))[0], "1")])
        log.write_whole(["rdf"])
    setup = replace(setup, formats=("png",))
    for every in (2, 5):
        predict_video(video, every, 0, setup)
        found = lines(setup.folder)
        assert found[0]["source"] == "a.jpg"
        assert [row["frame"] for row in found[1:]] == list(range(0, COUNT, every))
    assert {row["name"] for row in found} == {"squares", "squares (2)"}
    assert (setup.folder / "squares (2).frames.png").exists()
    assert (setup.folder / "predictions.nt").read_text().count("Image>") == len(found)


def test_a_sheet_that_is_there_is_never_out_of_date(video, setup):
    summary = predict_video(video, 1, 0, replace(setup, formats=("png",)))
    sheet, before = summary.written[0], summary.written[0].read_bytes()
    assert predict_video(video, 5, 0, replace(setup, formats=())).written == [sheet]
    assert sheet.read_bytes() != before


class Undecided(SquareFinder):
    """Calls the red square a man in one frame of three."""

    def detect(self, photo):
        found = super().detect(photo)
        if self.calls % 3 == 0:
            found.labels[:] = 1
        return found


def test_a_thing_has_one_label_by_vote(video, setup):
    setup = replace(setup, finder=Undecided(), formats=())
    predict_video(video, 1, 0, setup)
    found = lines(setup.folder)
    assert len(found) == COUNT
    for row in found:
        assert {one["thing"]: one["label"] for one in row["objects"]} == {0: "dog", 1: "man"}
        for relation in row["relations"]:
            assert relation["factors"][0] == row["objects"][relation["subject"]]["score"]


def test_boxes_for_a_video_are_refused(tmp_path, video):
    """They were ignored, and other boxes found."""
    boxes = predict_cases.lines(tmp_path / "boxes.jsonl", predict_cases.scene(1))
    assert "--boxes: not for a video" in predict_cases.refused(video, "--boxes", boxes, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_several_processes_for_a_video_are_refused(tmp_path, video):
    for words, option in ((["--jobs", 2], "--jobs"), (["--engine", "ray"], "--engine ray")):
        message = predict_cases.refused(video, *words, "--out", tmp_path / "out")
        assert message == f"{option}: not for a video, whose frames are followed in one process"
    assert not (tmp_path / "out").exists()


def test_what_is_no_video(tmp_path, video):
    (tmp_path / "text.mp4").write_text("no video at all")
    (tmp_path / "empty").mkdir()
    for name in ("text.mp4", "absent.mp4", "empty"):
        with pytest.raises(DataError, match=name):
            list(frames(tmp_path / name))
    playlist = tmp_path / "list.mp4"
    playlist.write_text(f"#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:2,\n{video}\n#EXT-X-ENDLIST\n")
    with pytest.raises(DataError, match=r"list\.mp4"):
        list(frames(playlist))
    assert video_rate(video) == pytest.approx(10)
    assert video_of([str(video)], None) == video
    assert video_of(["photo.jpg"], None) is None
    with pytest.raises(DataError, match="one video"):
        video_of([str(video), "photo.jpg"], None)
    with pytest.raises(DataError, match="every"):
        video_of(["photo.jpg"], 2)


@pytest.mark.parametrize("count", [0, 1, 5, 12, 13, 100, 1000])
def test_a_sheet_keeps_few_pictures_of_any_number(count, tmp_path):
    sheet = FrameSheet()
    for k in range(count):
        sheet.add(np.full((4, 8, 3), k % 256, dtype=np.uint8))
    assert len(sheet.kept) <= 2 * MOST
    sheet.save(tmp_path / "sheet.png")
    assert (tmp_path / "sheet.png").exists() == (count > 0)
