"""The model of rendered scenes that ships: it labels scenes it has never seen, and its card says what was measured."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from scenegpi import PredictOptions, Predictor, load_model
from scenegpi.models.shipped import shipped_models
from scenegpi.rendered import render_scene, rendered_vocabulary


@pytest.fixture(scope="module")
def model():
    return load_model("rendered")


def test_vocabulary_and_size(model):
    assert model.vocabulary == rendered_vocabulary()
    assert sum(path.stat().st_size for path in shipped_models()["rendered"].iterdir()) < 3_500_000


def test_pixels_and_boxes_in_labels_and_relations_out(model):
    """Scenes of another seed than that of the training."""
    predictor = Predictor(model, options=PredictOptions(top=50, min_relation=0.0))
    right, alone, found, wanted = [], [], 0, 0
    for k in range(16):
        image, graph = render_scene(99, k)
        answer = predictor(image, graph.boxes)
        right.append(answer.labels == graph.labels)
        alone.append(model.vision.label_dist(image, graph).argmax(axis=1) == graph.labels)
        told = {t[:3] + t[4:] for t in answer.triplets()}
        found += sum(t[:3] + t[4:] in told for t in graph.triplets())
        wanted += len(graph.relations)
    assert np.concatenate(right).mean() > 0.72
    assert np.concatenate(right).mean() > np.concatenate(alone).mean()  # context corrects what the box alone says
    assert found / wanted > 0.4


def test_the_card_says_what_was_stored():
    folder = shipped_models()["rendered"]
    stored, card = json.loads((folder / "metrics.json").read_text()), (folder / "README.md").read_text()
    for task, name in (("sgcls", "SGCls"), ("predcls", "PredCls")):
        value = stored[f"test, {task}"]["figures"]["R@50"]
        cell = re.search(rf"^\| {name} R@50 \|.*$", card, re.M)[0].split("|")[2]
        assert float(cell.split()[0]) == round(100 * value, 1)
