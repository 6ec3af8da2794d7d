"""No RuntimeWarning reaches a user: numbers at the edge of what a type holds are read, left out or refused quietly."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import vg_files
from commands.predict_cases import scene
from scenegpi.cli import app
from scenegpi.data import DataError

HUGE = (1e7, 1e20, 1e39, 1e155, 1e300, 1.7e308, -1.7e308)


def run(*words: object) -> str:
    """The output of a command that ends well, with defects (1) or with a DataError; warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        result = CliRunner().invoke(app, [*map(str, words)])
    assert isinstance(result.exception, DataError | SystemExit | None), repr(result.exception)
    return result.output


def everything(path, out) -> None:
    """Every command that reads a data set."""
    run("data", "validate", path)
    run("data", "stats", path)
    run("data", "convert", path, out / "converted.jsonl", "--force")
    run("predict", "--boxes", path, "--out", out / "predicted", "--formats", "svg", "--force")


@pytest.mark.parametrize("values", [(65504, -65504, 1, 0), (np.inf, 0, 5, 5), (np.nan, 1, 5, 5), (6e-8, 6e-8, 1e-4, 2)])
def test_half_precision_h5(tmp_path, values):
    boxes = vg_files.arrays()["boxes_1024"].astype(np.float16)
    boxes[1] = values
    scores = np.full((5, 1), 6e-8, dtype=np.float16)
    folder = vg_files.write(tmp_path / "vg", {"boxes_1024": boxes, "scores": scores})
    everything(folder, tmp_path)


@pytest.mark.parametrize("number", HUGE)
def test_huge_boxes(tmp_path, number):
    row = json.loads(scene(1).to_json())
    row["objects"][0]["box"] = [0, 0, number, abs(number)]
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    everything(tmp_path / "a.jsonl", tmp_path)
    results = [{"image_id": 1, "category_id": 1, "bbox": [0, -number, number, number], "score": number}]
    results += [{"image_id": 1, "category_id": 2, "bbox": [5, 5, 9, 9], "score": 0.5}] * 3
    (tmp_path / "coco.json").write_text(json.dumps(results))
    run("predict", "--boxes", tmp_path / "coco.json", "--names", "coco", "--out", tmp_path / "o", "--nms", 0.5)
    (tmp_path / "yolo").mkdir()
    (tmp_path / "yolo" / "a.txt").write_text(f"0 0.5 0.5 {number} {number}\n1 {number} 0.5 0.1 0.1 {number}\n")
    (tmp_path / "yolo" / "classes.txt").write_text("man\nhat\n")
    everything(tmp_path / "yolo", tmp_path)


@pytest.mark.parametrize("number", HUGE)
def test_word_vectors_beyond_single_precision(tmp_path, number):
    file = tmp_path / "words.txt"
    file.write_text(f"man {number} 1 0\nhat {number} {number} {number}\ndog 1e-45 1e-320 0\n")
    run("words", "neighbours", file, "man", "hat", "dog")
