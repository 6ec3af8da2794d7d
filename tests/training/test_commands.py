"""`scenegpi train` and `scenegpi models`: what they write, what they say, what they refuse."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
import typer
from typer.testing import CliRunner

from models.model_cases import small_model
from scenegpi.commands import train as train_command
from scenegpi.commands.models import models
from scenegpi.commands.train import train
from scenegpi.data import DataError
from scenegpi.models import load_model, save_model
from scenegpi.models.shipped import find_model
from training.training_cases import data_file

CONFIG = """
preset = "baseline"
[model.baseline]
hidden = 16
embedding = 8
rank = 0
[baseline]
epochs = 1
[optim]
batch = 5
"""


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def call(command, *arguments):
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_train_writes_a_model(tmp_path):
    (tmp_path / "c.toml").write_text(CONFIG)
    found = call(
        train,
        "--data",
        data_file(tmp_path),
        "--out",
        tmp_path / "run",
        "--config",
        tmp_path / "c.toml",
        "--validation",
        4,
        "--epochs",
        2,
    )
    assert found.exit_code == 0, found.output
    assert "the model, with its figures" in found.output
    assert load_model(tmp_path / "run" / "model").config.baseline.hidden == 16
    assert len((tmp_path / "run" / "log.csv").read_text().splitlines()) == 3
    again = call(train, "--resume", "--out", tmp_path / "run")
    assert isinstance(again.exception, DataError)
    assert "finished" in str(again.exception)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[optim]\nepoch = 3", "c.toml: optim.epoch: no such setting"),
        ("colour = 1", "c.toml: colour: no such setting"),
        ("[optim]\nbatch = 'many'", "c.toml: optim.batch: expected a whole number"),
        ("preset = 'gpt'", "c.toml: preset: 'gpt' is not one of"),
        ("task = 'sgdet'", "c.toml: task: 'sgdet' is not one of"),
        ("[optim]\nbatch = 0", "c.toml: optim.batch: 0 is not between"),
        ("epochs = 1", "c.toml: epochs: at least 2, one each for baseline and context"),
        ("optim = 3", "c.toml: optim: expected a table"),
        ("[optim", "c.toml: is not TOML"),
        ("", "c.toml: the file is empty"),
    ],
)
def test_a_wrong_file_is_named_with_the_field(text, message, tmp_path):
    (tmp_path / "c.toml").write_text(text)
    found = call(train, "--out", tmp_path / "run", "--config", tmp_path / "c.toml")
    assert isinstance(found.exception, DataError)
    assert message in str(found.exception)
    assert "\n" not in str(found.exception)
    assert not (tmp_path / "run").exists()


def test_options_that_make_no_sense(tmp_path):
    (tmp_path / "c.toml").write_text(CONFIG)
    for arguments, message in (
        (["--preset", "x"], "options: preset"),
        (["--data", tmp_path / "nowhere"], "no such file"),
        ([], "--data is required"),
        (["--epochs", 1], "options: epochs: at least 2, one each for baseline and context"),
        (["--config", tmp_path / "c.toml", "--seed", 2**40], "options: seed"),
        (["--recipe", "cake"], "cake: no such recipe; choose one of vg150-actions, vg150-eyes, vg150-layout"),
        (["--recipe", "vrd-layout", "--config", tmp_path / "c.toml"], "give either --recipe or --config"),
    ):
        found = call(train, "--out", tmp_path / "run", *arguments)
        assert isinstance(found.exception, DataError), found.output
        assert message in str(found.exception)
        assert "\n" not in str(found.exception)
    for arguments in (["--epochs", 3], ["--recipe", "vrd-layout"], ["--use-photos"]):
        found = call(train, "--resume", "--out", tmp_path / "none", *arguments)
        assert "leave out" in str(found.exception)
    assert "--out" in str(call(train, "--recipe", "vrd-layout").exception)


@pytest.mark.parametrize(("model", "said"), [("vrd-photo", True), ("vg150-photo", False), ("vrd-layout", False)])
def test_a_model_that_finds_no_boxes_says_so(tmp_path, monkeypatch, model, said):
    monkeypatch.setattr(train_command, "_train", lambda *_: find_model(model))
    text = call(train, "--out", tmp_path / "run").output
    assert ("finds no boxes itself" in text) == said


def test_recipes_are_listed_with_what_they_make():
    shown = call(train, "--recipes").output.splitlines()
    assert [line.split(": ")[0] for line in shown] == [
        "vg150-actions",
        "vg150-eyes",
        "vg150-layout",
        "vg150-photo-large",
        "vg150-photo",
        "vg150-table",
        "vrd-layout",
        "vrd-photo",
    ]
    assert all(len(line) > 60 for line in shown)


def test_a_limit_and_options_go_above_the_file(tmp_path):
    (tmp_path / "c.toml").write_text(CONFIG)
    words = [
        "--data",
        data_file(tmp_path),
        "--config",
        tmp_path / "c.toml",
        "--limit",
        5,
        "--validation",
        4,
        "--seed",
        3,
    ]
    assert call(train, "--out", tmp_path / "run", *words).exit_code == 0
    settings = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (settings["seed"], settings["data"]["limit"], settings["baseline"]["optim"]["batch"]) == (3, 5, 5)
    assert len(load_model(tmp_path / "run" / "model").trained_on) == 5


def test_models_shows_a_card_and_figures(tmp_path):
    save_model(
        small_model("baseline"),
        tmp_path / "m",
        {"test": {"figures": {"R@50": 0.625}, "images": 9, "protocol": "PredCls"}},
    )
    assert "R@50 62.5" in call(models, tmp_path / "m").output
    assert '"R@50": 0.625' in call(models, tmp_path / "m", "--json").output
    assert isinstance(call(models, tmp_path / "none").exception, DataError)


def test_models_lists_what_ships(tmp_path, monkeypatch):
    save_model(
        small_model("baseline"),
        tmp_path / "tiny",
        {"test": {"figures": {"R@50": 0.625}, "images": 9, "protocol": "PredCls"}},
    )
    monkeypatch.setattr("scenegpi.models.shipped.shipped_models", lambda: {"tiny": tmp_path / "tiny"})
    shown = call(models).output
    assert "tiny" in shown
    assert "62.5" in shown
    assert load_model("tiny").config == small_model("baseline").config
    monkeypatch.setattr("scenegpi.models.shipped.shipped_models", dict)
    assert "no models ship" in call(models).output


def test_the_commands_import_without_torch():
    code = "import sys, scenegpi.commands.train, scenegpi.commands.models; print({'torch', 'numpy', 'lightning'} & set(sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "set()"
    )
