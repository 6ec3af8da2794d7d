"""Compared systems by the same way as every model: trained, loaded, evaluated, on a frozen baseline or whole."""

from __future__ import annotations

import json

import pytest
import torch
from typer.testing import CliRunner

from models.model_cases import VOCABULARY, WORDS, predict_graphs, random_graphs
from paper.systems.system_cases import NARROW, SYSTEMS
from scenegpi.cli import app
from scenegpi.models import PRESETS, build_model, load_model
from scenegpi.models.calibration import Calibrations
from scenegpi.models.presets import preset as preset_model
from scenegpi.models.systems import MODULES
from scenegpi.training import train
from scenegpi.training.data_split import open_words
from scenegpi.training.recipes import merged, train_config
from scenegpi.words.label_map import shipped_words
from training.training_cases import data_file


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def settings(folder, preset, **more):
    values = {
        "preset": preset,
        "model": {"baseline": {"hidden": 8, "embedding": 6, "rank": 4}, "network": {"width": NARROW}},
        "data": {"path": str(data_file(folder)), "validation": 4},
        "optim": {"batch": 5, "warmup": 1},
        "epochs": 2,
    }
    return merged(values, more)


@pytest.mark.parametrize("preset", ["imp", "motifs", "graph-rcnn", "transformer", "pixel2graph-boxes"])
def test_a_system_is_trained_and_loaded_like_any_model(preset, tmp_path):
    model = load_model(train(train_config(settings(tmp_path, preset)), tmp_path / "run"))
    assert model.config.system == SYSTEMS[preset].system
    assert not (tmp_path / "run" / "baseline").exists()
    assert len(list(predict_graphs(model, random_graphs((3, 4))))) == 2
    if not model.network.probabilities:
        assert model.calibration == Calibrations()


@pytest.mark.parametrize("preset", [name for name in (*PRESETS, *MODULES) if preset_model(name).words])
def test_every_preset_that_reads_words_finds_some_in_the_package(preset):
    config = train_config({"preset": preset})
    found = build_model(config.model, VOCABULARY, open_words(config, VOCABULARY))
    assert found.config.words == shipped_words().dim


def test_presets_that_read_words():
    assert {name for name in (*PRESETS, *MODULES) if preset_model(name).words} == {"gpi-linguistic", "lu", "pe-net"}


def test_a_system_that_reads_words(tmp_path):
    WORDS.save(tmp_path / "words.safetensors")
    words = {"data": {"words": str(tmp_path / "words.safetensors")}}
    model = load_model(train(train_config(settings(tmp_path, "lu", **words)), tmp_path / "run"))
    assert model.config.words == WORDS.dim
    assert model.network.label_words.abs().sum() > 0
    assert model.calibration == Calibrations()


def test_a_context_is_swapped_on_a_frozen_baseline(tmp_path):
    config = train_config(settings(tmp_path, "imp", model={"on_baseline": True}))
    model = load_model(train(config, tmp_path / "run"))
    first = load_model(tmp_path / "run" / "baseline" / "model")
    assert first.config == config.model.first_stage()
    for (key, a), b in zip(first.baseline.state_dict().items(), model.baseline.state_dict().values(), strict=True):
        assert torch.equal(a, b), key


def test_by_the_command_line(tmp_path):
    path = data_file(tmp_path)
    (tmp_path / "small.toml").write_text(
        'preset = "motifs"\n[model.baseline]\nembedding = 6\n[model.network]\nwidth = 8\n[optim]\nbatch = 8\n'
    )
    run = tmp_path / "run"
    options = ["--data", str(path), "--validation", "4", "--epochs", "1", "--out", str(run)]
    done = CliRunner().invoke(app, ["train", "--config", str(tmp_path / "small.toml"), *options])
    assert done.exit_code == 0, done.output
    record = json.loads((run / "model" / "config.json").read_text())
    assert record["training"]["preset"] == "motifs"
    done = CliRunner().invoke(app, ["eval", "--model", str(run / "model"), "--data", str(path), "--task", "predcls"])
    assert done.exit_code == 0, done.output
    assert "in percent" in done.output
    done = CliRunner().invoke(app, ["report", str(run), "--data", str(path), "--out", str(tmp_path / "report.html")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "motifs" in page
    assert "R@50" in page
