"""The tables of the presets: what is trained is used again, figures are means over seeds, gains are paired."""

from __future__ import annotations

import numpy as np
import pytest

from models.model_cases import WORDS
from scenegpi.data import open_dataset
from scenegpi.metrics import Plan, Protocol, compare
from scenegpi.models import PRESETS, load_model, predict_dataset
from seed_rows import average, load_rows, markdown, plain_rows, score_seeds, together, train_rows
from training.training_cases import SMALL, data_file

OPTIM = {"epochs": 1, "batch": 8, "warmup": 1}
BASELINE = {"model": {"baseline": SMALL["baseline"]}, "optim": OPTIM}
CONTEXT = {"model": SMALL, "optim": OPTIM}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    path = data_file(folder, images=14)
    WORDS.save(folder / "words.safetensors")
    where = {"path": str(path), "validation": 4}

    def run():
        return train_rows(folder / "runs", [0, 1], where, folder / "words.safetensors", BASELINE, CONTEXT)

    return run, open_dataset(path)


def test_every_preset_with_every_seed_once(trained, capsys):
    run, _ = trained
    found = run()
    assert {name: len(paths) for name, paths in found.items()} == dict.fromkeys(PRESETS, 2)
    capsys.readouterr()
    assert run() == found
    assert "training" not in capsys.readouterr().out
    for name in PRESETS:
        first, second = (load_model(path).baseline.label for path in found[name])
        assert not first.equal(second)
        assert first.equal(load_model(found["baseline"][0]).baseline.label)  # the baseline of its seed is taken over


def test_rows_are_means_over_seeds_and_gains_are_paired(trained):
    run, data = trained
    plan = Plan(Protocol("predcls"), data.vocabulary, bootstrap=50)
    rows = {name: score_seeds(models, data, plan) for name, models in load_rows(run())}
    row = rows["gpi-no-attention"]
    assert row.mean.figures["R@20"] == pytest.approx(np.mean([each.figures["R@20"] for each in row.seeds]))
    low, high = row.mean.intervals["R@20"]
    assert low <= row.mean.figures["R@20"] <= high
    plain = plain_rows(rows, ["R@20", "mR@50"], ["R@50"])
    assert "gain" not in plain["baseline"]
    found = compare(rows["baseline"].mean, row.mean)["R@20"]
    assert plain["gpi-no-attention"]["gain"]["R@20"][0] == pytest.approx(100 * found.difference, abs=1e-3)
    assert plain["gpi-no-attention"]["seeds"]["R@20"] == [round(100 * r.figures["R@20"], 3) for r in row.seeds]
    assert len(markdown(plain, ["R@20"], "R@20", ["R@20"]).splitlines()) == 2 + len(PRESETS)
    assert average([row.seeds[0]] * 3).figures == pytest.approx(row.seeds[0].figures, nan_ok=True)


def test_an_ensemble_is_the_mean_of_distributions(trained):
    run, data = trained
    models = [load_model(path) for path in run()["gpi-no-attention"]]
    a, b = (next(iter(predict_dataset(model, data))) for model in models)
    assert np.allclose(together([a, b]).pair_dist, (a.pair_dist + b.pair_dist) / 2)
