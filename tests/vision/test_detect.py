"""Detectors: suppression against brute force, YOLOv4-tiny's arithmetic, packaged weights that are checked."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scenegpi.boxes import box_iou
from scenegpi.data import DataError
from scenegpi.data.coco_names import COCO_PLACES
from scenegpi.vision.detect import DETECTORS, Detections, Detector, finished, load_detector, suppress
from scenegpi.vision.detectors import packaged, yolov4_tiny
from scenegpi.vision.detectors.yolov4_tiny import ANCHORS, Yolov4Tiny, decoded


def random_boxes(rng, n, scale=100.0):
    corners = rng.uniform(0, scale, (n, 2, 2))
    return np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.floats(0.05, 0.95))
def test_suppression_is_that_of_the_definition(seed, n, iou):
    """What stays overlaps no better one that stays; what goes does."""
    rng = np.random.default_rng(seed)
    boxes, scores, groups = random_boxes(rng, n), rng.uniform(size=n).round(1), rng.integers(0, 3, n)
    kept = suppress(boxes, scores, groups, iou).tolist()
    overlap = box_iou(boxes, boxes) if n else np.zeros((0, 0))
    better = {
        i: [j for j in range(n) if (-scores[j], j) < (-scores[i], i) and groups[i] == groups[j]] for i in range(n)
    }
    for i in range(n):
        beaten = any(overlap[i, j] > iou for j in better[i] if j in kept)
        assert (i in kept) == (not beaten)
    assert [(-scores[i], i) for i in kept] == sorted((-scores[i], i) for i in kept)


def test_suppression_without_scores_keeps_the_first():
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 10.5], [50, 50, 60, 60]], float)
    assert suppress(boxes, None, np.zeros(3, int), 0.5).tolist() == [0, 2]
    assert suppress(boxes, None, np.array([0, 1, 0]), 0.5).tolist() == [0, 1, 2]


def test_suppression_is_bounded():
    boxes = np.tile([0.0, 0, 1, 1], (20_000, 1)) + np.arange(20_000)[:, None] * 3
    assert len(suppress(boxes, None, np.zeros(20_000, int), 0.5)) == 4096


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
    with pytest.raises(DataError, match="no such detector; there are yolov4-tiny"):
        load_detector("best")
    monkeypatch.setattr(packaged, "find_spec", lambda name: None)
    for name in DETECTORS:
        with pytest.raises(DataError, match="not installed: pip install"):
            load_detector(name)


def test_another_weight_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "w").write_bytes(b"x")
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    monkeypatch.setattr(packaged, "find_spec", lambda name: spec)
    with pytest.raises(DataError, match="not the file that is known"):
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
