"""The table of compared systems: means over seeds, intervals over images and seeds, gains paired by both."""

from __future__ import annotations

import json

import numpy as np
import pytest

from models.model_cases import random_graph
from rows import freq_model
from scenegpi.metrics import ZeroShot
from scenegpi.models.presets import preset
from scenegpi.training import find_recipe, read_config
from table import COST, FIRST, ROWS, SCORES, SETS, Scores, gain, report, score_model, stored, triple

KEY = "test photos, sgcls, R@50"


def scores(values, seeds, cost=60.0, spread=0.01, images=0):
    """A figure of each seed, with replicates: noise by image that all systems share, and none of their own."""
    noise = np.random.default_rng(images).normal(0, spread, 1000)
    rows = np.stack([np.concatenate([[value], value + noise]) for value in values])
    return Scores(seeds, {KEY: rows}, cost)


def test_a_gain_is_paired_by_image_and_by_seed():
    base, other = scores([0.20, 0.24, 0.28], [0, 1, 2]), scores([0.21, 0.25, 0.29], [0, 1, 2])
    assert gain(other, base, KEY) == [1.0, 1.0, 1.0]  # the same on every image and for every seed
    unpaired = scores([0.21, 0.25, 0.29], [0, 1, 2], images=1)
    low, high = gain(unpaired, base, KEY)[1:]
    assert low < 0 < high


def test_an_interval_holds_the_seeds_too():
    figure, low, high = triple(scores([0.20, 0.24, 0.28], [0, 1, 2], spread=0.0).drawn(KEY))
    assert (figure, low, high) == (24.0, 20.0, 28.0)
    assert triple(scores([0.24], [0], spread=0.0).drawn(KEY)) == [24.0, 24.0, 24.0]


def test_only_seeds_that_both_have_are_compared():
    base, other = scores([0.20, 0.90], [0, 1]), scores([0.21], [0])
    assert gain(other, base, KEY)[0] == pytest.approx(1.0)
    fixed = scores([0.50], [0], cost=None)
    assert gain(fixed, base, KEY)[0] == pytest.approx(-5.0)  # a system without seeds: against the mean of the others
    assert gain(other, None, KEY) is None


def test_the_tables_come_from_what_is_stored(tmp_path, capsys):
    for name, value in ((FIRST, 0.2), ("baseline", 0.22), ("gpi-linguistic", 0.25)):
        for seed in (0, 1):
            folder = tmp_path / f"seed{seed}" / name
            folder.mkdir(parents=True)
            np.savez(folder / SCORES, **{KEY: np.full(1001, value)})
            (folder / COST).write_text(json.dumps({"CPU seconds": 30 + seed}))
    assert dict(stored(tmp_path))["baseline"].seeds == [0, 1]
    made = report(tmp_path)
    table = made["sets"]["test photos, sgcls"]
    row = table["rows"]["gpi-linguistic"]
    assert row["figures"][table["columns"].index("R@50")] == [25.0, 25.0, 25.0]
    assert row["gain over"] == {"baseline": {"R@50": [3.0, 3.0, 3.0]}, "own form": {"R@50": [5.0, 5.0, 5.0]}}
    assert made["rows"]["baseline"] == {"seeds": [0, 1], "CPU seconds": 30}
    printed = capsys.readouterr().out
    assert "| gpi-linguistic | 2 |" in printed
    assert "25.0 [25.0, 25.0]" in printed
    assert "+5.0 [+5.0, +5.0]" in printed


def test_every_row_can_be_trained_by_the_recipe():
    for name, entry in ROWS.items():
        config = read_config(find_recipe("vg150-table"), {"preset": entry.preset, **entry.options})
        assert config.task == "both", name
        assert config.model.two_stages == preset(entry.preset).two_stages
        assert config.stage.loss.entities == 16.0
        assert entry.alone is None or entry.alone in ROWS


def test_a_model_and_labels_alone_are_scored_on_every_set():
    rng = np.random.default_rng(3)
    graphs = [random_graph(rng, 4).replace(pairs=None, pair_dist=None) for _ in range(3)]
    images, zero_shot = dict.fromkeys(SETS, graphs), ZeroShot.from_training(graphs)
    found = score_model(freq_model(graphs), images, zero_shot)
    assert {key.rsplit(", ", 1)[0] for key in found} == {f"{s}, {t}" for s, tasks in SETS.items() for t in tasks}
    assert all(values.shape == (1001,) for values in found.values())
    alone = score_model(None, images, zero_shot)
    right = np.concatenate([graph.label_dist.argmax(1) == graph.labels for graph in graphs])
    assert alone["test photos, sgcls, top-1"][0] == pytest.approx(right.mean())
