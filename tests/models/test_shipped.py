"""What ships does what its card says."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from scenegpi import GraphError, load_model, predict
from scenegpi.data import open_dataset, sample_path
from scenegpi.metrics import Plan, Protocol, RecallState
from scenegpi.models import predict_dataset, predict_graphs
from scenegpi.models.shipped import shipped_models


@pytest.fixture(scope="module")
def model():
    return load_model("vg150-layout")


def test_names_and_size():
    assert list(shipped_models()) == ["vg150-layout"]
    assert sum(path.stat().st_size for path in shipped_models()["vg150-layout"].iterdir()) < 6_000_000


def test_the_sample_scenes_make_sense(model):
    graph = open_dataset(sample_path())[0]
    found = predict(model, graph.boxes, graph.names, width=graph.width, height=graph.height, top=10)
    words = {triplet[:3] for triplet in found.triplets()}
    assert {("man", "wearing", "hat"), ("man", "riding", "horse"), ("horse", "on", "beach")} <= words
    assert np.allclose(found.pair_dist.sum(axis=1), 1, atol=1e-5)
    with pytest.raises(GraphError, match="'sky' is not among the model's 150 labels"):
        predict(model, [[0, 0, 1, 1]], ["sky"])


def test_the_order_of_boxes_does_not_matter(model, shared_data):
    graph = next(g for g in open_dataset(shared_data / "vg150_allboxes") if len(g) > 9)
    order = np.random.default_rng(0).permutation(len(graph))
    (a,), (b,) = (list(predict_graphs(model, [g])) for g in (graph.permute(order), graph))
    rows = {(s, o): k for k, (s, o) in enumerate(b.pairs.tolist())}
    moved = [rows[order[s], order[o]] for s, o in a.pairs.tolist()]
    assert np.abs(a.pair_dist - b.pair_dist[moved]).max() < 1e-5


def test_the_figures_of_the_card_come_out(model, shared_data):
    folder = shipped_models()["vg150-layout"]
    stored = json.loads((folder / "metrics.json").read_text())["vg150, all boxes"]
    data = open_dataset(shared_data / "vg150_allboxes")
    state = RecallState(Plan(Protocol("predcls"), data.vocabulary))
    figures = state.stream(zip(predict_dataset(model, data), data, strict=True)).result().figures
    for name in ("R@20", "R@50", "R@100", "ngR@50", "mR@50"):
        assert figures[name] == pytest.approx(stored["figures"][name], abs=2e-3), name
    row = re.search(r"^\| all boxes .*$", (folder / "README.md").read_text(), re.M)[0]
    printed = [float(cell.split()[0]) for cell in row.split("|")[3:8]]
    assert printed == [round(100 * stored["figures"][n], 1) for n in ("R@20", "R@50", "R@100", "ngR@50", "mR@50")]
