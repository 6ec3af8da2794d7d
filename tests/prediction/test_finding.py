"""Detectors by name: what is missing or wrong is said once and in one line, and a file counts by its content."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from onnx_export.test_detector import cases, file_of
from scenegpi.bulk.digests import weights_digest
from scenegpi.cli import app
from scenegpi.errors import DataError
from scenegpi.prediction import Predictor, finding
from scenegpi.prediction.finding import FinderSpec, check_finder, default_finder, load_finder
from scenegpi.prediction.model import open_model
from scenegpi.vision.combine import Combined
from scenegpi.vision.detect import Detections
from scenegpi.vision.find import Finder


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "photo.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (100, 200, 3), dtype=np.uint8)).save(path)
    return path


@pytest.fixture
def detector(tmp_path):
    path = tmp_path / "detector.onnx"
    path.write_bytes(file_of(*cases()["detr"]))
    return path


def test_a_file_is_a_detector_in_python_and_in_the_shell(photo, detector, tmp_path):
    names = ("cat", "dog", "hat")
    graph = Predictor("vg150-layout", FinderSpec(str(detector), names))(photo)
    assert graph.names == ["dog"]
    assert np.allclose(graph.boxes, [[50, 20, 150, 80]])
    (tmp_path / "names.txt").write_text("\n".join(names))
    done = CliRunner().invoke(
        app,
        f"predict {photo} --detector {detector} --names {tmp_path}/names.txt --model vg150-layout --formats none --out {tmp_path}/out".split(),
    )
    assert done.exit_code == 0, done.output
    (line,) = (tmp_path / "out" / "predictions.jsonl").read_text().splitlines()
    assert [each["label"] for each in json.loads(line)["objects"]] == ["dog"]


def test_a_file_that_is_no_detector_is_said_once_not_for_every_photo(photo, tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    predictor = Predictor("vg150-layout", str(tmp_path / "bad.onnx"))
    with pytest.raises(DataError, match=r"^.*bad\.onnx: onnxruntime cannot load it"):
        list(predictor.stream([photo, photo]))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("yolov5", "no such detector; known: finder, yolov4-tiny.*FILE.onnx, hf:FOLDER, finder.NAME"),
        ("finder+best", "no such detector"),
        ("nowhere.onnx", "nowhere.onnx: cannot be read"),
        ("finder+nowhere.onnx", "nowhere.onnx: cannot be read"),
        ("hf:nowhere", "hf:nowhere: neither a folder"),
    ],
)
def test_what_is_not_there_is_said_before_anything_is_loaded(name, message):
    with pytest.raises(DataError, match=message):
        check_finder(name)


def test_names_are_for_files_that_have_none(tmp_path):
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    told = FinderSpec.of("a.onnx", str(tmp_path / "names.txt"))
    assert told == FinderSpec("a.onnx", ("cat", "dog"))
    assert len(FinderSpec.of("a.onnx", "coco").names) == 80
    with pytest.raises(DataError, match="--names: yolov4-tiny has its own names"):
        check_finder(FinderSpec("yolov4-tiny", ("cat",)))
    (tmp_path / "far.json").write_text('{"999999999": "cat"}')  # a list up to that number would fill the memory
    with pytest.raises(DataError, match=r"far\.json: names: more than"):
        FinderSpec.of("a.onnx", str(tmp_path / "far.json"))


def test_another_file_is_another_run(detector):
    """A run is continued only with the same detector: by what is in the file, not by its name."""
    before = weights_digest("vg150-layout", FinderSpec(str(detector)).other)
    assert before == weights_digest("vg150-layout", FinderSpec(str(detector)).other)
    detector.write_bytes(detector.read_bytes() + b"\x00")
    assert weights_digest("vg150-layout", FinderSpec(str(detector)).other) != before
    assert FinderSpec("yolov4-tiny").settings() == "yolov4-tiny"
    assert FinderSpec("hf:a/b", find=("dog",)).settings() != FinderSpec("hf:a/b").settings()


@pytest.mark.parametrize("installed", [True, False])
def test_second_detector_joins_by_default_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    class Other:
        names = ("person",)

        def detect(self, photo: np.ndarray) -> Detections:
            raise NotImplementedError

    monkeypatch.setattr(finding, "is_installed", lambda name: installed)
    monkeypatch.setattr(finding, "load_detector", lambda name: Other())
    model = open_model("vg150-photo", None, "cpu")
    assert default_finder() == ("finder+yolov4-tiny" if installed else "finder")
    assert isinstance(load_finder(None, model), Combined if installed else Finder)
    assert isinstance(load_finder("finder", model), Finder)  # asked for by name it stays alone
    assert default_finder("onnx") == "finder"
