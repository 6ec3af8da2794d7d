"""Photos in, distributions out: the same as torch for a photo that needs no resizing, nearly the same for others."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

import onnx_export.photo_cases as cases
from models.model_cases import VOCABULARY, small_model
from scenegpi import SceneGraph
from scenegpi.errors import DataError, SceneGPIError
from scenegpi.features.arrays import SceneArrays
from scenegpi.onnx.export import model_bytes
from scenegpi.onnx.program import onnx_program, suppress
from scenegpi.onnx.runtime import OnnxModel
from scenegpi.vision.find import Finder

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")


def random_boxes(rng, n, width, height):
    low = rng.uniform(-0.1, 1, (n, 2)) * [width, height]
    return np.concatenate([low, low + rng.uniform(0.01, 0.6, (n, 2)) * [width, height]], 1)


def resized(width, height):
    return np.asarray(Image.fromarray(cases.photo()).resize((width, height)))


def test_boxes_that_stay_are_those_of_the_house():
    some = torch.tensor([[1.0, 2, 5, 6], [3, 4, 20, 20]], dtype=torch.float64)
    program = onnx_program(
        torch.nn.Identity(),
        lambda _, boxes, scores: [suppress(boxes, scores, 0.5, 5)],
        {"boxes": some, "scores": torch.rand(2)},
        ["kept"],
        {"boxes": ("boxes",), "scores": ("boxes",), "kept": ("kept",)},
    )
    session = onnxruntime.InferenceSession(program.SerializeToString())
    rng = np.random.default_rng(3)
    for n in range(24):
        boxes, scores = random_boxes(rng, n, 90, 60), rng.uniform(0, 1, n).astype(np.float32)
        kept = session.run(None, {"boxes": boxes, "scores": scores})[0]
        assert kept.tolist() == suppress(torch.tensor(boxes), torch.tensor(scores), 0.5, 5).tolist()


def test_a_photo_and_boxes():
    """Boxes may reach out of the photo."""
    model, session = cases.small_photo_model(), onnxruntime.InferenceSession(cases.photo_bytes("small", "photo"))
    rng = np.random.default_rng(1)
    side = cases.SMALL.photo_size
    sizes = ((20, 700), (40, 50), (300, 100), (75, 100), (side, side))
    for n, (height, width) in zip((0, 1, 12, 70, 8), sizes, strict=True):
        image, boxes = resized(width, height), random_boxes(rng, n, width, height)
        *found, pairs = session.run(None, {"image": image, "boxes": boxes})
        graph = SceneGraph(boxes, np.zeros(n, dtype=int), VOCABULARY, width=width, height=height)
        for mine, theirs in zip(found, cases.in_torch(model, image, graph), strict=True):
            assert mine.shape == theirs.shape
            assert np.abs(mine - theirs).max(initial=0) <= (1e-4 if width == height == side else 0.02)
        assert pairs.shape == (2, n * (n - 1))


def test_a_photo_alone():
    model = cases.finding_model()
    session = onnxruntime.InferenceSession(cases.photo_bytes("finding", "find"))
    side = model.vision.config.features.photo_size
    photo = resized(side, side)
    # One with nothing on it; brighter to the right, as in a photo that is its own mirror image two boxes tie.
    empty = np.broadcast_to(np.linspace(0, 100, side, dtype=np.uint8)[:, None], (side, side, 3)).copy()
    for shown in (photo, np.roll(photo, 150, axis=1), empty):
        wanted = Finder(model.vision).detect(shown)
        boxes, sure, labels, relations, pairs = session.run(None, {"image": shown})
        np.testing.assert_allclose(boxes, wanted.boxes, atol=1e-2)
        np.testing.assert_allclose(sure, wanted.sure, atol=1e-4)
        graph = SceneGraph(
            wanted.boxes, wanted.labels, model.vocabulary, label_dist=wanted.label_dist, width=side, height=side
        )
        nodes, edges = model.distributions(SceneArrays.of([graph], given_labels=False), "sgcls")
        np.testing.assert_allclose(labels, nodes, atol=1e-3)
        np.testing.assert_allclose(relations, edges, atol=1e-3)
        assert pairs.shape == (2, len(boxes) * (len(boxes) - 1)) == (2, len(relations))
    boxes, sure, *_ = session.run(None, {"image": cases.photo()})
    wanted = Finder(model.vision).detect(cases.photo())
    np.testing.assert_allclose(boxes, wanted.boxes, atol=6)
    np.testing.assert_allclose(sure, wanted.sure, atol=0.05)


def test_a_predictor_refuses_a_file_that_reads_photos():
    with pytest.raises(DataError, match="reads photos: only files exported without --photo and --find"):
        OnnxModel(cases.photo_bytes("small", "photo"))


def test_what_cannot_be_exported_is_refused_in_one_line():
    for model, form, message in (
        (small_model("baseline"), "photo", "boxes and labels only"),
        (cases.small_photo_model(), "find", "finds no boxes"),
    ):
        with pytest.raises(SceneGPIError, match=message) as error:
            model_bytes(model, form)
        assert "\n" not in str(error.value)
