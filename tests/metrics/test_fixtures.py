"""The figures that the field's evaluators give, to the last digit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from metrics.metrics_brute_force import brute_force
from metrics.metrics_cases import PREDICATES, npz_arrays, npz_as_dicts
from scenegpi.data.evaluation_npz import EvaluationNpz
from scenegpi.evaluation import evaluate_file
from scenegpi.metrics import Protocol, ZeroShot, scene_graph_recall

FIXTURES = Path(__file__).resolve().parents[2].parent / "shared" / "fixtures"
NPZ, EXPECTED = FIXTURES / "scene_graph_eval.npz", FIXTURES / "scene_graph_eval.expected.json"
needs_fixtures = pytest.mark.skipif(not NPZ.exists(), reason="needs ../shared/fixtures, which is not here")
CONVENTION = {"zero": "empty_prediction_scores_zero", "skip": "empty_prediction_skipped"}


@needs_fixtures
@pytest.mark.parametrize("task", ["predcls", "sgcls", "sgdet"])
@pytest.mark.parametrize("empty", ["zero", "skip"])
def test_both_conventions(task, empty):
    expected = json.loads(EXPECTED.read_text())[task][CONVENTION[empty]]
    result = evaluate_file(NPZ, Protocol(task, empty=empty), bootstrap=0)
    assert len(expected) >= 6
    for name, value in expected.items():
        assert result.figures[name] == pytest.approx(value, abs=1e-12), name
        assert result.by_convention[CONVENTION[empty]][name] == pytest.approx(value, abs=1e-12), name


@needs_fixtures
@pytest.mark.parametrize("task", ["predcls", "sgcls", "sgdet"])
def test_field_takes_each_figure_from_the_evaluator_that_has_it(task):
    expected = json.loads(EXPECTED.read_text())[task]
    result = evaluate_file(NPZ, Protocol(task), bootstrap=0)
    for name, value in (expected[CONVENTION["skip"]] | expected[CONVENTION["zero"]]).items():
        assert result.figures[name] == pytest.approx(value, abs=1e-12), name


@needs_fixtures
def test_fixture_is_not_all_of_it():
    """Other K's and the figures that the evaluators lack, against the loops, on the same images."""
    arrays = dict(np.load(NPZ))
    unseen = set(map(tuple, arrays["zeroshot"].tolist()))
    predictions, targets = npz_as_dicts(arrays, "predcls")
    expected = brute_force(predictions[:40], targets[:40], "predcls", (5, 13), 50, unseen, "zero", (1, 50))
    file = EvaluationNpz(NPZ, "predcls")
    graphs = [(file.prediction(i), file.target(i)) for i in range(40)]
    protocol = Protocol(ks=(5, 13), empty="zero", per_pair=(1, 50))
    zero_shot = ZeroShot.unseen(file.zero_shot)
    result = scene_graph_recall([p for p, _ in graphs], [t for _, t in graphs], protocol, zero_shot=zero_shot)
    assert result.figures == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("task", ["predcls", "sgcls", "sgdet"])
@pytest.mark.parametrize("empty", ["zero", "skip"])
def test_own_files_in_the_same_layout(tmp_path, task, empty):
    """Images with one box, none, no predictions, no relations; other class counts than Visual Genome's."""
    arrays = npz_arrays(5, 12)
    np.savez(tmp_path / "case.npz", **arrays)
    predictions, targets = npz_as_dicts(arrays, task)
    unseen = set(map(tuple, arrays["zeroshot"].tolist()))
    ks = (1, 3, 20)
    expected = brute_force(predictions, targets, task, ks, PREDICATES, unseen, empty)
    result = evaluate_file(tmp_path / "case.npz", Protocol(task, ks=ks, empty=empty), bootstrap=0)
    assert result.figures == pytest.approx(expected, abs=1e-12)
    assert result.counts["images_without_predictions"] == 1
    assert result.counts["images_without_relations"] >= 3


def test_without_zero_shot_there_is_no_zero_shot_figure(tmp_path):
    arrays = npz_arrays(5, 8)
    np.savez(tmp_path / "full.npz", **arrays)
    del arrays["zeroshot"]
    np.savez_compressed(tmp_path / "case.npz", **arrays)
    full, result = (evaluate_file(tmp_path / name, Protocol(), bootstrap=0) for name in ("full.npz", "case.npz"))
    others = {name: value for name, value in full.figures.items() if "zR" not in name}
    assert len(others) < len(full.figures)
    assert result.figures == pytest.approx(others, abs=1e-12, nan_ok=True)


def test_predcls_needs_no_predicted_boxes(tmp_path):
    arrays = npz_arrays(6, 8)
    np.savez(tmp_path / "full.npz", **arrays)
    for name in ("pred_boxes", "pred_classes", "obj_scores", "pred_box_ptr"):
        del arrays[name]
    np.savez(tmp_path / "bare.npz", **arrays)
    full, bare = (evaluate_file(tmp_path / name, Protocol(), bootstrap=0) for name in ("full.npz", "bare.npz"))
    assert full.figures == pytest.approx(bare.figures, abs=1e-12, nan_ok=True)


def test_an_image_without_predictions_may_lack_its_boxes(tmp_path):
    """In the given-box tasks such an image counts 0, with or without predicted boxes."""
    arrays = npz_arrays(7, 8)
    np.savez(tmp_path / "with.npz", **arrays)
    lost = slice(arrays["pred_box_ptr"][3], arrays["pred_box_ptr"][4])
    for name in ("pred_boxes", "pred_classes", "obj_scores"):
        arrays[name] = np.delete(arrays[name], lost, axis=0)
    arrays["pred_box_ptr"] = arrays["pred_box_ptr"] - (lost.stop - lost.start) * (np.arange(9) > 3)
    np.savez(tmp_path / "without.npz", **arrays)
    for task in ("predcls", "sgcls", "sgdet"):
        a, b = (evaluate_file(tmp_path / name, Protocol(task), bootstrap=0) for name in ("with.npz", "without.npz"))
        assert a.figures == pytest.approx(b.figures, abs=1e-12)
