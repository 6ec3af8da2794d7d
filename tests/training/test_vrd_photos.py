"""A small run of the benchmark on photos: folds, rows, the table, what is shipped."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from PIL import Image

import vrd_photos
import vrd_tried
from scenegpi import load_model, predict
from vision.vision_cases import needs_package
from vrd_folds import deal

LABELS, PREDICATES = ["red", "green", "blue"], ["on", "next to"]
COLOURS = [(220, 30, 30), (30, 200, 40), (30, 40, 220)]


@pytest.fixture(scope="module")
def vrd(tmp_path_factory):
    """A folder in VRD's layout: twelve images without pixels to train on, ten photos of coloured boxes, half as large."""
    folder, rng = tmp_path_factory.mktemp("vrd"), np.random.default_rng(0)
    (folder / "images").mkdir()
    sizes = {}
    for split, count in (("train", 12), ("test", 10)):
        annotations = {}
        for k in range(count):
            name = f"{split}{k}.jpg"
            sizes[name] = {"width": 320, "height": 240}
            photo, things = np.full((120, 160, 3), 128, dtype=np.uint8), []
            for _ in range(4):
                label, x, y = int(rng.integers(3)), int(rng.integers(0, 100)), int(rng.integers(0, 70))
                w, h = int(rng.integers(24, 60)), int(rng.integers(24, 50))
                photo[y : y + h, x : x + w] = COLOURS[label]
                things.append({"category": label, "bbox": [2 * y, 2 * (y + h), 2 * x, 2 * (x + w)]})
            pairs = [(0, 1), (2, 3), (1, 2)]
            annotations[name] = [
                {"subject": things[i], "object": things[j], "predicate": int(rng.integers(2))} for i, j in pairs
            ]
            if split == "test":
                Image.fromarray(photo).save(folder / "images" / name)
        (folder / f"annotations_{split}.json").write_text(json.dumps(annotations))
    for name, value in (("objects", LABELS), ("predicates", PREDICATES), ("image_sizes", sizes)):
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def run(monkeypatch, *words, script=vrd_photos):
    monkeypatch.setattr(sys, "argv", [script.__name__, *map(str, words)])
    script.main()


@needs_package
def test_folds_to_a_table_and_a_model_that_reads_photos(vrd, tmp_path, monkeypatch, capsys):
    rows = ["--rows", "baseline", "gpi-feature-attention"]
    common = ["--data", vrd, "--runs", tmp_path / "runs", "--epochs", 1, *rows]
    run(monkeypatch, *common, "--folds", 2, "--json", tmp_path / "first.json")
    first = capsys.readouterr().out
    assert "training" in first
    found = json.loads((tmp_path / "first.json").read_text())
    assert (found["photos"], found["boxes"]) == (10, 40)
    assert found["photos"] == sum(each["photos"] for each in found["folds"].values())
    assert set(found["labels"]) == {"label predictor alone", *rows[1:]}
    assert found["sgcls"]["gpi-feature-attention"]["gain"]["R@50"][0] == pytest.approx(
        found["sgcls"]["gpi-feature-attention"]["figures"]["R@50"] - found["sgcls"]["baseline"]["figures"]["R@50"],
        abs=2e-3,
    )
    run(monkeypatch, *common, "--folds", 2, "--json", tmp_path / "again.json")
    assert "training" not in capsys.readouterr().out
    assert json.loads((tmp_path / "again.json").read_text()) == found
    run(monkeypatch, *common, "--ship", tmp_path / "shipped")
    model = load_model(tmp_path / "shipped")
    graph = predict(model, [[0, 0, 60, 60], [50, 50, 120, 110]], image=vrd / "images" / "test0.jpg")
    assert graph.label_dist.shape == (2, 3)
    assert "research" in (tmp_path / "shipped" / "README.md").read_text()


@needs_package
def test_what_was_tried_stands_on_the_baseline_that_it_names(vrd, tmp_path, monkeypatch, capsys):
    name = "2 steps, pair looks"
    common = [
        "--data",
        vrd,
        "--runs",
        tmp_path / "runs",
        "--epochs",
        1,
        "--quarters",
        0,
        "--json",
        tmp_path / "tried.json",
    ]
    run(monkeypatch, *common, "--labels", "crop, last map", "--contexts", name, script=vrd_tried)
    shown = capsys.readouterr().out
    found = json.loads((tmp_path / "tried.json").read_text())
    assert list(found["contexts"]["sgcls"]) == ["baseline", "baseline, pair looks", name]
    assert list(found["label predictors"]) == ["crop, last map"]
    assert all(f"| {row} |" in shown for row in [*found["contexts"]["sgcls"], *found["label predictors"]])
    config = json.loads((tmp_path / "runs" / "quarter0" / "2-steps-pair-looks" / "config.json").read_text())
    assert config["start"].endswith("baseline-pair-looks/model")
    assert config["model"]["baseline"]["looks"] > 0


def test_every_photo_is_in_one_fold():
    assert sorted(np.bincount(deal(802, 5)).tolist()) == [160, 160, 160, 161, 161]
