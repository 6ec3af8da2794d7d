"""`scenegpi eval --model`: a model is run and scored in one go, as its written predictions would be."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from models.model_cases import VOCABULARY, random_graphs, small_model
from scenegpi import Vocabulary
from scenegpi.cli import app
from scenegpi.data import DataError, write_jsonl
from scenegpi.metrics.alignment import Alignment
from scenegpi.models import save_model
from scenegpi.models.fingerprint import Fingerprint
from scenegpi.prediction import PredictOptions, Predictor, predictions


@pytest.mark.parametrize("task", ["predcls", "sgcls"])
def test_a_model_is_scored_like_its_predictions(tmp_path, task):
    model = small_model("gpi-neighbour-attention")
    save_model(model, tmp_path / "model")
    graphs = [g.replace(image_id=i) for i, g in enumerate(random_graphs((4, 6, 1)))]
    write_jsonl(tmp_path / "truth.jsonl", graphs)
    predictor = Predictor(model, options=PredictOptions.scoring(task))
    write_jsonl(tmp_path / "found.jsonl", (found for found, _ in predictions(predictor, graphs)))
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


@pytest.mark.parametrize(
    ("option", "value"),
    [("--photos", "."), ("--detector", "finder"), ("--limit", "1"), ("--informative", "0.5"), ("--device", "cuda")],
)
def test_options_that_run_a_model_are_refused_for_a_file(option, value):
    """They had no effect on the figures of a file."""
    words = ["eval", "predictions.jsonl", "--data", "truth.jsonl", "--task", "sgdet", option, value]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, f"{option} needs --model" in done.output) == (2, True), done.output


def test_names_in_another_order_are_the_same_data(tmp_path):
    """The figures of a data set don't depend on how it numbers its classes and predicates."""
    model = small_model("gpi-neighbour-attention")
    save_model(model, tmp_path / "model")
    graphs = [g.replace(image_id=i, label_dist=None) for i, g in enumerate(random_graphs((4, 6, 5)))]
    words = Vocabulary(VOCABULARY.objects[::-1], VOCABULARY.predicates[::-1])
    turned = [Alignment(words)(graph) for graph in graphs]
    figures = []
    for name, some in (("a", graphs), ("b", turned)):
        write_jsonl(tmp_path / f"{name}.jsonl", some)
        where = ["--data", str(tmp_path / f"{name}.jsonl"), "--json", str(tmp_path / f"{name}.json")]
        done = CliRunner().invoke(app, ["eval", "--model", str(tmp_path / "model"), "--task", "predcls", *where])
        assert done.exit_code == 0, done.output
        figures.append(json.loads((tmp_path / f"{name}.json").read_text())["figures"])
    assert figures[0] == pytest.approx(figures[1], nan_ok=True)


def test_a_model_scored_on_its_training_images_says_so(tmp_path):
    graphs = [g.replace(image_id=i) for i, g in enumerate(random_graphs((4, 6, 5)))]
    model = small_model("baseline")
    model.trained_on = Fingerprint.of(graphs[:2])
    save_model(model, tmp_path / "model")
    write_jsonl(tmp_path / "truth.jsonl", graphs)
    common = ["--data", str(tmp_path / "truth.jsonl"), "--task", "predcls", "--bootstrap", "0"]
    done = CliRunner().invoke(app, ["eval", "--model", str(tmp_path / "model"), *common])
    assert done.exit_code == 0, done.output
    assert "SCORED ON ITS OWN TRAINING IMAGES: 2 of 3" in " ".join(done.output.split())
    write_jsonl(tmp_path / "truth.jsonl", graphs[2:], overwrite=True)
    assert (
        "TRAINING IMAGES" not in CliRunner().invoke(app, ["eval", "--model", str(tmp_path / "model"), *common]).output
    )
