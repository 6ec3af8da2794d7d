"""Detectors' results in Python: every form gives the same graph, and a wrong field is named."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from scenegpi import GraphError, SceneGraph, Vocabulary
from scenegpi.data.coco_names import COCO_IDS, COCO_PLACES
from scenegpi.data.detector_results import NO_LABEL, graph_of, is_detection

BOXES = np.array([[10, 20, 110, 220], [30, 5, 60, 40]], np.float32)
SCORES = np.array([0.9, 0.5], np.float32)
NAMES = {0: "person", 1: "hat"}


def supervision(**changes):
    """As supervision's Detections: arrays, and names in a dictionary."""
    fields = {"xyxy": BOXES, "mask": None, "confidence": SCORES, "class_id": np.array([0, 1]), "tracker_id": None}
    return SimpleNamespace(**{**fields, "data": {"class_name": np.array(["person", "hat"])}, "metadata": {}, **changes})


class Tensor:
    """As a torch tensor on another device: `detach`, `cpu`, `numpy`."""

    def __init__(self, values):
        self.values, self.dtype = np.asarray(values), "torch.float32"

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.values


def ultralytics(**changes):
    boxes = SimpleNamespace(xyxy=Tensor(BOXES), cls=Tensor([0.0, 1.0]), conf=Tensor(SCORES))
    fields = {"boxes": boxes, "names": NAMES, "orig_shape": (480, 640), "path": "/somewhere/photo.jpg"}
    return SimpleNamespace(**{**fields, **changes})


def detectron():
    boxes = SimpleNamespace(tensor=Tensor(BOXES))
    inner = SimpleNamespace(pred_boxes=boxes, pred_classes=Tensor([0, 1]), scores=Tensor(SCORES), image_size=(480, 640))
    return {"instances": inner}


FORMS = {
    "supervision": (supervision(), None),
    "supervision without names": (supervision(data={}), NAMES),
    "supervision before it had data": (supervision(data=None), NAMES),
    "ultralytics": (ultralytics(), None),
    "ultralytics, its boxes": (ultralytics().boxes, NAMES),
    "ultralytics, a batch of one": ([ultralytics()], None),
    "torchvision": ({"boxes": Tensor(BOXES), "labels": Tensor([0, 1]), "scores": Tensor(SCORES)}, ["person", "hat"]),
    "torchvision, a batch of one": ([{"boxes": Tensor(BOXES), "labels": Tensor([0, 1]), "scores": SCORES}], NAMES),
    "dict with names": ({"boxes": BOXES, "labels": ["person", "hat"], "scores": SCORES}, None),
    "Detectron2": (detectron(), NAMES),
    "array": (np.column_stack([BOXES, SCORES, [0, 1]]), NAMES),
    "dicts": (
        [
            {"box": [10, 20, 110, 220], "label": "person", "score": np.float32(0.9)},
            {"bbox": [30, 5, 30, 35], "label": "hat", "score": 0.5},
        ],
        None,
    ),
    "transformers": (
        [
            {"box": {"xmin": 10, "ymin": 20, "xmax": 110, "ymax": 220}, "label": "person", "score": np.float32(0.9)},
            {"box": {"xmin": 30, "ymin": 5, "xmax": 60, "ymax": 40}, "label": "hat", "score": 0.5},
        ],
        None,
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_graph(form):
    objects, names = FORMS[form]
    graph = graph_of(objects, names, width=640, height=480)
    assert graph.names == ["person", "hat"]
    assert np.array_equal(graph.boxes, BOXES)
    assert np.allclose(graph.scores, SCORES)
    assert (graph.width, graph.height) == (640, 480)
    assert is_detection(objects) == (form != "array")


def test_the_size_and_the_file_come_along():
    graph = graph_of(ultralytics())
    assert (graph.width, graph.height, graph.file) == (640, 480, "photo.jpg")


def test_a_size_may_be_an_array():
    graph = graph_of(ultralytics(orig_shape=np.array([480, 640])))
    assert (graph.width, graph.height) == (640, 480)
    with pytest.raises(GraphError, match="ultralytics Results: too many values"):
        graph_of(ultralytics(orig_shape=(480, 640, 3)))


def test_a_dict_with_more_keys_is_read_by_those_that_are_known():
    target = {"boxes": BOXES, "labels": ["person", "hat"], "size": np.array([480, 640]), "image_id": 7}
    graph = graph_of(target)
    assert (graph.names, graph.width) == (["person", "hat"], None)


def test_a_graph_stays_itself():
    graph = SceneGraph(BOXES, [0, 1], Vocabulary(["a", "b"]))
    assert graph_of(graph) is graph


def test_boxes_alone_have_no_label():
    graph = graph_of(BOXES)
    assert graph.names == [NO_LABEL] * 2
    assert graph.scores is None
    assert graph_of(BOXES, labels=["man", "hat"]).names == ["man", "hat"]
    assert len(graph_of([])) == 0
    assert len(graph_of(supervision(xyxy=np.empty((0, 4)), class_id=None, confidence=None, data={}))) == 0


def test_numbers_without_names_are_called_by_number():
    assert graph_of(supervision(data={})).names == ["class 0", "class 1"]


def test_a_list_of_names_with_gaps():
    """torchvision's list of categories says N/A where a number is not used."""
    names = ["__background__", "person", "N/A", "N/A", "hat"]
    objects = {"boxes": BOXES, "labels": [1, 4], "scores": SCORES}
    assert graph_of(objects, names).names == ["person", "hat"]


def test_coco_numbers():
    assert len(COCO_IDS) == len(COCO_PLACES) == 80
    assert (COCO_IDS[1], COCO_IDS[13], COCO_IDS[90]) == ("person", "stop sign", "toothbrush")
    assert (COCO_PLACES[0], COCO_PLACES[11], COCO_PLACES[79]) == ("person", "stop sign", "toothbrush")
    assert 12 not in COCO_IDS


@pytest.mark.parametrize(
    ("objects", "names", "message"),
    [
        (np.zeros((2, 3)), None, r"boxes: a ndarray of shape \(2, 3\); expected \(N, 4\)"),
        ("photo.jpg", None, "boxes: expected numbers"),
        (None, None, "boxes: "),
        (
            supervision(xyxy=BOXES[:, :3]),
            None,
            r"supervision Detections: boxes: expected shape \(n, 4\), found \(2, 3\)",
        ),
        (
            supervision(class_id=np.array([0]), data={}),
            None,
            r"supervision Detections: classes: expected shape \(2\), found \(1,\)",
        ),
        (
            supervision(confidence=np.array([0.5])),
            None,
            r"supervision Detections: scores: expected shape \(2\), found \(1,\)",
        ),
        (supervision(data={"class_name": np.array(["a"])}), None, "supervision Detections: 1 labels for 2 boxes"),
        (supervision(data={"class_name": np.array(["a", ""])}), None, "non-empty string"),
        (ultralytics(names={0: "person"}), None, "ultralytics Results: class 1 has no name among the 1 given"),
        ([ultralytics(), ultralytics()], None, "results of 2 images; give those of one image, or stream them"),
        ([{"boxes": BOXES}, {"boxes": BOXES}], None, "results of 2 images; give those of one image, or stream them"),
        ([detectron(), detectron()], None, "results of 2 images; give those of one image, or stream them"),
        ({"boxes": BOXES, "labels": [0.5, 1.0]}, None, "classes: expected whole numbers"),
        ({"boxes": BOXES, "labels": [0, 1]}, {"a": "b"}, "names: expected a list, or number -> name"),
        ([{"label": "a"}], None, r"objects\[0\]: has neither box"),
        ([{"box": [1, 2], "label": "a"}], None, r"objects\[0\].box: expected four numbers"),
        ([{"box": [0, 0, 1, 1], "label": "a"}, {"box": [0, 0, 1, 1]}], None, r"objects\[1\].label: missing"),
        ([{"box": [0, 0, 1, 1], "score": 1}, {"box": [0, 0, 1, 1]}], None, r"objects\[1\].score: missing"),
        ([{"box": [0, 0, 1, 1]}, 3], None, r"objects\[1\]: expected a dict"),
        (supervision(xyxy=np.array([[0, 0, -1, 1], [0, 0, 1, 1]])), None, r"boxes\[0\]: .* has x2 < x1"),
        (supervision(xyxy=np.full((2, 4), np.nan)), None, "not finite"),
    ],
)
def test_a_wrong_field_is_named(objects, names, message):
    with pytest.raises(GraphError, match=message):
        graph_of(objects, names)


def test_real_supervision():
    sv = pytest.importorskip("supervision")
    found = sv.Detections(xyxy=BOXES, confidence=SCORES, class_id=np.array([0, 1]))
    assert graph_of(found, NAMES).names == ["person", "hat"]
    found.data["class_name"] = np.array(["person", "hat"])
    assert graph_of(found).names == ["person", "hat"]
    assert len(graph_of(sv.Detections.empty())) == 0


def test_real_tensors():
    torch = pytest.importorskip("torch")
    found = {"boxes": torch.tensor(BOXES), "labels": torch.tensor([1, 27]), "scores": torch.tensor(SCORES)}
    graph = graph_of(found, COCO_IDS)
    assert graph.names == ["person", "backpack"]
    assert graph.vocabulary.objects == tuple(COCO_PLACES.values())
