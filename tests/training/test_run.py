"""Training end to end: it learns, stops, resumes after a kill to the same weights, and refuses what makes no sense."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from scenegpi.data import DataError, sample_path
from scenegpi.errors import OptionError
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Protocol, scene_graph_recall
from scenegpi.models import PRESETS, load_model, predict_dataset
from scenegpi.training.folder import tidy
from scenegpi.training.module import SceneModule
from scenegpi.training.run import read_run, train
from training.training_cases import data_file, small_config

TESTS = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]), "OMP_NUM_THREADS": "1"}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def rows(run):
    with (run / "log.csv").open() as handle:
        return list(csv.DictReader(handle))


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "gpi-linguistic"])
def test_every_preset_trains_on_the_shipped_scenes(name, tmp_path):
    config = small_config(sample_path(), name, data={"validation": 1}, optim={"epochs": 2, "batch": 2})
    model = load_model(train(config, tmp_path / "run"))
    assert model.config.context == config.model.context
    assert len(rows(tmp_path / "run")) == 2
    assert json.loads((tmp_path / "run" / "finished.json").read_text())["epochs"] == 2
    record = json.loads((tmp_path / "run" / "model" / "config.json").read_text())["training"]
    assert record["preset"] == name
    assert record["optim"]["batch"] == 2


def test_the_linguistic_preset_wants_words(tmp_path):
    from models.model_cases import WORDS

    config = small_config(data_file(tmp_path), "gpi-linguistic", optim={"epochs": 1})
    with pytest.raises(OptionError, match=r"data\.words"):
        train(config, tmp_path / "a")
    WORDS.save(tmp_path / "words.safetensors")
    config = small_config(
        tmp_path / "data.jsonl",
        "gpi-linguistic",
        data={"words": str(tmp_path / "words.safetensors")},
        optim={"epochs": 1},
    )
    assert load_model(train(config, tmp_path / "b")).config.context.words == WORDS.dim


def test_it_learns_what_can_be_learned(tmp_path):
    """The predicate is decided by the two labels: recall becomes perfect, and the kept model is the one scored."""
    from models.model_cases import random_graphs
    from scenegpi.data import write_jsonl

    graphs = []
    for graph in random_graphs((4,) * 40, dist=False):
        pairs = np.argwhere(~np.eye(4, dtype=bool))
        related = pairs[graph.labels[pairs[:, 0]] < graph.labels[pairs[:, 1]]]
        if len(related):
            graphs.append(graph.replace(relations=np.column_stack([related, graph.labels[related].sum(1) % 3])))
    write_jsonl(tmp_path / "d.jsonl", graphs)
    config = small_config(
        tmp_path / "d.jsonl", "gpi-no-attention", data={"validation": 8}, optim={"epochs": 12, "learning_rate": 0.01}
    )
    model = load_model(train(config, tmp_path / "run"))
    log = [float(row["R@20"]) for row in rows(tmp_path / "run")]
    assert max(log) > 95
    again = scene_graph_recall(list(predict_dataset(model, graphs[:8])), graphs[:8], Protocol(ks=(20, 50, 100)))
    best = max(float(row["R@50"]) for row in rows(tmp_path / "run"))
    assert 100 * again.figures["R@50"] == pytest.approx(best, abs=1e-3)


@pytest.mark.parametrize("task", ["sgcls", "both"])
def test_simulated_sgcls_is_called_simulated(task, tmp_path):
    config = small_config(data_file(tmp_path), task=task, simulate={"strength": 3.0}, optim={"epochs": 1})
    folder = train(config, tmp_path / "run")
    assert ("simulated" in (folder / "README.md").read_text()) == (task == "sgcls")
    with pytest.raises(OptionError, match="simulate"):
        train(small_config(tmp_path / "data.jsonl", task=task), tmp_path / "other")


def test_training_by_stages_leaves_the_context_alone_at_first(tmp_path):
    config = small_config(
        data_file(tmp_path), optim={"epochs": 1, "first_epochs": 1, "average": 0.0, "weight_decay": 0.0}
    )
    model = load_model(train(config, tmp_path / "run"))
    assert all(not p.any() for key, p in model.named_parameters() if "edge_rho.layers.2" in key)
    assert any("edge_rho.layers.2" in key for key, _ in model.named_parameters())


def test_it_stops_when_nothing_gets_better(tmp_path):
    config = small_config(
        data_file(tmp_path), optim={"epochs": 30, "first_epochs": 1, "patience": 2, "learning_rate": 1e-9}
    )
    train(config, tmp_path / "run")
    assert len(rows(tmp_path / "run")) == 4


@pytest.mark.parametrize("loss", ["paper", "released", "balanced", "metric", "coverage"])
def test_every_loss_trains(loss, tmp_path):
    train(
        small_config(data_file(tmp_path), loss={"kind": loss}, optim={"epochs": 2, "pairs": 60}),
        tmp_path / "r",
    )


def test_a_loss_that_is_not_finite_names_the_image(tmp_path, monkeypatch):
    config = small_config(data_file(tmp_path), "baseline", optim={"epochs": 1, "batch": 20})
    original = SceneModule.training_step

    def spoilt(self, batch, number):
        with torch.no_grad():
            self.bad = batch.ids[3]
        batch.label_dist[batch.ptr[3]] = float("nan")
        return original(self, batch, number)

    monkeypatch.setattr(SceneModule, "training_step", spoilt)
    with pytest.raises(DataError, match=r"the loss is nan in epoch 1, step 1: image \d+$") as caught:
        train(config, tmp_path / "run")
    assert "\n" not in str(caught.value)


SCRIPT = """
import sys, torch
torch.set_num_threads(1)
from pathlib import Path
from training.training_cases import small_config
from scenegpi.training.run import read_run, train
data, run, resume = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "resume"
config = read_run(run) if resume else small_config(data, optim={"epochs": 5, "first_epochs": 2, "batch": 3})
train(config, run, resume=resume)
"""


def test_killed_and_resumed_is_never_interrupted(tmp_path):
    data, run = data_file(tmp_path), tmp_path / "run"
    train(small_config(data, optim={"epochs": 5, "first_epochs": 2, "batch": 3}), tmp_path / "whole")
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(data), str(run), "start"], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    )
    for line in process.stdout:
        if line.startswith("epoch 2"):
            break
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (run / "finished.json").exists()
    load_model(run / "model")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(data), str(run), "resume"], env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "epoch 1:" not in done.stdout
    epochs = [row["epoch"] for row in rows(run)]
    assert epochs == ["1", "2", "3", "4", "5"]
    for a, b in zip(rows(run), rows(tmp_path / "whole"), strict=True):
        assert float(a["loss"]) == pytest.approx(float(b["loss"]), rel=1e-6)
    kept, other = load_model(run / "model"), load_model(tmp_path / "whole" / "model")
    for (key, a), b in zip(kept.state_dict().items(), other.state_dict().values(), strict=True):
        assert torch.allclose(a.float(), b.float(), atol=1e-6), key
    with pytest.raises(DataError, match="finished"):
        read_run(run)


def test_a_run_is_not_overwritten_and_needs_something_to_resume(tmp_path):
    config = small_config(data_file(tmp_path))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "x").touch()
    with pytest.raises(DataError, match="--resume"):
        train(config, tmp_path / "run")
    with pytest.raises(DataError, match="no run to resume"):
        read_run(tmp_path / "run")


def test_a_hostile_state_is_refused_not_run(tmp_path):
    config = small_config(data_file(tmp_path), optim={"epochs": 1})
    train(config, tmp_path / "run")

    class Evil:
        def __reduce__(self):
            return os.system, ("touch " + str(tmp_path / "evil"),)

    torch.save({"state_dict": Evil()}, tmp_path / "run" / "last.ckpt")
    (tmp_path / "run" / "finished.json").unlink()
    with pytest.raises(DataError, match="no state to resume from") as caught:
        train(read_run(tmp_path / "run"), tmp_path / "run", resume=True)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "evil").exists()


def test_a_kill_while_the_model_is_replaced_loses_nothing(tmp_path):
    old = tmp_path / ".model.abc.old"
    old.mkdir()
    (old / "config.json").touch()
    (tmp_path / ".model.abc.part").mkdir()
    (tmp_path / ".last.ckpt.x.part").touch()
    tidy(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_data_without_relations_is_refused(tmp_path):
    from models.model_cases import VOCABULARY
    from scenegpi.data import write_jsonl

    write_jsonl(tmp_path / "d.jsonl", [SceneGraph([[0, 0, 9, 9]], [0], VOCABULARY)])
    with pytest.raises(DataError, match="0 training"):
        train(small_config(tmp_path / "d.jsonl"), tmp_path / "run")


def test_a_baseline_is_taken_over_and_left_as_it_is(tmp_path):
    data = data_file(tmp_path)
    first = load_model(train(small_config(data, "baseline"), tmp_path / "first"))
    config = small_config(data, "gpi-no-attention", start=str(tmp_path / "first" / "model"), optim={"first_epochs": 0})
    second = load_model(train(config, tmp_path / "second"))
    for (key, a), b in zip(first.baseline.state_dict().items(), second.baseline.state_dict().values(), strict=True):
        assert torch.equal(a, b), key
    with pytest.raises(OptionError, match="first_epochs"):
        train(small_config(data, optim={"first_epochs": 0}), tmp_path / "third")
    other = small_config(data, start=str(tmp_path / "first" / "model"), model={"baseline": {"hidden": 17}})
    with pytest.raises(DataError, match="built otherwise"):
        train(other, tmp_path / "fourth")
