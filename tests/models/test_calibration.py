"""Calibration: neutral changes nothing, a temperature changes no order, and fitting finds what data was drawn from."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.model_cases import predict_graphs, random_graphs, small_model
from scenegpi.errors import DataError
from scenegpi.models import load_model, save_model
from scenegpi.models.calibration import (
    MAX_OFFSET,
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    Calibration,
    Calibrations,
    Outcomes,
    fit_calibration,
    fit_outcomes,
    log_odds,
    outcomes,
)

WARM = Calibration(related=1.3, offset=-0.4, predicates=1.7, labels=0.8)
temperatures = st.floats(MIN_TEMPERATURE, MAX_TEMPERATURE)
calibrations = st.builds(Calibration, temperatures, st.floats(-MAX_OFFSET, MAX_OFFSET), temperatures, temperatures)


def logits(seed: int, rows: int, columns: int, spread: float = 3.0) -> torch.Tensor:
    return spread * torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


@given(calibrations, st.integers(0, 10**6))
def test_what_comes_first_stays_first(calibration, seed):
    x = logits(seed, 30, 6).double()
    edges, nodes = calibration.edges(x), calibration.nodes(x)
    # A temperature of 0.05 may bring two small probabilities to 0: the best is compared by its value.
    best = x[:, 1:].argmax(1, keepdim=True)
    assert torch.equal(edges[:, 1:].gather(1, best)[:, 0], edges[:, 1:].amax(1))
    assert torch.equal(nodes.argmax(1), x.argmax(1))
    for dist in (edges, nodes):
        assert bool(torch.isfinite(dist).all())
        assert torch.allclose(dist.sum(1), torch.ones(len(dist)).double(), atol=1e-9)


@given(st.integers(0, 10**6))
def test_neutral_is_the_softmax_to_the_last_bit(seed):
    x = logits(seed, 20, 5)
    assert torch.equal(Calibration().edges(x), x.softmax(1))
    assert torch.equal(Calibration().nodes(x), x.softmax(1))


@given(temperatures, st.floats(-3, 3))
def test_its_parts_are_what_they_are_called(t, offset):
    x = logits(1, 20, 5).double()
    found = Calibration(related=t, offset=offset, predicates=2.0).edges(x)
    odds = (log_odds(x) / t + offset).sigmoid()
    assert torch.allclose(found[:, 1:].sum(1), odds, atol=1e-9)
    shares = found[:, 1:] / found[:, 1:].sum(1, keepdim=True).clamp_min(1e-300)
    likely = odds > 1e-6
    assert torch.allclose(shares[likely], (x[likely, 1:] / 2).softmax(1), atol=1e-6)


@settings(max_examples=8, deadline=None)
@given(st.floats(0.6, 2.0), st.floats(-1, 1), st.floats(0.6, 2.0), st.integers(0, 10**6))
def test_fitting_finds_what_the_data_was_drawn_from(related, offset, labels, seed):
    found = fit_outcomes(drawn(Calibration(related, offset, labels=labels), seed))
    assert found.related == pytest.approx(related, rel=0.12, abs=0.05)
    assert found.offset == pytest.approx(offset, abs=0.15)
    assert found.labels == pytest.approx(labels, rel=0.1, abs=0.05)


def drawn(true: Calibration, seed: int, rows: int = 6000) -> Outcomes:
    """Logits, and outcomes that have the probabilities of `true`; ten rows an image."""
    generator = torch.Generator().manual_seed(seed + 3)
    odds, y = logits(seed, rows, 1, 2.0)[:, 0], logits(seed + 2, rows, 7, 2.0)
    image = torch.arange(rows) // 10
    yes = torch.rand(rows, generator=generator) < (odds / true.related + true.offset).sigmoid()
    label = torch.multinomial((y / true.labels).softmax(1), 1, generator=generator)[:, 0]
    return Outcomes(odds, yes, image, y, label, image)


def test_calibrated_data_is_mostly_left_alone():
    neutral = [fit_outcomes(drawn(Calibration(), seed, 1000)) for seed in range(30)]
    for part in ("related", "labels"):
        assert sum(getattr(each, part) != 1 for each in neutral) <= 5, part


def test_one_odd_image_does_not_change_anything():
    found = drawn(Calibration(), 3, 400)
    odd = found.pair_image == 0
    found.odds[odd] = torch.where(found.related[odd], -9.0, 9.0)
    assert (fit_outcomes(found).related, fit_outcomes(found).offset) == (1, 0)


def test_without_relations_or_with_labels_all_right_nothing_is_fitted():
    found = drawn(Calibration(), 0, 200)
    none = found._replace(related=torch.zeros(200, dtype=torch.bool), labels=found.nodes.argmax(1))
    assert fit_outcomes(none) == Calibration()


def test_outcomes_are_what_is_annotated():
    model, graphs = small_model("gpi-feature-attention"), random_graphs((4, 1, 6, 3))
    found = outcomes(model, graphs, "sgcls")
    rows = [{tuple(row) for row in graph.relations.tolist()} for graph in graphs]
    free = [len(g) * (len(g) - 1) - len({row[:2] for row in each}) for g, each in zip(graphs, rows, strict=True)]
    assert found.pair_image[~found.related].bincount(minlength=4).tolist() == free
    assert found.pair_image[found.related].bincount(minlength=4).tolist() == [len(each) for each in rows]
    assert found.node_image.bincount(minlength=4).tolist() == [4, 1, 6, 3]
    assert found.labels.tolist() == np.concatenate([g.labels for g in graphs]).tolist()
    (first, *_) = predict_graphs(model, graphs, "sgcls")
    place = {pair: k for k, pair in enumerate(map(tuple, first.pairs.tolist()))}
    said = {round(1 - float(first.pair_dist[place[row[:2]], 0]), 5) for row in rows[0]}
    mine = found.related & (found.pair_image == 0)
    assert np.allclose(sorted(set(found.odds[mine].sigmoid().tolist())), sorted(said), atol=1e-4)


@pytest.mark.parametrize("task", ["predcls", "sgcls"])
def test_predictions_are_calibrated_by_task(task):
    model, graphs = small_model("gpi-feature-attention"), random_graphs((5, 3))
    before = {each: list(predict_graphs(model, graphs, each)) for each in ("predcls", "sgcls")}
    model.calibration = replace(model.calibration, **{task: WARM})
    for each, graph_lists in before.items():
        for old, new in zip(graph_lists, predict_graphs(model, graphs, each), strict=True):
            assert np.array_equal(old.pair_dist, new.pair_dist) == (each != task)
            assert np.array_equal(old.pair_dist[:, 1:].argmax(1), new.pair_dist[:, 1:].argmax(1))
            assert np.array_equal(old.labels, new.labels)


def test_the_order_of_boxes_does_not_matter():
    model, (graph,) = small_model("gpi-feature-attention"), random_graphs((7,))
    model.calibration = Calibrations(WARM, WARM)
    order = np.random.default_rng(0).permutation(len(graph))
    (a,), (b,) = (list(predict_graphs(model, [g], "sgcls")) for g in (graph.permute(order), graph))
    rows = {(s, o): k for k, (s, o) in enumerate(b.pairs.tolist())}
    moved = [rows[order[s], order[o]] for s, o in a.pairs.tolist()]
    assert np.abs(a.pair_dist - b.pair_dist[moved]).max() < 1e-5
    assert np.abs(a.label_dist - b.label_dist[order]).max() < 1e-5


def test_it_is_saved_loaded_and_on_the_card(tmp_path):
    model, graphs = small_model("gpi-feature-attention"), random_graphs((5,))
    assert "calibrated" not in (save_model(model, tmp_path / "neutral") / "README.md").read_text()
    model.calibration = Calibrations(sgcls=WARM)
    folder = save_model(model, tmp_path / "model")
    loaded = load_model(folder)
    assert loaded.calibration == model.calibration
    (a,), (b,) = (list(predict_graphs(each, graphs, "sgcls")) for each in (model, loaded))
    assert np.array_equal(a.pair_dist, b.pair_dist)
    card = (folder / "README.md").read_text()
    assert "calibrated, labels predicted: related or not at temperature 1.3, log-odds -0.40, predicates at" in card
    assert "calibrated, labels given" not in card


def test_models_from_before_there_was_calibration_are_neutral(tmp_path):
    folder = save_model(small_model("baseline"), tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    del config["calibration"]
    (folder / "config.json").write_text(json.dumps(config))
    assert load_model(folder).calibration == Calibrations()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"sgcls": {"predicates": 0.0}}, r"calibration\.sgcls\.predicates: 0\.0 is not between 0\.05 and 20"),
        ({"predcls": {"offset": "far"}}, r"calibration\.predcls\.offset: expected a number"),
        ({"warm": 1}, r"calibration\.warm: no such setting"),
        ([1], r"calibration: expected a table of settings"),
    ],
)
def test_nonsense_in_a_file_is_refused(tmp_path, value, message):
    folder = save_model(small_model("baseline"), tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config["calibration"] = value
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(DataError, match=message):
        load_model(folder)


def test_a_model_learns_to_mean_what_it_says():
    """Annotated as a warmer model would have it, the model becomes that model."""
    model, graphs = small_model("baseline"), random_graphs((8,) * 80, seed=9)
    model.network.network.out.weight.data.mul_(6)
    model.calibration = Calibrations(WARM, WARM)
    rng = np.random.default_rng(0)
    annotated = []
    for graph, found in zip(graphs, predict_graphs(model, graphs, "predcls"), strict=True):
        drawn = np.array([rng.choice(len(p), p=p / p.sum()) for p in found.pair_dist.astype(np.float64)])
        rows = np.column_stack([found.pairs, drawn - 1])[drawn > 0]
        annotated.append(graph.replace(relations=rows))
    fitted = fit_calibration(model, annotated, "predcls")
    assert fitted.related == pytest.approx(WARM.related, rel=0.15)
    assert fitted.offset == pytest.approx(WARM.offset, abs=0.15)
    assert (fitted.predicates, fitted.labels) == (1, 1)
