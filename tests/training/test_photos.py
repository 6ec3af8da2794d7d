"""From photos to a model: the vision stage, the graph stage, resuming, broken photos, and images without any."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from scenegpi.data import open_dataset, write_jsonl
from scenegpi.errors import DataError, GraphError
from scenegpi.graph import SceneGraph
from scenegpi.models import load_model, predict_dataset
from scenegpi.models.predict import predict
from scenegpi.training.config import train_config
from scenegpi.training.run import train
from scenegpi.vocabulary import Vocabulary

COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (40, 60, 220)}
VOCABULARY = Vocabulary(list(COLOURS), ["left of", "on"], "colours")


def coloured_scene(rng: np.random.Generator, name: str) -> tuple[Image.Image, SceneGraph]:
    """Coloured squares on grey; the label of a box is its colour."""
    pixels = rng.integers(100, 140, (96, 128, 3)).astype(np.uint8)
    n = int(rng.integers(2, 5))
    left, top = rng.integers(0, 90, n), rng.integers(0, 60, n)
    labels = rng.integers(0, 3, n)
    boxes = np.stack([left, top, left + 30, top + 30], 1)
    for (x1, y1, x2, y2), label in zip(boxes, labels, strict=True):
        pixels[y1:y2, x1:x2] = COLOURS[VOCABULARY.objects[label]]
    relations = [[i, j, 0] for i in range(n) for j in range(n) if left[i] < left[j] - 5] or [[0, 1, 1]]
    return Image.fromarray(pixels), SceneGraph(
        boxes, labels, VOCABULARY, relations, width=128, height=96, file=name, image_id=name
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    (folder / "images").mkdir()
    rng, graphs = np.random.default_rng(0), []
    for k in range(36):
        photo, graph = coloured_scene(rng, f"{k}.png")
        graphs.append(graph)
        if k < 30:  # six images have no photo
            photo.save(folder / "images" / graph.file)
    (folder / "images" / "29.png").write_bytes(b"no photo")
    write_jsonl(folder / "data.jsonl", graphs)
    return folder


def config(data, stage, **changes):
    values = {
        "stage": stage,
        "data": {"path": str(data / "data.jsonl"), "photos": str(data / "images"), "validation": 4},
        "model": {
            "vision": {"looks": {"backbone": "small", "nodes": "crop", "crop_size": 32, "photo_size": 64, "mask_size": 2}, "head": {"hidden": 16}},
            "baseline": {"hidden": 16, "embedding": 8, "rank": 4, "look_hidden": 4},
            "context": {"hidden": 12, "phi": 10, "alpha": 9},
        },
        "fit": {"epochs": 10, "folds": 2, "rate": 0.01, "batch": 16},
        "optim": {"epochs": 2, "first_epochs": 1, "batch": 6, "warmup": 1},
    }  # fmt: skip
    return replace(train_config(values), **changes)


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "both"
    train(config(data, "both"), folder)
    return folder


def test_one_command_does_both_stages_and_the_model_reads_photos(run, data, capsys):
    model = load_model(run / "model")
    assert model.vision is not None
    assert model.config.baseline.looks == model.vision.pair_width
    dataset = open_dataset(data / "data.jsonl", images=data / "images")[:29]
    found = list(predict_dataset(model, dataset, "sgcls"))
    right = sum(int((a.labels == b.labels).sum()) for a, b in zip(found, dataset, strict=True))
    assert right > 0.6 * sum(map(len, dataset))
    figures = json.loads((run / "vision" / "figures.json").read_text())
    assert figures["photos"] == 25  # 30, less the broken one, less four that validate
    assert "label predictor" in (run / "model" / "README.md").read_text()


def test_a_photo_by_itself(run, data):
    model = load_model(run / "model")
    graph = open_dataset(data / "data.jsonl")[2]
    photo = Image.open(data / "images" / "2.png")
    for image in (data / "images" / "2.png", photo, np.asarray(photo)):
        found = predict(model, graph.boxes, image=image)
        assert (found.width, found.height) == (128, 96)
        assert np.allclose(found.label_dist, predict(model, graph.boxes, image=photo).label_dist)
    given = predict(model, graph.boxes, graph.names, image=photo)
    assert given.names == graph.names
    blind = predict(model, graph.boxes, graph.names, width=128, height=96)
    assert not np.allclose(blind.pair_dist, given.pair_dist)
    boxes_alone = predict(model, {"boxes": graph.boxes}, image=photo)
    assert np.array_equal(boxes_alone.label_dist, predict(model, graph.boxes, image=photo).label_dist)
    for boxes in (graph.boxes, {"boxes": graph.boxes}):
        with pytest.raises(GraphError, match="or the image"):
            predict(model, boxes)
    with pytest.raises(GraphError, match="sees no pixels"):
        predict(load_model("vg150-layout"), graph.boxes, image=photo)


def test_labels_from_photos_need_photos(run, data):
    dataset = open_dataset(data / "data.jsonl", images=data / "images")
    with pytest.raises(GraphError, match=r"image '31.png': no photo"):
        list(predict_dataset(load_model(run / "model"), dataset[31:32], "sgcls"))
    assert len(list(predict_dataset(load_model(run / "model"), dataset[31:32], "predcls"))) == 1


def test_stage_by_stage_is_both_at_once(run, data, tmp_path, capsys):
    assert train(config(data, "vision"), tmp_path / "run") == tmp_path / "run" / "vision"
    assert "label predictor, on boxes it was not trained on" in capsys.readouterr().out
    with pytest.raises(DataError, match="exists already"):
        train(config(data, "vision"), tmp_path / "run")
    train(config(data, "graph"), tmp_path / "run")
    one, two = load_model(run / "model").state_dict(), load_model(tmp_path / "run" / "model").state_dict()
    assert one.keys() == two.keys()
    assert all(one[name].equal(two[name]) for name in one)


def test_graphs_need_the_vision_stage(data, tmp_path):
    with pytest.raises(DataError, match="vision"):
        train(config(data, "graph"), tmp_path / "run")


def test_no_photos_at_all(data, tmp_path):
    empty = replace(config(data, "both"), data=replace(config(data, "both").data, photos=str(tmp_path)))
    with pytest.raises(DataError, match="photos of 0 training images"):
        train(empty, tmp_path / "run")
