"""`scenegpi eval --model`: a model is run and scored in one go, as its written predictions would be."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from models.model_cases import random_graphs, small_model
from scenegpi.cli import app
from scenegpi.data import DataError, write_jsonl
from scenegpi.models import predict_graphs, save_model


@pytest.mark.parametrize("task", ["predcls", "sgcls"])
def test_a_model_is_scored_like_its_predictions(tmp_path, task):
    model = small_model("gpi-neighbour-attention")
    save_model(model, tmp_path / "model")
    graphs = [g.replace(image_id=i) for i, g in enumerate(random_graphs((4, 6, 1)))]
    write_jsonl(tmp_path / "truth.jsonl", graphs)
    write_jsonl(tmp_path / "found.jsonl", predict_graphs(model, graphs, task))
    common = ["--data", str(tmp_path / "truth.jsonl"), "--task", task, "--bootstrap", "0", "--json"]
    runs = {"a": ["--model", str(tmp_path / "model")], "b": [str(tmp_path / "found.jsonl")]}
    for name, words in runs.items():
        done = CliRunner().invoke(app, ["eval", *words, *common, str(tmp_path / name)])
        assert done.exit_code == 0, done.output
    a, b = (json.loads((tmp_path / name).read_text()) for name in "ab")
    assert a["figures"] == b["figures"]
    assert a["model"] == str(tmp_path / "model")


def test_what_does_not_go_together(tmp_path):
    save_model(small_model("baseline"), tmp_path / "model")
    for words, error in (
        (["--task", "predcls"], SystemExit),
        (["x.jsonl", "--model", "m", "--task", "predcls"], SystemExit),
        (["--model", str(tmp_path / "model"), "--task", "predcls"], DataError),
        (["--model", str(tmp_path / "model"), "--task", "sgdet", "--data", "x"], DataError),
        (["--model", "no-such-model", "--task", "predcls", "--data", "x"], DataError),
    ):
        assert isinstance(CliRunner().invoke(app, ["eval", *words]).exception, error), words
