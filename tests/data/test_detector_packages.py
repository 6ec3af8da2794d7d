"""Results of the detectors' own packages, not of look-alikes: what supervision and our own detectors give, predicted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scenegpi import GraphError, Predictor, SceneGraph
from scenegpi.data.coco_names import COCO_PLACES
from scenegpi.data.detector_results import NO_LABEL
from scenegpi.vision.detect import Detections

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # supervision says that it does without OpenCV
    sv = pytest.importorskip("supervision", reason="needs the package supervision")

BOXES = np.array([[262, 70, 372, 300], [170, 165, 470, 440], [10, 300, 60, 470]], np.float32)
CLASSES = np.array([0, 17, 16])
SCORES = np.array([0.9, 0.8, 0.7], np.float32)
NAMES = np.array(["person", "horse", "dog"])
SIZE: dict[str, Any] = {"width": 640, "height": 480}


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return Predictor("vg150-layout")


def detections(**changes: Any) -> Any:
    fields = {"xyxy": BOXES, "confidence": SCORES, "class_id": CLASSES, "data": {"class_name": NAMES}}
    return sv.Detections(**{**fields, **changes})


@st.composite
def any_detections(draw: st.DrawFn) -> Any:
    """supervision's record with any of its optional fields missing, and from no box on."""
    n = draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    corner = rng.uniform(0, 300, (n, 2))
    fields: dict[str, Any] = {"xyxy": np.hstack([corner, corner + rng.uniform(1, 300, (n, 2))])}
    if draw(st.booleans()):
        fields["confidence"] = rng.uniform(0, 1, n)
    if draw(st.booleans()):
        fields["class_id"] = rng.integers(0, 80, n)
    if draw(st.booleans()):
        fields["tracker_id"] = rng.permutation(n)
    if draw(st.booleans()):
        fields["mask"] = np.zeros((n, 4, 4), dtype=bool)
    if draw(st.booleans()):
        fields["data"] = {"class_name": np.array([f"thing {i % 3}" for i in range(n)], dtype=object)}
    return sv.Detections(**fields)


@given(any_detections())
def test_boxes_keep_their_order_whatever_is_missing(found):
    """So that tracker ids, masks and all else that a graph doesn't hold are found again by index."""
    graph = SceneGraph.from_detections(found, COCO_PLACES, **SIZE)
    assert np.allclose(graph.boxes, found.xyxy)
    assert (graph.scores is None) == (found.confidence is None or not len(found))
    assert graph.scores is None or np.allclose(graph.scores, found.confidence)
    if "class_name" in found.data:
        names = list(found.data["class_name"])
    elif found.class_id is not None:
        names = [COCO_PLACES[int(number)] for number in found.class_id]
    else:
        names = [NO_LABEL] * len(found)
    assert graph.names == names


def ours() -> Detections:
    return Detections(BOXES.astype(float), CLASSES, SCORES.astype(float), list(COCO_PLACES.values()), (640, 480))


@pytest.mark.parametrize(
    ("found", "how"),
    [
        pytest.param(detections(), SIZE, id="with class names"),
        pytest.param(detections(data={}), {"names": COCO_PLACES, **SIZE}, id="without class names"),
        pytest.param(detections(data={}), {"names": list(COCO_PLACES.values()), **SIZE}, id="a list of names"),
        pytest.param(detections(class_id=None), SIZE, id="without class numbers"),
        pytest.param(detections(tracker_id=np.array([7, 5, 3])), SIZE, id="with tracker ids"),
        pytest.param([detections()], SIZE, id="a batch of one"),
        pytest.param(ours(), {}, id="our own, which know the size"),
        pytest.param([ours()], {}, id="our own, a batch of one"),
    ],
)
def test_every_form_is_predicted_alike(predictor, found, how):
    graph = predictor(boxes=found, **how)
    plain = predictor(boxes=BOXES, labels=list(NAMES), scores=SCORES, **SIZE)
    assert_alike(graph, plain)
    assert (graph.width, graph.height) == (640, 480)


def assert_alike(graph: SceneGraph, other: SceneGraph) -> None:
    """The same objects and relations, and the same scores up to rounding: batches differ in their last bits."""
    assert graph.names == other.names
    assert len(graph.triplets()) > 0
    assert {triplet[:3]: triplet.score for triplet in graph.triplets()} == pytest.approx(
        {triplet[:3]: triplet.score for triplet in other.triplets()}, rel=1e-4
    )


def test_merged_and_chosen_detections(predictor):
    """What supervision's own operations give is taken as well."""
    merged = sv.Detections.merge([detections()[:1], detections()[1:]])
    chosen = merged[merged.confidence > 0.75]
    assert_alike(predictor(boxes=merged, **SIZE), predictor(boxes=detections(), **SIZE))
    assert len(predictor(boxes=chosen, **SIZE)) == 2


def test_nothing_found(predictor):
    none = Detections(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0), ["person"], (640, 480))
    for empty in (sv.Detections.empty(), detections()[:0], detections()[SCORES > 1], none):
        graph = SceneGraph.from_detections(empty, **SIZE)
        assert (len(graph), graph.width) == (0, 640)
        graph = predictor(boxes=empty, **SIZE)
        assert (len(graph), len(graph.triplets())) == (0, 0)


def test_numbers_alone_say_what_is_missing(predictor):
    with pytest.raises(GraphError, match=r"class numbers without names.*names=\[\.\.\.\]"):
        predictor(boxes=detections(data={}), **SIZE)


def test_results_of_two_images_are_streamed(predictor):
    torchvision = {"boxes": torch.tensor(BOXES), "labels": torch.tensor(CLASSES), "scores": torch.tensor(SCORES)}
    for one in (torchvision, detections(), ours()):
        results = [one, one]
        with pytest.raises(GraphError) as error:
            predictor(boxes=results, names=COCO_PLACES)
        assert str(error.value).startswith("results of 2 images; give those of one image, or stream them")
        assert "\n" not in str(error.value)
        graphs = [SceneGraph.from_detections(each, COCO_PLACES, **SIZE) for each in results]
        for prediction in predictor.stream(graphs):
            assert_alike(prediction.graph, predictor(boxes=ours()))
