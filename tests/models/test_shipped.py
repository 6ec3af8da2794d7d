"""What ships does what its card says."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from PIL import Image

from models.model_cases import predict_graphs
from scenegpi import PredictOptions, Predictor, load_model, predict
from scenegpi.data import open_dataset, sample_path
from scenegpi.errors import GraphError
from scenegpi.metrics import Plan, Protocol, RecallState
from scenegpi.models.shipped import shipped_models


@pytest.fixture(scope="module")
def model():
    return load_model("vg150-layout")


def test_names_and_size():
    sizes = {name: sum(path.stat().st_size for path in folder.iterdir()) for name, folder in shipped_models().items()}
    assert sizes["vg150-layout"] < 5_000_000
    assert sizes["vrd-layout"] < 2_500_000
    assert sizes["vrd-photo"] < 4_000_000
    assert sizes["vg150-photo"] < 14_000_000
    assert sum(sizes.values()) < 22_000_000


@pytest.mark.parametrize("name", list(shipped_models()))
def test_the_python_of_a_card_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (480, 480), "gray").save("photo.jpg")
    (code,) = re.findall(r"^```python\n(.*?)^```", (shipped_models()[name] / "README.md").read_text(), re.M | re.S)
    exec(compile(code, name, "exec"), {})


def test_the_sample_scenes_make_sense(model):
    graph = open_dataset(sample_path())[0]
    size = {"width": graph.width, "height": graph.height}
    found = Predictor(model, options=PredictOptions(top=10, distributions=True))(
        boxes=graph.boxes, labels=graph.names, **size
    )
    words = {triplet[:3] for triplet in found.triplets()}
    assert {("man", "wearing", "hat"), ("man", "riding", "horse"), ("horse", "on", "beach")} <= words
    assert np.allclose(found.pair_dist.sum(axis=1), 1, atol=1e-5)
    with pytest.raises(GraphError, match="no label of the model matches 'zither'"):
        predict(boxes=[[0, 0, 1, 1]], labels=["zither"], model=model)


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
    figures = state.stream(zip(predict_graphs(model, data), data, strict=True)).result().figures
    for name in ("R@20", "R@50", "R@100", "ngR@50", "mR@50"):
        assert figures[name] == pytest.approx(stored["figures"][name], abs=2e-3), name
    row = re.search(r"^\| all boxes .*$", (folder / "README.md").read_text(), re.M)[0]
    printed = [float(cell.split()[0]) for cell in row.split("|")[3:8]]
    assert printed == [round(100 * stored["figures"][n], 1) for n in ("R@20", "R@50", "R@100", "ngR@50", "mR@50")]


def test_vrd_layout_does_what_its_card_says(shared_data):
    model = load_model("vrd-layout")
    boxes = [[120, 40, 260, 300], [60, 180, 400, 460]]
    found = predict(boxes=boxes, labels=["person", "horse"], width=480, height=480, model=model)
    assert found.triplets()[0][:3] in {("person", "on", "horse"), ("person", "ride", "horse")}
    folder = shipped_models()["vrd-layout"]
    stored = json.loads((folder / "metrics.json").read_text())["VRD test"]["figures"]
    data = open_dataset(shared_data / "vrd", "test")
    state = RecallState(Plan(Protocol("predcls", per_pair=(1, 70)), data.vocabulary))
    figures = state.stream(zip(predict_graphs(model, data), data, strict=True)).result().figures
    rows = {"R, graph constraint": "R@{}", "predicate detection, k = 1": "detection-R@{},k=1"}
    for row, name in (rows | {"predicate detection, k = 70": "detection-R@{},k=70"}).items():
        cells = re.search(rf"^\| {row} \|.*$", (folder / "README.md").read_text(), re.M)[0].split("|")[3:5]
        for k, cell in zip((50, 100), cells, strict=True):
            assert figures[name.format(k)] == pytest.approx(stored[name.format(k)], abs=2e-3)
            assert float(cell.split()[0]) == pytest.approx(100 * stored[name.format(k)], abs=0.051)


def test_vrd_photo_reads_photos(shared_data):
    """Forty images: no figure, but it shows that weights, the shared photo network and sizes fit together."""
    predictor, data = Predictor("vrd-photo"), open_dataset(shared_data / "vrd", "test")
    right = []
    for i in range(40):
        graph, photo = data[i], data.image_path(i)
        if photo is not None and len(graph):
            found = predictor(photo, graph.boxes, width=graph.width, height=graph.height)
            right.append(found.labels == graph.labels)
    assert np.concatenate(right).mean() > 0.5


def test_the_card_of_vrd_photo_says_what_was_stored():
    folder = shipped_models()["vrd-photo"]
    stored, card = json.loads((folder / "metrics.json").read_text()), (folder / "README.md").read_text()
    for row, value in {
        "labels, top-1": stored["label accuracy"]["top-1"],
        "SGCls R@50": stored["sgcls on VRD test photos"]["figures"]["R@50"],
        "PredCls R@50": stored["predcls on VRD test photos"]["figures"]["R@50"],
    }.items():
        cell = re.search(rf"^\| {row} \|.*$", card, re.M)[0].split("|")[2]
        assert float(cell.split()[0]) == round(100 * value, 1)
