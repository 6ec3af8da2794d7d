"""What pixels and given labels mean together: one test for each row of the table, with photos that differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.model_cases import VOCABULARY, small, small_model
from scenegpi import PredictOptions, Predictor, SceneGraph
from scenegpi.models import PRESETS, build_model
from scenegpi.prediction import Item
from scenegpi.prediction.evidence import POWER, detector_dist
from vision.vision_cases import PACKAGED

BOXES = np.array([[0, 0, 50, 90], [20, 20, 120, 90], [5, 5, 60, 150]], dtype=float)
LABELS, SCORES = ["dog", "hat", "man"], [0.6, 0.4, 0.7]
PHOTOS = {
    "noise": np.random.default_rng(0).integers(0, 255, (160, 200, 3), dtype=np.uint8),
    "black": np.zeros((160, 200, 3), dtype=np.uint8),
}


@pytest.fixture(scope="module")
def predictor():
    torch.manual_seed(0)
    model = build_model(replace(small(PRESETS["gpi-feature-attention"]), vision=PACKAGED), VOCABULARY).eval()
    return Predictor(
        model, options=PredictOptions(min_relation=0.0, top=100, informative=0.0, tidy=False, distributions=True)
    )


def predictions(predictor, **given):
    """The same boxes with both photos, and without one."""
    graph = SceneGraph(BOXES, LABELS, VOCABULARY, width=200, height=160, **given)
    return {name: next(predictor.stream([Item(photo, graph)])) for name, photo in {**PHOTOS, "none": None}.items()}


def test_labels_without_scores_are_believed_and_the_photo_is_not_read(predictor):
    found = predictions(predictor)
    for each in found.values():
        assert each.graph.names == LABELS
        assert each.graph.scores is None
        assert not each.photo_read
        np.testing.assert_array_equal(each.graph.pair_dist, found["none"].graph.pair_dist)


def test_labels_with_scores_are_combined_with_the_pixels(predictor):
    found = predictions(predictor, scores=SCORES)
    assert found["noise"].photo_read
    assert found["black"].photo_read
    gap = np.abs(found["noise"].graph.pair_dist - found["black"].graph.pair_dist).max()
    assert gap > 1e-5  # small, as the weights are random; given labels make it exactly 0
    assert not np.allclose(found["noise"].graph.label_dist, found["black"].graph.label_dist, atol=1e-4)
    for name in PHOTOS:
        np.testing.assert_allclose(
            found[name].graph.scores, found[name].graph.label_dist.max(axis=1), atol=1e-6
        )  # a label is as sure as the model says, not as the detector said
    assert found["none"].graph.names == LABELS
    np.testing.assert_allclose(found["none"].graph.scores, SCORES)


def test_the_evidence_is_the_product(predictor):
    """Before the graph model corrects it, a label is distributed as pixels times detector."""
    graph = SceneGraph(BOXES, LABELS, VOCABULARY, scores=SCORES, width=200, height=160)
    prepared, task = predictor.prepare(Item(PHOTOS["noise"], graph))
    assert task == "sgcls"
    pixels = predictor.model.vision.label_dist(PHOTOS["noise"], graph).astype(np.float64)
    product = (pixels * detector_dist(graph)) ** POWER
    np.testing.assert_allclose(prepared.label_dist, product / product.sum(axis=1, keepdims=True), atol=1e-5)
    np.testing.assert_allclose(detector_dist(graph).sum(axis=1), 1)


def test_a_sure_detector_is_believed_and_an_unsure_one_is_not(predictor):
    sure, unsure = (
        predictor.prepare(Item(PHOTOS["noise"], SceneGraph(BOXES, LABELS, VOCABULARY, scores=[s] * 3)))[0]
        for s in (0.9999, 1 / len(VOCABULARY.objects))
    )
    assert sure.label_dist[np.arange(3), sure.labels].min() > 0.95
    alone = predictor.model.vision.label_dist(PHOTOS["noise"], unsure) ** POWER
    np.testing.assert_allclose(unsure.label_dist, alone / alone.sum(axis=1, keepdims=True), atol=1e-5)


def test_boxes_alone_are_named_by_the_pixels(predictor):
    graphs = {name: predictor(photo, BOXES) for name, photo in PHOTOS.items()}
    assert not np.allclose(graphs["noise"].label_dist, graphs["black"].label_dist, atol=1e-4)
    assert (graphs["noise"].width, graphs["noise"].height) == (200, 160)
    with pytest.raises(Exception, match="there is no photo"):
        predictor(boxes=BOXES)
    with pytest.raises(Exception, match="uses boxes and labels only"):
        Predictor(small_model("baseline"))(PHOTOS["noise"], BOXES)


def test_distributions_are_corrected_without_the_photo(predictor):
    dist = np.random.default_rng(0).dirichlet(np.ones(5), 3).astype(np.float32)
    found = predictions(predictor, label_dist=dist)
    for each in found.values():
        assert not each.photo_read
        np.testing.assert_array_equal(each.graph.label_dist, found["none"].graph.label_dist)


def test_scoring_says_which_labels_count(predictor):
    graph = SceneGraph(BOXES, LABELS, VOCABULARY, width=200, height=160)
    believed, found = (
        next(Predictor(predictor.model, options=PredictOptions.scoring(task)).stream([Item(PHOTOS["noise"], graph)]))
        for task in ("predcls", "sgcls")
    )
    assert believed.graph.names == LABELS
    assert not believed.photo_read
    assert found.photo_read
    same = predictor(PHOTOS["noise"], BOXES)
    np.testing.assert_allclose(found.graph.label_dist, same.label_dist, atol=1e-5)
