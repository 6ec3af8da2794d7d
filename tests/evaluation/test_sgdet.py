"""SGDet: a model is scored on boxes that are found in the photos, by the one path that predicts."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from models.model_cases import small_model
from scenegpi import PredictOptions, Predictor, SceneGraph
from scenegpi.cli import app
from scenegpi.data import open_dataset, write_jsonl
from scenegpi.errors import DataError
from scenegpi.evaluation import evaluate_model
from scenegpi.evaluation.evaluate import every_candidate, found_pairs
from scenegpi.metrics import Protocol
from scenegpi.models import load_model
from scenegpi.vision.combine import Combined
from scenegpi.vision.detect import finished
from scenegpi.vision.find import Finder as ShippedFinder

SIZES = [(120, 90), (60, 90), (90, 90)]
BOXES = np.array([[0, 0, 30, 40], [20, 30, 60, 60], [5, 40, 45, 88]], dtype=float)
LABELS = np.array([0, 1, 3])


class Finder:
    """Always the same boxes, in shares of the photo."""

    def __init__(self, names):
        self.names = names

    def detect(self, photo):
        height, width = photo.shape[:2]
        scale = np.array([width, height] * 2) / 100
        return finished(BOXES * scale, LABELS, np.array([0.9, 0.8, 0.7]), self.names, (width, height), 0.9)


@pytest.fixture(scope="module")
def model():
    return small_model("gpi-feature-attention")


@pytest.fixture
def data(tmp_path, model):
    """Photos of three sizes; the annotations refer to images of 200 x 200 and hold what the model says."""
    (tmp_path / "photos").mkdir()
    predictor = Predictor(model, options=PredictOptions.scoring("sgcls"))
    graphs = []
    for k, size in enumerate(SIZES):
        Image.new("RGB", size, (40 * k, 90, 120)).save(tmp_path / "photos" / f"{k}.png")
        found = SceneGraph(BOXES * 2, LABELS, model.vocabulary, scores=[0.9, 0.8, 0.7])
        found = found.replace(width=200, height=200, image_id=k, file=f"{k}.png")
        (said,) = (each.graph for each in predictor.stream([found]))
        bare = said.replace(pairs=None, pair_dist=None, label_dist=None, scores=None, relation_scores=None)
        order = np.argsort(-said.pair_dist[:, 1:].max(axis=1))[:2]
        best = said.pair_dist[order, 1:].argmax(axis=1)
        graphs.append(bare.replace(relations=np.column_stack([said.pairs[order], best])))
    write_jsonl(tmp_path / "truth.jsonl", graphs)
    return tmp_path


def test_boxes_are_found_in_the_photos_and_scaled_to_the_annotations(model, data):
    truth = open_dataset(data / "truth.jsonl", images=data / "photos")
    predictor = Predictor(model, Finder(model.vocabulary.objects), PredictOptions.scoring("sgdet"))
    for k, (found, target) in enumerate(found_pairs(predictor, truth)):
        assert target.image_id == k
        assert (found.width, found.height) == (200, 200)
        np.testing.assert_allclose(found.boxes, BOXES * 2)
    assert k == 2


def test_a_perfect_finder_scores_as_the_boxes_themselves(model, data):
    finder = Finder(model.vocabulary.objects)
    how = {"data": data / "truth.jsonl", "bootstrap": 0}
    result = evaluate_model(model, Protocol("sgdet"), photos=data / "photos", finder=finder, **how)
    assert result.figures["R@100"] == 1
    assert result.images == 3
    finder.names = finder.names[::-1]  # other labels: boxes without the right label do not count
    assert evaluate_model(model, Protocol("sgdet"), photos=data / "photos", finder=finder, **how).figures["R@100"] < 1


def test_without_photos_it_is_refused_in_one_line(model, data):
    with pytest.raises(DataError, match="image 0: no photo; sgdet needs the photos") as told:
        evaluate_model(model, Protocol("sgdet"), data=data / "truth.jsonl")
    assert "\n" not in str(told.value)


def test_the_command_scores_the_shipped_photo_model(data):
    names = ["man", "horse"]
    graph = SceneGraph([[5, 5, 50, 80], [20, 30, 90, 85]], names, Predictor("vg150-photo").model.vocabulary)
    graph = graph.replace(width=120, height=90, file="0.png", relations=[[0, 1, 0]])
    write_jsonl(data / "vg.jsonl", [graph])
    call = ["eval", "--model", "vg150-photo", "--task", "sgdet", "--data", str(data / "vg.jsonl"), "--bootstrap", "0"]
    done = CliRunner().invoke(app, [*call, "--photos", str(data / "photos"), "--json", str(data / "figures.json")])
    assert done.exit_code == 0, done.output
    assert json.loads((data / "figures.json").read_text())["protocol"]["task"] == "sgdet"
    assert "SGDet" in done.output
    again = CliRunner().invoke(app, [*call, "--photos", str(data / "photos"), "--detector", "nobody"])
    assert isinstance(again.exception, DataError)  # it is what finds the boxes
    given = CliRunner().invoke(app, [*call, "--task", "predcls", "--detector", "finder"])
    assert (given.exit_code, "--detector needs --task sgdet" in given.output) == (2, True)


def test_two_detectors_together_are_scored_without_their_floors():
    model = load_model("vg150-photo").labels_only()
    both = Combined(ShippedFinder(model.vision), Finder(model.vocabulary.objects))
    every = every_candidate(both)
    assert (every.config.named_floor, both.config.named_floor) == (0, model.vision.config.finder.named_floor)
