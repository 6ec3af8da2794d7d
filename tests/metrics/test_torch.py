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
from scenegpi.metrics import Protocol, Result, SceneGraphRecall, ZeroShot, compare, scene_graph_recall

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
    assert set(metric().metric_state) == {"sums", "replicates", "fingerprint"}
    predictions, targets = random_images(2, 8)
    found = metric()
    sizes = {name: value.shape for name, value in found.metric_state.items()}
    found.update(predictions, targets)
    assert {name: value.shape for name, value in found.metric_state.items()} == sizes


def test_two_real_processes(tmp_path):
    worker = Path(__file__).with_name("metrics_worker.py")
    files = [tmp_path / f"{rank}.json" for rank in range(2)]
    workers = [
        subprocess.Popen([sys.executable, worker, str(rank), tmp_path / "meet", file])
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


def test_metrics_and_the_eval_command_do_not_import_torch():
    code = "import sys, scenegpi.metrics, scenegpi.metrics.table, scenegpi.commands.eval; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_unknown_names_are_attribute_errors():
    import scenegpi.metrics

    with pytest.raises(AttributeError, match="nothing"):
        _ = scenegpi.metrics.nothing
