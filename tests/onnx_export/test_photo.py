"""Photos in, distributions out: the same as torch where Pillow resizes, nearly the same where the file does."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

import onnx_export.photo_cases as cases
from models.model_cases import VOCABULARY, small_model
from scenegpi import Predictor, SceneGraph
from scenegpi.boxes import box_iou
from scenegpi.errors import DataError
from scenegpi.models import save_model
from scenegpi.onnx.export import model_bytes
from scenegpi.onnx.program import onnx_program, suppress
from scenegpi.onnx.runtime import OnnxModel
from scenegpi.vision.find import Finder

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")


def random_boxes(rng, n, width, height):
    low = rng.uniform(-0.1, 1, (n, 2)) * [width, height]
    return np.concatenate([low, low + rng.uniform(0.01, 0.6, (n, 2)) * [width, height]], 1)


def test_boxes_that_stay_are_those_of_the_house():
    some = torch.tensor([[1.0, 2, 5, 6], [3, 4, 20, 20]], dtype=torch.float64)
    program = onnx_program(
        torch.nn.Identity(),
        lambda _, boxes, scores: [suppress(boxes, scores, 0.5, 5)],
        {"boxes": some, "scores": torch.rand(2)},
        ["kept"],
        {"boxes": ("boxes", 4), "scores": ("boxes",), "kept": ("kept",)},
    )
    session = onnxruntime.InferenceSession(program.SerializeToString())
    rng = np.random.default_rng(3)
    for n in range(24):
        boxes, scores = random_boxes(rng, n, 90, 60), rng.uniform(0, 1, n).astype(np.float32)
        kept = session.run(None, {"boxes": boxes, "scores": scores})[0]
        assert kept.tolist() == suppress(torch.tensor(boxes), torch.tensor(scores), 0.5, 5).tolist()


def test_a_photo_and_boxes():
    """Boxes may reach out of the photo. By its parts as torch, by itself nearly so."""
    model, data = cases.small_photo_model(), cases.photo_bytes("small", "photo")
    session, parts = onnxruntime.InferenceSession(data), OnnxModel(data)
    assert parts.finder is None
    rng = np.random.default_rng(1)
    for n, (height, width) in zip((0, 1, 12, 70), ((20, 700), (40, 50), (300, 100), (75, 100)), strict=True):
        image = np.asarray(Image.fromarray(cases.photo()).resize((width, height)))
        boxes = random_boxes(rng, n, width, height)
        labels, relations, pairs = session.run(None, {"image": image, "boxes": boxes})
        graph = SceneGraph(boxes, np.zeros(n, dtype=int), VOCABULARY, width=width, height=height)
        dist = parts.vision.label_dist(image, graph)
        np.testing.assert_allclose(dist, model.vision.label_dist(image, graph), atol=1e-4)
        wanted = cases.in_torch(model, image, graph)
        for found, theirs in zip((labels, relations), wanted, strict=True):
            assert found.shape == theirs.shape
            assert np.abs(found - theirs).max(initial=0) <= 0.02
        assert pairs.shape == (2, n * (n - 1))


def test_a_photo_alone():
    model, image = cases.finding_model(), cases.photo()
    data = cases.photo_bytes("finding", "find")
    session, parts = onnxruntime.InferenceSession(data), OnnxModel(data)
    given = SceneGraph([[10, 10, 60, 70], [-5, 40, 120, 900]], [0, 0], parts.vocabulary, width=512, height=600)
    dist = parts.vision.label_dist(image, given)
    np.testing.assert_allclose(dist, model.vision.label_dist(image, given), atol=1e-4)
    # One with nothing on it; brighter to the right, as in a photo that is its own mirror image two boxes tie.
    empty = np.broadcast_to(np.arange(0, 100, 2, dtype=np.uint8)[:, None], (30, 50, 3)).copy()
    for shown in (image, image[:, 100:230], empty):
        wanted = Finder(model.vision).detect(shown)
        found = parts.finder.detect(shown)
        assert tuple(found.names) == tuple(wanted.names)
        assert found.labels.tolist() == wanted.labels.tolist()
        np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-4)
        np.testing.assert_allclose(found.label_dist, wanted.label_dist, atol=1e-4)
        np.testing.assert_allclose(found.boxes, wanted.boxes, atol=1e-2)
    boxes, sure, _, relations, pairs = session.run(None, {"image": image})
    wanted = Finder(model.vision).detect(image)
    overlap = box_iou(boxes, wanted.boxes)  # the file resizes by another operator: a box at a floor may come or go
    here, there = np.nonzero(overlap > 0.9)
    assert len(here) == len({*here}) == len({*there}) >= max(len(boxes), len(wanted.boxes)) - 1
    np.testing.assert_allclose(boxes[here], wanted.boxes[there], atol=6)
    np.testing.assert_allclose(sure[here], wanted.sure[there], atol=0.05)
    assert pairs.shape == (2, len(boxes) * (len(boxes) - 1)) == (2, len(relations))
    here, there = Predictor(model, "finder")(image), Predictor(parts, "finder")(image)
    np.testing.assert_array_equal(there.relations, here.relations)
    np.testing.assert_allclose(there.relation_scores, here.relation_scores, atol=1e-4)


def test_a_predictor_reads_photos_without_torch(tmp_path, monkeypatch):
    monkeypatch.setenv("SCENEGPI_CACHE", str(tmp_path / "cache"))
    save_model(cases.small_photo_model(), tmp_path / "model")
    image = cases.photo()[::4, ::4]
    Image.fromarray(image).save(tmp_path / "photo.png")
    boxes = [[10, 10, 60, 70], [30, 40, 120, 140], [0, 0, 128, 150]]
    wanted = Predictor(cases.small_photo_model())(image, boxes)
    found = Predictor(tmp_path / "model", backend="onnx")(image, boxes)
    np.testing.assert_array_equal(found.labels, wanted.labels)
    np.testing.assert_array_equal(found.relations, wanted.relations)
    np.testing.assert_allclose(found.relation_scores, wanted.relation_scores, atol=1e-4)
    code = (
        "import sys; from scenegpi import Predictor; "
        f"print(Predictor('model', backend='onnx')('photo.png', {boxes}).labels.tolist(), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.stdout.strip() == f"{wanted.labels.tolist()} False", done.stderr


def test_what_cannot_be_exported_is_refused_in_one_line():
    for model, form, message in (
        (small_model("baseline"), "photo", "uses only boxes and labels"),
        (cases.small_photo_model(), "find", "finds no boxes"),
    ):
        with pytest.raises(DataError, match=message) as error:
            model_bytes(model, form)
        assert "\n" not in str(error.value)
