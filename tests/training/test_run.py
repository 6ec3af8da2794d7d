"""Training end to end: it learns, by stages, stops in time, and refuses invalid settings."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import torch

from models.model_cases import VOCABULARY, WORDS, random_graphs
from scenegpi.data import open_dataset, sample_path, write_jsonl
from scenegpi.errors import DataError, OptionError
from scenegpi.files import read_object
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Protocol, scene_graph_recall
from scenegpi.models import PRESETS, load_model
from scenegpi.models.fingerprint import Fingerprint
from scenegpi.training import resume, train
from scenegpi.training.module import SceneModule, scored
from scenegpi.training.run import read_run
from scenegpi.words.label_map import shipped_words
from training.training_cases import data_file, small_config


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def rows(run):
    with (run / "log.csv").open() as handle:
        return list(csv.DictReader(handle))


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "gpi-linguistic"])
def test_every_preset_trains_on_the_shipped_scenes(name, tmp_path):
    config = small_config(sample_path(), name, data={"validation": 1}, epochs=2, optim={"batch": 2})
    model = load_model(train(config, tmp_path / "run"))
    assert model.config.context == config.model.context
    epochs = [len(rows(folder)) for folder in (tmp_path / "run" / "baseline", tmp_path / "run") if folder.is_dir()]
    assert epochs == ([2] if name == "baseline" else [1, 1])
    assert json.loads((tmp_path / "run" / "finished.json").read_text())["epochs"] == epochs[-1]
    record = json.loads((tmp_path / "run" / "model" / "config.json").read_text())["training"]
    assert record["preset"] == name
    assert record["baseline"]["optim"]["batch"] == 2
    assert ("context" in record) == (name != "baseline")


def test_presets_that_read_words_take_those_of_the_package(tmp_path):
    config = small_config(data_file(tmp_path), "gpi-linguistic")
    found = load_model(train(config, tmp_path / "a"))
    assert found.config.words == shipped_words().dim
    assert any(name.endswith("x_table") and value.any() for name, value in found.state_dict().items())
    WORDS.save(tmp_path / "words.safetensors")
    config = small_config(
        tmp_path / "data.jsonl", "gpi-linguistic", data={"words": str(tmp_path / "words.safetensors")}
    )
    assert load_model(train(config, tmp_path / "b")).config.context.words == WORDS.dim


def test_words_that_cannot_be_read_stop_a_run_before_its_first_stage(tmp_path):
    config = small_config(data_file(tmp_path), "gpi-linguistic", data={"words": str(tmp_path / "none.txt")})
    with pytest.raises(DataError, match=r"none\.txt"):
        train(config, tmp_path / "run")
    assert not (tmp_path / "run" / "baseline").exists()


def test_it_learns_what_can_be_learned(tmp_path):
    """The predicate is decided by the two labels: recall becomes perfect, and the kept model is the one scored."""
    graphs = []
    for graph in random_graphs((4,) * 40, dist=False):
        pairs = np.argwhere(~np.eye(4, dtype=bool))
        related = pairs[graph.labels[pairs[:, 0]] < graph.labels[pairs[:, 1]]]
        if len(related):
            graphs.append(graph.replace(relations=np.column_stack([related, graph.labels[related].sum(1) % 3])))
    write_jsonl(tmp_path / "d.jsonl", graphs)
    config = small_config(
        tmp_path / "d.jsonl", "gpi-no-attention", data={"validation": 8}, epochs=12, optim={"learning_rate": 0.01}
    )
    model = load_model(train(config, tmp_path / "run"))
    log = [float(row["R@20"]) for row in rows(tmp_path / "run")]
    assert max(log) > 95
    again = scene_graph_recall(scored(model, graphs[:8], "predcls"), graphs[:8], Protocol(ks=(20, 50, 100)))
    best = max(float(row["R@50"]) for row in rows(tmp_path / "run"))
    assert 100 * again.figures["R@50"] == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("epochs", [2, 3])
def test_few_epochs_still_train_a_context_on_a_trained_baseline(epochs, tmp_path):
    """One epoch of a context preset once trained no context at all, and the card said that it had one."""
    config = small_config(data_file(tmp_path), epochs=epochs, optim={"average": 0.0})
    model = load_model(train(config, tmp_path / "run"))
    last = {key: p for key, p in model.named_parameters() if "edge_rho.layers.2" in key}
    assert last
    assert all(p.any() for p in last.values())  # they start at zero
    untrained = small_config(tmp_path / "data.jsonl", "baseline", epochs=1, optim={"learning_rate": 1e-9})
    first = load_model(train(untrained, tmp_path / "untrained")).baseline
    assert not torch.allclose(first.label, model.baseline.label, atol=1e-4)


def test_a_context_stands_on_the_baseline_that_was_validated(tmp_path):
    train(small_config(data_file(tmp_path), epochs=4), tmp_path / "run")
    first, second = (load_model(tmp_path / "run" / stage / "model") for stage in ("baseline", "."))
    assert first.config.context is None
    for (key, a), b in zip(first.baseline.state_dict().items(), second.baseline.state_dict().values(), strict=True):
        assert torch.equal(a, b), key
    graphs = list(open_dataset(tmp_path / "data.jsonl"))
    said = [np.concatenate([g.pair_dist for g in scored(model, graphs, "predcls")]) for model in (first, second)]
    assert np.abs(said[0] - said[1]).max() > 1e-3


@pytest.mark.parametrize("task", ["sgcls", "both"])
def test_sgcls_needs_label_distributions(task, tmp_path):
    with pytest.raises(OptionError, match="distributions"):
        train(small_config(data_file(tmp_path), task=task), tmp_path / "run")


def test_it_stops_when_nothing_gets_better(tmp_path):
    settings = {"epochs": 30, "optim": {"patience": 2, "learning_rate": 1e-9}}
    train(small_config(data_file(tmp_path), baseline=settings, context=settings), tmp_path / "run")
    assert len(rows(tmp_path / "run" / "baseline")) == 3
    assert len(rows(tmp_path / "run")) == 3


@pytest.mark.parametrize("loss", ["paper", "released", "metric"])
def test_every_loss_falls(loss, tmp_path):
    config = small_config(data_file(tmp_path), "baseline", loss={"kind": loss}, epochs=6, optim={"learning_rate": 0.01})
    train(config, tmp_path / "r")
    losses = [float(row["loss"]) for row in rows(tmp_path / "r")]
    assert losses[-1] < losses[0]


def test_a_loss_that_is_not_finite_names_the_image(tmp_path, monkeypatch):
    config = small_config(data_file(tmp_path), "baseline", optim={"batch": 20})
    original = SceneModule.training_step

    def spoilt(self, batch, number):
        batch.label_dist[batch.ptr[3]] = float("nan")
        return original(self, batch, number)

    monkeypatch.setattr(SceneModule, "training_step", spoilt)
    with pytest.raises(DataError, match=r"the loss is nan in epoch 1, step 1: image \d+$") as caught:
        train(config, tmp_path / "run")
    assert "\n" not in str(caught.value)


def test_a_run_is_not_overwritten(tmp_path):
    config = small_config(data_file(tmp_path))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "x").touch()
    with pytest.raises(DataError, match="--resume"):
        train(config, tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["x"]


def test_data_without_relations_is_refused_and_the_folder_stays_free(tmp_path):
    write_jsonl(tmp_path / "d.jsonl", [SceneGraph([[0, 0, 9, 9]], [0], VOCABULARY)])
    for _ in range(2):
        with pytest.raises(DataError, match="only 0 images with a relation"):
            train(small_config(tmp_path / "d.jsonl"), tmp_path / "run")


def test_a_baseline_is_taken_over_and_left_as_it_is(tmp_path):
    data = data_file(tmp_path)
    first = load_model(train(small_config(data, "baseline"), tmp_path / "first"))
    for name, start in (("of a run", "first"), ("of a model", "first/model")):
        config = small_config(data, "gpi-no-attention", start=str(tmp_path / start))
        second = load_model(train(config, tmp_path / name))
        assert not (tmp_path / name / "baseline").exists()
        for (key, a), b in zip(first.baseline.state_dict().items(), second.baseline.state_dict().values(), strict=True):
            assert torch.equal(a, b), key
    other = small_config(data, start=str(tmp_path / "first" / "model"), model={"baseline": {"hidden": 17}})
    with pytest.raises(DataError, match="settings differ"):
        train(other, tmp_path / "fourth")


@pytest.mark.parametrize("part", ["model", "vision"])
def test_a_run_whose_start_has_changed_is_not_resumed(tmp_path, part):
    data = data_file(tmp_path)
    model = train(small_config(data, "baseline"), tmp_path / "first")
    start = tmp_path / "first" if part == "vision" else model
    (tmp_path / "first" / "vision").mkdir()
    (tmp_path / "first" / "vision" / "figures.json").write_text("{}")
    train(small_config(data, "gpi-no-attention", start=str(start)), tmp_path / "run")
    (tmp_path / "run" / "finished.json").unlink()
    assert read_run(tmp_path / "run").start == str(start)
    changed = start / "vision" / "figures.json" if part == "vision" else model / "model.safetensors"
    changed.write_bytes(changed.read_bytes() + b" ")
    with pytest.raises(DataError, match=rf"config\.json: start: {start} is not what it was when this run began"):
        resume(tmp_path / "run")
    config = tmp_path / "run" / "config.json"
    config.write_text(json.dumps({key: value for key, value in read_object(config).items() if key != "start_digest"}))
    assert read_run(tmp_path / "run").start == str(start)  # a run of an earlier version


def test_a_model_knows_its_training_images_and_not_those_that_validated(tmp_path):
    data = data_file(tmp_path)
    graphs = list(open_dataset(data).drop_empty())
    model = load_model(train(small_config(data, "baseline", data={"validation": 6}), tmp_path / "run"))
    assert model.trained_on == Fingerprint.of(graphs[6:])
    (tmp_path / "other").mkdir()
    config = small_config(data_file(tmp_path / "other", seed=5), start=str(tmp_path / "run"), data={"limit": 7})
    more = load_model(train(config, tmp_path / "more")).trained_on
    assert more.count(graphs[6:]) == len(graphs) - 6  # what its baseline was trained on counts too
    assert len(more) == len(graphs) - 6 + 7


def test_a_limit_is_spread_over_the_images(tmp_path):
    data = data_file(tmp_path)
    graphs = list(open_dataset(data).drop_empty())[4:]
    model = load_model(train(small_config(data, "baseline", data={"limit": 5}), tmp_path / "run"))
    seen = [k for k, graph in enumerate(graphs) if model.trained_on.seen(graph)]
    assert len(seen) == 5
    assert np.diff(seen).max() - np.diff(seen).min() <= 1
