"""A photo that is read once for many calls, options that belong to a call, and which boxes were kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from models.model_cases import VOCABULARY, random_graphs, small_model
from scenegpi import PredictOptions, Predictor, SceneGraph, Vocabulary
from scenegpi.prediction import Item
from scenegpi.vision.detect import Detections

ALL = PredictOptions(min_relation=0.0, top=10_000, informative=0.0, tidy=False, distributions=True)
BOXES = np.array([[20, 30, 200, 300], [150, 60, 380, 260], [10, 10, 90, 90]], dtype=float)


@pytest.fixture(scope="module")
def predictor():
    return Predictor("vg150-photo", options=ALL)


@pytest.fixture
def file(tmp_path):
    ramp = np.linspace(0, 255, 320)[:, None] * np.ones((1, 400))
    pixels = np.stack([ramp, ramp[::-1], np.random.default_rng(0).uniform(0, 255, ramp.shape)], 2).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    return tmp_path / "a.png"


@pytest.fixture
def counted(monkeypatch):
    """How often a file is opened, and how often the network reads a whole photo."""
    from scenegpi.data import photo_files
    from scenegpi.vision import photos
    from scenegpi.vision.network import PhotoNetwork

    count = {"opened": 0, "read": 0}
    opened, features = photo_files.opened_photo, PhotoNetwork.features

    def open_one(*arguments, **named):
        count["opened"] += 1
        return opened(*arguments, **named)

    def read(*arguments, **named):
        count["read"] += 1
        return features(*arguments, **named)

    monkeypatch.setattr(photos, "opened_photo", open_one)
    monkeypatch.setattr(photo_files, "opened_photo", open_one)
    monkeypatch.setattr(PhotoNetwork, "features", read)
    return count


def test_an_encoded_photo_is_opened_and_read_once_and_answers_as_its_file(predictor, file, counted):
    photo = predictor.encode(file)
    calls = [{}, {"boxes": BOXES}, {"boxes": BOXES + 3}, {"boxes": BOXES, "labels": ["man", "dog", "hat"]}, {}]
    encoded = [predictor(photo, **call) for call in calls]
    assert counted == {"opened": 1, "read": 1}
    for call, found in zip(calls, encoded, strict=True):
        plain = predictor(file, **call)
        assert (found.width, found.height, found.file) == (400, 320, "a.png")
        np.testing.assert_array_equal(found.labels, plain.labels)
        np.testing.assert_allclose(found.boxes, plain.boxes, atol=1e-4)
        np.testing.assert_allclose(found.pair_dist, plain.pair_dist, atol=1e-5)
    assert predictor.encode(photo) is photo


@pytest.mark.parametrize("boxes", [None, BOXES], ids=["found", "given"])
def test_a_file_is_opened_once(predictor, file, counted, boxes):
    predictor(file, boxes)
    assert counted == {"opened": 1, "read": 1}


def test_a_photo_that_is_only_drawn_is_not_unpacked(predictor, file, counted):
    predictor(file, BOXES, ["man", "dog", "hat"], width=400, height=320)
    assert counted == {"opened": 0, "read": 0}


def test_options_of_a_call_are_those_of_a_predictor_of_its_own():
    model, graph = small_model("gpi-feature-attention"), random_graphs((9,), dist=False)[0]
    predictor = Predictor(model, options=ALL)
    options = [PredictOptions(), ALL, replace(ALL, top=3), replace(ALL, informative=1.0), replace(ALL, labels="found")]
    items = [Item(graph=graph, options=each) for each in [*options, None]]
    for found, each in zip(predictor.stream(items), [*options, ALL], strict=True):
        assert found.graph == next(Predictor(model, options=each).stream([graph])).graph
    boxes = {"boxes": graph.boxes, "labels": graph.names, "width": graph.width, "height": graph.height}
    assert len(predictor(**boxes, top=2).relations) == 2
    assert len(predictor(**boxes, options=replace(ALL, top=4)).relations) == 4
    assert len(predictor(**boxes).relations) == 72
    with pytest.raises(TypeError, match="tops"):
        predictor(**boxes, tops=2)


def test_kept_are_the_rows_of_the_given_boxes():
    """Whatever reason left boxes out: the graph's boxes are the given ones at `kept`, and every other is counted."""
    words = Vocabulary(["dog", "accordion", "man", "hat"])
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 60, (40, 2))
    boxes = np.concatenate([low, low + rng.uniform(5, 30, (40, 2))], 1)
    graph = SceneGraph(boxes, rng.integers(0, 4, 40), words, scores=rng.uniform(0, 1, 40), width=100, height=100)
    options = replace(ALL, min_score=0.2, nms=0.3, max_boxes=15, similarity=2.0)
    (found,) = Predictor(small_model("baseline"), options=options).stream([graph])
    assert len(found.kept) == len(found.graph) == 15
    assert len(found.left_out) == 4
    assert sum(found.left_out.values()) == 25
    np.testing.assert_array_equal(found.graph.boxes, boxes[found.kept])
    assert found.graph.names == [graph.names[k] for k in found.kept]


def test_the_callers_own_object_comes_back():
    graphs, truth = random_graphs((3, 0, 4), dist=False), [object() for _ in range(4)]
    items = [*(Item(graph=graph, data=mine) for graph, mine in zip(graphs, truth, strict=False)), Item(data=truth[3])]
    found = list(Predictor(small_model("baseline")).stream(items))
    assert [each.item.data for each in found] == truth
    assert found[3].problem


def test_the_chance_that_there_is_something_is_passed_on(file):
    """A finder's `sure` times the model's P(label) is the score, whatever the finder's own P(label) was."""
    dist = np.random.default_rng(0).dirichlet(np.ones(len(VOCABULARY.objects)), 3).astype(np.float32)
    dist[0] = 0  # a label without any weight: nothing to divide by
    sure = np.array([0.9, 0.5, 0.25])

    class Finder:
        names = VOCABULARY.objects

        def detect(self, photo):
            label = dist.argmax(1)
            score = sure * dist.max(1)
            return Detections(BOXES, label, score, self.names, (400, 320), dist, sure)

    model = small_model("gpi-feature-attention")
    with torch.no_grad():
        graph = Predictor(model, Finder(), ALL)(file)
    np.testing.assert_allclose(graph.scores, sure * graph.label_dist.max(1), rtol=1e-5)
