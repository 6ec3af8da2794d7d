"""Photos in, distributions out: the same as torch, from the resizing of the photo to the relations."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import PIL
import pytest
import torch
from PIL import Image

import onnx_export.photo_cases as cases
from models.model_cases import VOCABULARY, small_model
from scenegpi import Predictor, SceneGraph
from scenegpi.errors import DataError
from scenegpi.models import build_model, save_model
from scenegpi.onnx.export import model_bytes
from scenegpi.onnx.operators import cut_out, suppress
from scenegpi.onnx.photo import FindModule, stretched
from scenegpi.onnx.program import onnx_bytes
from scenegpi.onnx.vision import OnnxFinder
from scenegpi.vision.crops import clipped, cut_crops
from scenegpi.vision.find import Finder

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")
LEVELS = 0 if int(PIL.__version__.partition(".")[0]) >= 13 else 1
"""By how much a byte may differ: before version 13 Pillow never mixed rows first."""


class Steps(torch.nn.Module):
    def forward(self, image, boxes, scores):
        return stretched(image, 64), cut_out(image, boxes, 48), suppress(boxes, scores, 0.5, 5)


def random_boxes(rng, n, width, height):
    low = rng.uniform(-0.1, 1, (n, 2)) * [width, height]
    return np.concatenate([low, low + rng.uniform(0.01, 0.6, (n, 2)) * [width, height]], 1)


def test_bytes_are_those_of_pillow_and_boxes_those_that_stay():
    some = torch.tensor([[1.0, 2, 5, 6], [3, 4, 20, 20]], dtype=torch.float64)
    session = onnxruntime.InferenceSession(
        onnx_bytes(
            Steps(),
            {
                "image": (torch.zeros(30, 40, 3, dtype=torch.uint8), {0: "height", 1: "width"}),
                "boxes": (some, {0: "boxes"}),
                "scores": (torch.rand(2, 2), {1: "boxes"}),
            },
            {"square": (3, 64, 64), "crops": ("boxes", 3, 48, 48), "kept": ("kept",)},
            {},
        )
    )
    rng, large = np.random.default_rng(3), 0
    for k in range(60):
        height, width = np.exp(rng.uniform(0, np.log(700), 2)).astype(int)
        image = rng.integers(0, 256, (height, width, 3)).astype(np.uint8)
        n = k % 6
        boxes = clipped(torch.tensor(random_boxes(rng, n, width, height)), torch.tensor([width, height]).double())
        scores = rng.uniform(-0.3, 1, (2, n)).astype(np.float32)
        square, crops, kept = session.run(None, {"image": image, "boxes": boxes.numpy(), "scores": scores})
        photo = Image.fromarray(image)
        wanted = np.asarray(photo.resize((64, 64), Image.Resampling.BILINEAR, reducing_gap=3.0))
        assert np.abs(square.transpose(1, 2, 0) - wanted.astype(int)).max() <= LEVELS
        assert np.abs(crops - cut_crops(photo, boxes, 48).numpy()).max(initial=0) <= LEVELS
        large += int(((boxes[:, 2:] - boxes[:, :2]).amax(1) >= 6 * 48).sum())
        assert kept.tolist() == (suppress(boxes, torch.tensor(scores), 0.5, 5).tolist() if n else [])
    assert large  # Pillow divides such crops by a whole number first


def test_a_photo_and_boxes():
    """By crops and by the maps of the whole photo; boxes may reach out of it."""
    model = cases.small_photo_model()
    session = onnxruntime.InferenceSession(cases.photo_bytes("small", "photo"))
    rng = np.random.default_rng(1)
    for n, (height, width) in zip(
        (0, 1, 2, 12, 200), ((20, 700), (40, 50), (300, 100), (90, 120), (75, 100)), strict=True
    ):
        image = rng.integers(0, 256, (height, width, 3)).astype(np.uint8)
        boxes = random_boxes(rng, n, width, height)
        labels, relations, pairs = session.run(None, {"image": image, "boxes": boxes})
        graph = SceneGraph(boxes, np.zeros(n, dtype=int), VOCABULARY, width=width, height=height)
        for found, wanted in zip((labels, relations), cases.in_torch(model, image, graph), strict=True):
            assert found.shape == wanted.shape
            assert np.abs(found - wanted).max(initial=0) <= 1e-4
        assert pairs.shape == (2, n * (n - 1))
        order = rng.permutation(n)
        moved = session.run(["labels"], {"image": image, "boxes": boxes[order]})[0]
        np.testing.assert_allclose(moved, labels[order], atol=1e-5)


def test_a_photo_alone(tmp_path):
    model, image = cases.finding_model(), cases.photo()
    (tmp_path / "finder.onnx").write_bytes(cases.photo_bytes("finding", "finder"))
    finder = OnnxFinder(lambda: tmp_path / "finder.onnx")
    # One with nothing on it; brighter to the right, as in a photo that is its own mirror image two boxes tie.
    empty = np.broadcast_to(np.arange(0, 100, 2, dtype=np.uint8)[:, None], (30, 50, 3)).copy()
    for shown in (image, image[:, 100:230], empty):
        wanted = Finder(model.vision).detect(shown)
        found = finder.detect(shown)
        assert tuple(found.names) == tuple(wanted.names)
        assert found.labels.tolist() == wanted.labels.tolist()
        np.testing.assert_allclose(found.scores, wanted.scores, atol=1e-4)
        np.testing.assert_allclose(found.label_dist, wanted.label_dist, atol=1e-4)
        np.testing.assert_allclose(found.boxes, wanted.boxes, atol=1e-2)


def test_a_photo_alone_with_its_relations():
    """What is exported by --find, before it is exported: its parts are compared above and in the other tests."""
    model, image = cases.finding_model(), cases.photo()
    wanted = Finder(model.vision).detect(image)
    with torch.no_grad():
        boxes, sure, labels, relations, pairs = FindModule(model)(torch.from_numpy(image.copy()))
    np.testing.assert_allclose(boxes, wanted.boxes, atol=1e-2)
    size = {"width": image.shape[1], "height": image.shape[0]}
    graph = SceneGraph(wanted.boxes, wanted.labels, model.vocabulary, label_dist=wanted.label_dist, **size)
    for mine, theirs in zip((labels, relations), cases.in_torch(model, image, graph), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4)
    np.testing.assert_allclose(sure * wanted.label_dist.max(1), wanted.scores, atol=1e-4)
    assert pairs.shape == (2, len(boxes) * (len(boxes) - 1))


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
    features = replace(cases.SMALL, square=False)
    config = cases.small_photo_model().config
    other = build_model(replace(config, vision=replace(config.vision, features=features)), VOCABULARY)
    for model, form, message in (
        (small_model("baseline"), "photo", "boxes and labels only"),
        (cases.small_photo_model(), "find", "finds no boxes"),
        (other, "photo", "square"),
    ):
        with pytest.raises(DataError, match=message) as error:
            model_bytes(model, form)
        assert "\n" not in str(error.value)
