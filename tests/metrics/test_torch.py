"""The torchmetrics class: same figures, two real processes, and no torch for those who don't ask for it."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from metrics.metrics_cases import PREDICATES, flat, random_images
from scenegpi import SceneGraph, Vocabulary
from scenegpi.metrics import (
    MetricError,
    Protocol,
    Result,
    SceneGraphRecall,
    ZeroShot,
    compare,
    scene_graph_recall,
)

PROTOCOL = Protocol(ks=(2, 5))
UNSEEN = ZeroShot.not_in([[0, 1, 2], [3, 4, 0]])


def metric():
    return SceneGraphRecall(PROTOCOL, PREDICATES, UNSEEN, bootstrap=40)


def expected(predictions, targets):
    return scene_graph_recall(predictions, targets, PROTOCOL, predicates=PREDICATES, zero_shot=UNSEEN, bootstrap=40)


def as_floats(values):
    return {name: float(value) for name, value in values.items()}


def test_update_compute_reset():
    predictions, targets = random_images(0, 12)
    found = metric()
    found.update(predictions[:5], targets[:5])
    found.update(predictions[5:], targets[5:])
    whole = expected(predictions, targets)
    assert as_floats(found.compute()) == pytest.approx(whole.figures, nan_ok=True)
    result = found.result()
    assert flat(result.intervals) == pytest.approx(flat(whole.intervals), nan_ok=True)
    assert compare(result, whole)["R@2"].difference == pytest.approx(0)
    assert copy.deepcopy(found).result().figures == pytest.approx(result.figures, nan_ok=True)
    assert pickle.loads(pickle.dumps(found)).result().fingerprint == whole.fingerprint
    found.reset()
    with pytest.warns(UserWarning, match="before the ``update``"):
        assert torch.isnan(found.compute()["R@2"])


def test_forward_gives_the_batch_and_accumulates():
    predictions, targets = random_images(1, 8)
    found = metric()
    batch = found(predictions[:3], targets[:3])
    assert as_floats(batch) == pytest.approx(expected(predictions[:3], targets[:3]).figures, nan_ok=True)
    found(predictions[3:], targets[3:])
    assert as_floats(found.compute()) == pytest.approx(expected(predictions, targets).figures, nan_ok=True)


def test_state_is_sums_only():
    predictions, targets = random_images(2, 8)
    found = metric()
    assert set(found.metric_state) == {"sums", "replicates", "fingerprint"}
    found.update(predictions[:1], targets[:1])
    sizes = {name: value.shape for name, value in found.metric_state.items()}
    found.update(predictions[1:], targets[1:])
    assert {name: value.shape for name, value in found.metric_state.items()} == sizes


@pytest.mark.parametrize(
    ("first", "ks"),
    [(50, (50,)), ((20, 50, 100), (20, 50, 100)), ([5, 2], (2, 5)), (None, (20, 50, 100)), (PROTOCOL, (2, 5))],
)
def test_the_simple_call(first, ks):
    predictions, targets = random_images(4, 6)
    found = SceneGraphRecall(first)
    found.update(predictions, targets)
    want = scene_graph_recall(predictions, targets, Protocol(ks=ks))
    assert found.result().protocol == Protocol(ks=ks)
    assert as_floats(found.compute()) == pytest.approx(want.figures, nan_ok=True)
    assert 0.2 < float(found.compute()[f"R@{ks[0]}"]) <= 1  # these predictions know more than chance


@pytest.mark.parametrize("first", ["50", 0, (), (20, "x"), 2.5])
def test_what_is_no_k_is_one_line(first):
    with pytest.raises(MetricError, match=r"protocol\.ks"):
        SceneGraphRecall(first)


def test_the_vocabulary_of_the_first_update_names_the_predicates():
    vocabulary = Vocabulary(["man", "hat"], ["on", "wearing", "near"])
    boxes = [[0, 0, 9, 9], [2, 2, 6, 6]]
    truth = SceneGraph(boxes, [0, 1], vocabulary, [(0, 1, "wearing"), (1, 0, "on")])
    said = SceneGraph(boxes, [0, 1], vocabulary, [(0, 1, "wearing")], relation_scores=[0.9])
    found = SceneGraphRecall(protocol=Protocol(ks=(1,)), groups={"worn": [1]})
    found.update([], [])
    assert not found.known
    found.update([said], [truth])
    assert found.plan.names == vocabulary.predicates
    assert float(found.compute()["R@1"]) == 0.5
    other = truth.replace(vocabulary=Vocabulary(["man", "hat"], ["on", "wearing", "near", "by"]))
    with pytest.raises(MetricError, match="vocabulary of 4 predicates, expected 3"):
        found.update([other], [other])
    with pytest.raises(MetricError, match="pass predicates="):
        SceneGraphRecall(1).update([{"relations": [[0, 1, 1]]}], [{"boxes": boxes, "labels": [1, 2]}])


def test_figures_do_not_depend_on_who_says_what_the_predicates_are():
    predictions, targets = random_images(5, 9)
    told, read = SceneGraphRecall(PROTOCOL, PREDICATES, bootstrap=20), SceneGraphRecall(PROTOCOL, bootstrap=20)
    for metric_ in (told, read):
        batch = metric_(predictions[:2], targets[:2])
        want = scene_graph_recall(predictions[:2], targets[:2], PROTOCOL)
        assert as_floats(batch) == pytest.approx(want.figures, nan_ok=True)
        metric_(predictions[2:], targets[2:])
    assert read.result().figures == pytest.approx(told.result().figures, nan_ok=True)
    assert flat(read.result().intervals) == pytest.approx(flat(told.result().intervals), nan_ok=True)
    assert read.plan == told.plan
    read.reset()
    read.update(predictions[:3], targets[:3])
    want = scene_graph_recall(predictions[:3], targets[:3], PROTOCOL)
    assert as_floats(read.compute()) == pytest.approx(want.figures, nan_ok=True)


def test_metrics_merge_even_where_one_saw_nothing():
    predictions, targets = random_images(6, 8)
    fresh, a, b = (SceneGraphRecall(PROTOCOL, bootstrap=20) for _ in range(3))
    a.update(predictions[:3], targets[:3])
    b.update(predictions[3:], targets[3:])
    fresh.merge_state(a)
    fresh.merge_state(b)
    want = scene_graph_recall(predictions, targets, PROTOCOL, bootstrap=20)
    assert fresh.result().figures == pytest.approx(want.figures, nan_ok=True)
    assert flat(fresh.result().intervals) == pytest.approx(flat(want.intervals), nan_ok=True)
    with pytest.raises(MetricError, match="different evaluations"):
        fresh.merge_state(SceneGraphRecall(PROTOCOL, PREDICATES + 1))


@pytest.mark.parametrize("split", ["even", "one process has nothing"])
def test_two_real_processes(tmp_path, split):
    worker = Path(__file__).with_name("metrics_worker.py")
    files = [tmp_path / f"{rank}.json" for rank in range(2)]
    workers = [
        subprocess.Popen([sys.executable, worker, str(rank), tmp_path / "meet", file, split])
        for rank, file in enumerate(files)
    ]
    try:
        assert [process.wait(timeout=120) for process in workers] == [0, 0]
    finally:
        for process in workers:
            process.kill()
    whole = scene_graph_recall(*random_images(3, 21), PROTOCOL, bootstrap=40)
    for file in files:
        answer = json.loads(file.read_text())
        assert answer["compute"] == pytest.approx(whole.figures, abs=1e-12)
        result = Result.from_dict(answer["result"])
        assert result.figures == pytest.approx(whole.figures, abs=1e-12)
        assert flat(result.intervals) == pytest.approx(flat(whole.intervals), abs=1e-12)
        assert (result.fingerprint, result.counts) == (whole.fingerprint, whole.counts)
        assert {k: set(v) for k, v in result.per_predicate.items()} == {
            k: set(v) for k, v in whole.per_predicate.items()
        }


def test_metrics_and_the_eval_command_do_not_import_torch():
    code = "import sys, scenegpi.metrics, scenegpi.metrics.table, scenegpi.commands.eval; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_unknown_names_are_attribute_errors():
    import scenegpi.metrics

    with pytest.raises(AttributeError, match="nothing"):
        _ = scenegpi.metrics.nothing
