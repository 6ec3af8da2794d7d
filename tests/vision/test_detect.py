"""Detectors: clean output, YOLOv4-tiny's arithmetic, packaged weights that are checked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scenegpi.boxes import box_iou
from scenegpi.data import DataError
from scenegpi.data.coco_names import COCO_PLACES
from scenegpi.data.detector_results import graph_of, is_detection
from scenegpi.vision import packaged
from scenegpi.vision.detect import DETECTORS, Detections, Detector, finished, load_detector
from scenegpi.vision.detectors import yolov4_tiny
from scenegpi.vision.detectors.yolov4_tiny import ANCHORS, Yolov4Tiny, decoded


def test_raw_candidates_are_cut_and_cleaned():
    boxes = np.array([[-5, -5, 20, 20], [3, 3, 3, 9], [np.nan, 0, 1, 1], [90, 90, 200, 200]])
    found = finished(
        boxes, np.array([0, 1, 2, 3]), np.array([0.2, 0.9, 0.9, 0.8]), tuple(COCO_PLACES.values()), (100, 95), 0.5
    )
    assert found.boxes.tolist() == [[90, 90, 100, 95], [0, 0, 20, 20]]
    assert found.labels.tolist() == [3, 0]
    graph = found.graph(file="x.jpg")
    assert graph.names == ["motorcycle", "person"]
    assert (graph.width, graph.height, graph.file) == (100, 95, "x.jpg")
    assert graph.scores.tolist() == [0.8, 0.2]


def test_detections_are_a_detector_result():
    """Whatever takes a detector's result takes ours, as `graph` gives it."""
    names = ("cat", "dog")
    found = finished(np.array([[1, 2, 30, 40.0]]), np.array([1]), np.array([0.7]), names, (60, 50), 0.5)
    assert is_detection(found)
    graph = graph_of(found, file="a.jpg", image_id=3)
    assert graph == found.graph(file="a.jpg", image_id=3)
    assert (graph.names, graph.width, graph.height) == (["dog"], 60, 50)
    assert graph.vocabulary.objects == names
    empty = finished(np.empty((0, 4)), np.empty(0, int), np.empty(0), names, (60, 50), 0.5)
    assert len(graph_of(empty)) == 0


def test_a_loaded_detector_is_passed_on():
    detector = Yolov4Tiny(size=32)
    assert load_detector(detector) is detector


def test_decoding_one_cell_by_hand():
    out = torch.zeros(1, 255, 2, 3)
    cells = out.view(3, 85, 2, 3)
    cells[1, :5, 1, 2] = torch.tensor([0.0, 2.0, 0.5, -0.5, 1.0])
    row = decoded(out, 32)[1 * 6 + 1 * 3 + 2]
    centre = [(2 + 1.05 * 0.5 - 0.025) * 32, (1 + 1.05 / (1 + np.exp(-2)) - 0.025) * 32]
    anchor = np.array(ANCHORS[32][1])
    assert np.allclose(row[:2], centre, rtol=1e-5)
    assert np.allclose(row[2:4], anchor * np.exp([0.5, -0.5]), rtol=1e-5)
    assert np.isclose(row[4], 1 / (1 + np.exp(-1)))
    assert np.allclose(row[5:], 0.5)


@pytest.mark.parametrize("shape", [(480, 640), (31, 700), (1, 1), (900, 60)])
def test_any_shape_of_photo(shape):
    torch.manual_seed(0)
    detector = Yolov4Tiny(size=64, floor=0.0)
    found = detector.detect(np.full((*shape, 3), 128, np.uint8))
    assert isinstance(detector, Detector)
    assert found.size == shape[::-1]
    assert np.isfinite(found.boxes).all()
    assert (found.boxes <= np.tile(found.size, 2)).all()


def test_weights_are_read_in_order_and_counted(tmp_path):
    """Shift, scale, mean, variance, kernel of the first convolution come first; a file of another length is refused."""
    network = yolov4_tiny.Network()
    layers = list(network._layers())
    count = sum(layer.weight.numel() + len(layer.weight) * (1 if plain else 4) for layer, plain in layers)
    assert count == 6_062_814
    numbers = np.ones(count, "<f4")
    numbers[:32] = 0.5  # shift
    numbers[64:96] = 3  # mean
    file = tmp_path / "w"
    file.write_bytes(b"\0" * 20 + numbers.tobytes())
    network.read(file)
    first, last = layers[0][0], layers[-1][0]
    assert torch.allclose(first.bias, torch.full((32,), 0.5 - 3 / (1 + 1e-5) ** 0.5))
    assert torch.allclose(first.weight, torch.tensor(1 / (1 + 1e-5) ** 0.5))
    assert torch.equal(last.weight, torch.ones_like(last.weight))
    file.write_bytes(b"\0" * 20 + numbers[:-1].tobytes())
    with pytest.raises(DataError, match="weights, expected 6,062,814"):
        network.read(file)


def test_unknown_and_missing_detectors_are_said(monkeypatch):
    with pytest.raises(DataError, match="no such detector; known: yolov4-tiny"):
        load_detector("best")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in DETECTORS:
        with pytest.raises(DataError, match=r"needs the package .*: pip install"):
            load_detector(name)


def test_another_weight_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "w").write_bytes(b"x")
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    with pytest.raises(DataError, match="not the expected file"):
        packaged.packaged_file("p", "w", "0" * 64, "p")
    with pytest.raises(DataError, match="cannot be read"):
        packaged.packaged_file("p", "nowhere", "0" * 64, "p")


@pytest.mark.shared
@pytest.mark.parametrize("name", DETECTORS)
def test_real_weights_find_real_things(name, shared_data):
    """On a few photos that people annotated: most persons are found."""
    from scenegpi.data import open_dataset
    from scenegpi.vision.photos import open_photo, photo_boxes

    try:
        detector = load_detector(name)
    except DataError as error:
        pytest.skip(str(error))
    dataset = open_dataset(shared_data / "vrd", split="test")
    pairs = [(graph, path) for graph in dataset[:60] if (path := dataset.photo_path(graph)) and "person" in graph.names]
    wanted = hit = 0
    for graph, path in pairs[:12]:
        photo = open_photo(path)
        found = detector.detect(photo)
        assert isinstance(found, Detections)
        persons = photo_boxes(graph, photo)[[label == "person" for label in graph.names]]
        theirs = found.boxes[[found.names[i] == "person" for i in found.labels]]
        wanted += len(persons)
        hit += int((box_iou(persons, theirs) >= 0.5).any(axis=1).sum()) if len(theirs) else 0
    assert hit / wanted > 0.4
