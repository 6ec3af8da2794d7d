"""At the end of a run the kept model is calibrated."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from scenegpi.data import open_dataset
from scenegpi.metrics import Plan, Protocol, RecallState
from scenegpi.models import load_model
from scenegpi.models.calibration import Calibration, Calibrations
from scenegpi.training import train
from scenegpi.training.module import scored
from training.training_cases import data_file, small_config

PAPER = {"kind": "paper", "negatives": 0.1}
"""A loss that takes a pair for related too easily, by intention."""


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated")
    path = data_file(folder, images=70)
    config = small_config(path, "baseline", data={"validation": 35}, loss=PAPER, epochs=3)
    return path, train(config, folder / "run")


def validation(path):
    data = open_dataset(path).drop_empty()
    return [data[i] for i in range(35)]


def said_and_true(model, graphs):
    found = scored(model, graphs, "predcls")
    said = np.concatenate([1 - graph.pair_dist[:, 0] for graph in found]).mean()
    rows = sum(len({tuple(row) for row in graph.relations.tolist()}) for graph in graphs)
    return said, rows, sum(len(graph.pair_dist) for graph in found)


def test_what_a_weighted_loss_exaggerates_is_taken_back(run):
    path, folder = run
    model, graphs = load_model(folder), validation(path)
    after = said_and_true(model, graphs)[0]
    assert model.calibration != Calibrations()
    assert model.calibration.sgcls == model.calibration.predcls
    model.calibration = Calibrations()
    before, rows, pairs = said_and_true(model, graphs)
    related = len({(k, *row[:2]) for k, graph in enumerate(graphs) for row in graph.relations.tolist()})
    # A pair with k predicates counts k times: rows among rows and unrelated pairs.
    aim = rows / (pairs - related + rows)
    assert before > aim + 0.08
    assert after == pytest.approx(aim, abs=0.05)


def test_card_and_figures_are_those_of_the_calibrated_model(run):
    path, folder = run
    assert "calibrated, labels given: related or not at temperature" in (folder / "README.md").read_text()
    stored = json.loads((folder / "metrics.json").read_text())["validation"]["figures"]
    graphs = validation(path)
    state = RecallState(Plan(Protocol("predcls", constraint="graph", ks=(20, 50, 100)), graphs[0].vocabulary))
    state.update(scored(load_model(folder), graphs, "predcls"), graphs)
    assert stored["R@20"] == pytest.approx(state.result().figures["R@20"], abs=1e-9)


def test_given_numbers_are_for_the_finished_model_and_nothing_is_fitted(tmp_path):
    path = data_file(tmp_path, images=50)
    given = {"predcls": {"offset": -1.5}, "sgcls": {"labels": 2.0}}
    config = small_config(path, data={"validation": 25}, loss=PAPER, calibration=given)
    model = load_model(train(config, tmp_path / "run"))
    assert model.calibration == Calibrations(Calibration(offset=-1.5), Calibration(labels=2.0))
    assert load_model(tmp_path / "run" / "baseline" / "model").calibration != model.calibration
