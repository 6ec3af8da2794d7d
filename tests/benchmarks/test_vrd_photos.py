"""A small run of the benchmark on photos: folds, rows, the table, what is shipped."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from PIL import Image

import vrd_photos
from calibration import fold_parts
from vision.vision_cases import needs_package

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


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["vrd_photos", *map(str, words)])
    vrd_photos.main()


@needs_package
def test_folds_to_a_table_and_no_photo_is_tested_by_a_model_that_knows_it(vrd, tmp_path, monkeypatch, capsys):
    rows = ["--rows", "baseline", vrd_photos.SHIPPED]
    common = ["--data", vrd, "--runs", tmp_path / "runs", "--epochs", 1, "--folds", 2, *rows]
    run(monkeypatch, *common, "--json", tmp_path / "first.json")
    assert "training" in capsys.readouterr().out
    found = json.loads((tmp_path / "first.json").read_text())
    assert (found["photos"], found["boxes"]) == (10, 40)
    assert found["photos"] == sum(each["photos"] for each in found["folds"].values())
    assert set(found["labels"]) == {"label predictor alone", *rows[1:]}
    assert found["sgcls"][vrd_photos.SHIPPED]["gain"]["R@50"][0] == pytest.approx(
        found["sgcls"][vrd_photos.SHIPPED]["figures"]["R@50"] - found["sgcls"]["baseline"]["figures"]["R@50"], abs=2e-3
    )
    run(monkeypatch, *common, "--json", tmp_path / "again.json")
    assert "training" not in capsys.readouterr().out
    assert json.loads((tmp_path / "again.json").read_text()) == found
    parts = fold_parts(tmp_path / "runs")
    assert sum(len(part.test) for part in parts) == 10
    for part in parts:
        assert part.model.config.context.steps == 2
        assert part.model.trained_on.count(part.test) == 0
        assert len(part.model.trained_on) == 12 + 10 - len(part.test)
