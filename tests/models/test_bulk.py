"""Many images through one engine: order, problems of one image alone, labels found in pixels, detectors' results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from models.model_cases import VOCABULARY, random_graphs, small, small_model
from scenegpi import SceneGraph, Vocabulary, predict
from scenegpi.data.detector_results import NO_LABEL, graph_of
from scenegpi.errors import GraphError
from scenegpi.models import PRESETS, build_model, predict_graphs
from scenegpi.models.bulk import Choices, Engine, Item, photo_size, predict_many
from scenegpi.models.choose import default_model, model_vocabulary
from scenegpi.vision.config import SMALL
from scenegpi.vision.detect import finished

ALL = Choices(min_relation=0.0, top=10_000, distributions=True)


@pytest.fixture(scope="module")
def model():
    return small_model("gpi-feature-attention")


@pytest.fixture(scope="module")
def seeing():
    """A model with eyes of random weights."""
    torch.manual_seed(0)
    config = small(PRESETS["gpi-feature-attention"])
    eyes = build_model(replace(config, vision=SMALL), VOCABULARY).vision
    looks = replace(config.baseline, looks=eyes.pair_width)
    return build_model(replace(config, baseline=looks, vision=SMALL), VOCABULARY).eval()


@pytest.fixture
def photo(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 255, (160, 200, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    return tmp_path / "a.png"


def test_the_answers_are_those_of_predict_graphs(model):
    graphs = [
        graph.replace(relations=(), pairs=None, pair_dist=None, label_dist=None)
        for graph in random_graphs((4, 0, 7, 1))
    ]
    wanted = list(predict_graphs(model, graphs, top=10_000))
    found = [
        outcome.graph for outcome in Engine(model, choices=ALL).run(Item(str(i), graph=g) for i, g in enumerate(graphs))
    ]
    for a, b in zip(wanted, found, strict=True):
        assert np.allclose(a.pair_dist, b.pair_dist, atol=1e-6)
        assert {tuple(row) for row in a.relations.tolist()} == {tuple(row) for row in b.relations.tolist()}


def test_relations_that_are_there_are_not_looked_at(model):
    graph = random_graphs((6,), dist=False)[0]
    with_truth, without = (
        next(Engine(model, choices=ALL).run([Item("a", graph=g)])).graph for g in (graph, graph.replace(relations=()))
    )
    assert np.array_equal(with_truth.pair_dist, without.pair_dist)


def test_a_problem_is_of_its_image_alone(model, tmp_path):
    good = random_graphs((3, 4), dist=False)
    (tmp_path / "broken.jpg").write_bytes(b"x" * 100)
    items = [
        Item("first", graph=good[0]),
        Item("nothing"),
        Item("unlabelled", graph=graph_of(np.array([[0, 0, 5, 5]]))),
        Item("broken", photo=tmp_path / "broken.jpg"),
        Item("undetected", photo=tmp_path / "nowhere.jpg"),
        Item("last", graph=good[1]),
    ]
    outcomes = list(Engine(model).run(items))
    assert [outcome.item.key for outcome in outcomes] == [item.key for item in items]
    assert [outcome.graph is not None for outcome in outcomes] == [True, False, False, False, False, True]
    problems = [outcome.problem for outcome in outcomes if outcome.problem]
    for problem, part in zip(
        problems,
        ("neither boxes", "no labels, and this model sees no pixels", "broken.jpg", "nowhere.jpg"),
        strict=True,
    ):
        assert part in problem
        assert "\n" not in problem


def test_boxes_without_labels_are_named_by_pixels(seeing, photo):
    boxes = graph_of(np.array([[0, 0, 50, 50], [20, 20, 120, 90], [5, 5, 60, 150]]))
    assert boxes.names == [NO_LABEL] * 3
    (outcome,) = Engine(seeing, choices=ALL).run([Item("a", photo, boxes)])
    assert outcome.problem == ""
    alone = predict(seeing, boxes.boxes, image=photo, top=10_000)
    assert outcome.graph.names == alone.names
    assert np.allclose(outcome.graph.label_dist, alone.label_dist, atol=1e-5)
    assert (outcome.graph.width, outcome.graph.height, outcome.graph.file) == (200, 160, "a.png")
    (blind,) = Engine(seeing).run([Item("a", None, boxes)])
    assert "there is no photo" in blind.problem


def test_given_labels_are_kept_or_refined(seeing, photo):
    graph = SceneGraph(
        [[0, 0, 50, 50], [20, 20, 120, 90]], ["dog", "hat"], VOCABULARY, scores=[0.6, 0.4], width=200, height=160
    )
    (kept,) = Engine(seeing, choices=ALL).run([Item("a", photo, graph)])
    assert kept.graph.names == graph.names
    assert kept.graph.scores.tolist() == [0.6, 0.4]
    (refined,) = Engine(seeing, choices=replace(ALL, refine_labels=True)).run([Item("a", photo, graph)])
    assert np.allclose(refined.graph.scores, refined.graph.label_dist.max(axis=1))


class Finder:
    """A detector that knows one dog and one cloud."""

    names = ("dog", "cloud")

    def detect(self, photo):
        boxes = np.array([[0, 0, 50, 50], [10, 10, 100, 100]])
        return finished(boxes, np.array([0, 1]), np.array([0.9, 0.8]), self.names, photo.shape[1::-1], 0.5)


def test_a_detector_of_ones_own(model, photo):
    (outcome,) = Engine(model, Finder(), replace(ALL, similarity=2.0)).run([Item("a", photo)])
    assert outcome.graph.names == ["dog"]
    assert outcome.names == {"dog": 1, "cloud": 1}
    assert outcome.left_out["label has no like"] == 1
    assert outcome.graph.width == 200
    assert len(list(predict_many(model, [None], [photo], detector=Finder()))) == 1


def test_many_results_in_python(model):
    results = [{"boxes": [[0, 0, 5, 5], [1, 1, 9, 9]], "labels": [0, 1], "scores": [0.5, 0.6]}] * 3
    outcomes = list(predict_many(model, results, names=["dog", "man"], choices=ALL))
    assert [outcome.graph.names for outcome in outcomes] == [["dog", "man"]] * 3
    with pytest.raises(GraphError, match="photos: 1 for 3 images"):
        predict_many(model, results, ["a.jpg"])


def test_predict_takes_a_detectors_result(model, caplog):
    found = {"boxes": [[0, 0, 50, 50], [1, 1, 90, 90], [2, 2, 9, 9]], "labels": [0, 1, 2], "scores": [0.5, 0.6, 0.7]}
    graph = predict(model, found, names=["puppy", "people", "accordion"], width=200, height=160)
    assert graph.names == ["dog", "man"] or graph.names == ["dog"]
    assert "accordion" in caplog.text
    assert graph.scores.tolist()[0] == 0.5


def test_a_photo_is_measured_as_it_is_seen(tmp_path):
    image = Image.new("RGB", (30, 20))
    exif = image.getexif()
    exif[0x0112] = 6
    image.save(tmp_path / "turned.jpg", exif=exif)
    assert photo_size(tmp_path / "turned.jpg") == (20, 30)


def test_the_model_that_suits():
    words = model_vocabulary("vg150-layout")
    assert default_model(False, words)[0] == "vg150-layout"
    assert default_model(True, words)[0] == "vg150-layout"
    name, why = default_model(False, Vocabulary(["man", "zither"]))
    assert name == "vg150-layout"
    assert "1 of the 2 labels" in why
    with pytest.raises(Exception, match="boxes without labels need a photo"):
        default_model(False, Vocabulary([NO_LABEL]))
