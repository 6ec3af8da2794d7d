"""From photos to a model: label predictor, baseline, context in one run; broken photos, and images without any."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from scenegpi.data import open_dataset
from scenegpi.errors import DataError
from scenegpi.models import load_model
from scenegpi.prediction import Predictor
from scenegpi.training import label_predictor, resume, train
from scenegpi.training import run as running
from scenegpi.training.recipes import train_config
from training.coloured import write_scenes


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = write_scenes(tmp_path_factory.mktemp("photos"), images=36, photos=30)
    (folder / "images" / "29.png").write_bytes(b"no photo")
    return folder


def settings(data, **changes):
    values = {
        "data": {"path": str(data / "data.jsonl"), "photos": str(data / "images"), "validation": 4},
        "model": {
            "vision": {
                "features": {"photo_size": 64},
                "head": {"hidden": 16},
            },
            "baseline": {"hidden": 16, "embedding": 8, "rank": 4},
            "network": {"hidden": 12, "phi": 10, "alpha": 9},
        },
        "fit": {"epochs": 10, "folds": 2, "rate": 0.01, "batch": 16},
        "baseline": {"epochs": 1},
        "context": {"epochs": 1},
        "optim": {"batch": 6, "warmup": 1},
    }
    config = train_config(values)
    return replace(config, **changes)


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "both"
    train(settings(data), folder)
    return folder


def test_one_run_does_all_stages_and_the_model_reads_photos(run, data):
    model = load_model(run / "model")
    assert model.vision is not None
    dataset = open_dataset(data / "data.jsonl", images=data / "images")[:29]
    predictor = Predictor(model)
    found = [predictor(dataset.image_path(i), graph.boxes) for i, graph in enumerate(dataset)]
    right = sum(int((a.labels == b.labels).sum()) for a, b in zip(found, dataset, strict=True))
    assert right > 0.6 * sum(map(len, dataset))
    figures = json.loads((run / "vision" / "figures.json").read_text())
    assert figures["photos"] == 25  # 30, less the broken one, less four that validate
    assert "label predictor" in (run / "model" / "README.md").read_text()
    assert load_model(run / "baseline" / "model").vision is not None
    assert len(model.trained_on) == 32  # layouts without a photo train the context too


@pytest.mark.parametrize("moment", ["with_label_dist", "train_stage"])
def test_interrupted_at_any_stage_it_goes_on_to_the_same_model(moment, run, data, tmp_path, monkeypatch):
    plain = getattr(running, moment)

    def stop(*words, **named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(running, moment, stop)
        with pytest.raises(KeyboardInterrupt):
            train(settings(data), tmp_path / "run")
    assert (tmp_path / "run" / "config.json").is_file()
    assert label_predictor.stage_figures(tmp_path / "run") is not None
    assert getattr(running, moment) is plain
    resume(tmp_path / "run")
    one, two = load_model(run / "model").state_dict(), load_model(tmp_path / "run" / "model").state_dict()
    assert one.keys() == two.keys()
    assert all(np.allclose(one[name], two[name], atol=1e-6) for name in one)


def test_a_start_lends_its_label_predictor_and_its_baseline(run, data, tmp_path):
    train(settings(data, start=str(run)), tmp_path / "run")
    assert not (tmp_path / "run" / "vision").exists()
    assert not (tmp_path / "run" / "baseline").exists()
    one, two = load_model(run / "model").state_dict(), load_model(tmp_path / "run" / "model").state_dict()
    assert all(np.allclose(one[name], two[name], atol=1e-6) for name in one)


def test_no_photos_at_all(data, tmp_path):
    config = settings(data)
    empty = replace(config, data=replace(config.data, photos=str(tmp_path)))
    with pytest.raises(DataError, match="photos of 0 training images"):
        train(empty, tmp_path / "run")
