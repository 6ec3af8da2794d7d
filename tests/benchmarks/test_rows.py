"""The tables of the presets: what is trained is used again, figures are means over seeds, gains are paired."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models.model_cases import WORDS
from rows import (
    LabelCounts,
    average,
    markdown,
    plain_labels,
    plain_rows,
    predictions,
    score_seeds,
    together,
    train_presets,
)
from scenegpi.data import open_dataset
from scenegpi.metrics import Plan, Protocol, compare
from scenegpi.models import PRESETS, load_model
from training.training_cases import SMALL, data_file


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("rows")
    path = data_file(folder, images=14)
    words = folder / "words.safetensors"
    WORDS.save(words)
    options = {"data": {"path": str(path), "validation": 4, "words": str(words)}, "model": SMALL, "epochs": 1}

    def run():
        return train_presets("vrd-layout", folder / "runs", [0, 1], options, list(PRESETS))

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
    rows = {name: score_seeds(list(map(load_model, paths)), data, plan) for name, paths in run().items()}
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
    a, b = (next(predictions(model, data, "predcls")) for model in models)
    assert np.allclose(together([a, b]).pair_dist, (a.pair_dist + b.pair_dist) / 2)


def test_label_gains_are_paired():
    rng = np.random.default_rng(0)
    boxes = rng.integers(3, 9, 200)
    right = rng.binomial(boxes, 0.5)
    base = LabelCounts(np.stack([boxes, right, boxes], 1).astype(float))
    more = LabelCounts(np.stack([boxes, np.minimum(right + 1, boxes), boxes], 1).astype(float))
    entry = plain_labels(more, base)
    assert entry["figures"]["top-1"] == pytest.approx(100 * more.rows[:, 1].sum() / boxes.sum(), abs=1e-3)
    value, low, high = entry["gain"]["top-1"]
    assert low < value < high
    assert high - low < entry["intervals"]["top-1"][1] - entry["intervals"]["top-1"][0]
    assert entry["gain"]["top-5"] == [0, 0, 0]
    assert np.array_equal(base.join(more).rows[200:], more.rows)
