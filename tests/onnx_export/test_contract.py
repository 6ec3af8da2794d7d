"""The form of SGG-Benchmark: a program written from its description reads our file and gets what a `Predictor` says."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

import onnx_export.photo_cases as cases
from scenegpi import PredictOptions, Predictor
from scenegpi.onnx import contract
from scenegpi.prediction.options import FOUND_RELATION, LAST_RELATION

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")


class Reader:
    """Letterboxes a photo, runs the file, and brings boxes back to the photo."""

    def __init__(self, data):
        self.session = onnxruntime.InferenceSession(data)
        about = self.session.get_modelmeta().custom_metadata_map
        self.labels = dict(enumerate(json.loads(about["obj_classes"]), start=1))
        self.predicates = dict(enumerate(json.loads(about["rel_classes"])))

    def __call__(self, image):
        height, width = image.shape[:2]
        ratio = min(640 / height, 640 / width)
        wide, high = round(width * ratio), round(height * ratio)
        frame = np.full((640, 640, 3), 114, dtype=np.uint8)
        left, top = (640 - wide) // 2, (640 - high) // 2
        frame[top : top + high, left : left + wide] = Image.fromarray(image).resize((wide, high))
        (first,) = self.session.get_inputs()
        boxes, rels = self.session.run(None, {first.name: frame.transpose(2, 0, 1)[None].astype(np.float32) / 255})
        boxes[:, [0, 2]] = (boxes[:, [0, 2]] - left) / ratio
        boxes[:, [1, 3]] = (boxes[:, [1, 3]] - top) / ratio
        return boxes, rels


def test_what_it_says_is_what_a_predictor_says():
    model = cases.finding_model()
    read, predictor = Reader(cases.photo_bytes("finding", "sgg-benchmark")), Predictor(model)
    shapes = [each.shape for each in (*read.session.get_inputs(), *read.session.get_outputs())]
    assert shapes == [[1, 3, 640, 640], ["boxes", 6], ["rels", 5]]
    assert read.predicates[0] == "__background__"
    some = 0
    for size in ((640, 480), (360, 640), (640, 640)):  # a frame holds these as they are
        image = np.asarray(Image.fromarray(cases.photo()).resize(size))
        boxes, rels = read(image)
        wanted = predictor(image)
        assert boxes.dtype == rels.dtype == np.float32
        np.testing.assert_allclose(boxes[:, :4], wanted.boxes, atol=1e-2)
        assert [read.labels[int(label)] for label in boxes[:, 4]] == list(wanted.names)
        np.testing.assert_allclose(boxes[:, 5] ** 2, wanted.scores, atol=1e-4)
        found = [(int(i), read.predicates[int(p)], int(j)) for i, j, p, *_ in rels]
        names = model.vocabulary.predicates
        assert found == [(i, names[p], j) for i, j, p in wanted.relations.tolist()]
        np.testing.assert_allclose(rels[:, 4], wanted.relation_scores, atol=1e-4)
        ends = wanted.scores[wanted.relations[:, :2]]
        np.testing.assert_allclose(rels[:, 3] ** 3, rels[:, 4] * ends.prod(1), atol=1e-4)
        assert (rels[:, 3] > 0.1).all()
        some += len(rels)
    assert some


def test_a_frame_that_shows_nothing_gives_nothing():
    boxes, rels = Reader(cases.photo_bytes("finding", "sgg-benchmark"))(np.full((64, 64, 3), 114, dtype=np.uint8))
    assert boxes.shape == (0, 6)
    assert rels.shape == (0, 5)


def test_relations_are_chosen_by_the_defaults_of_a_predictor():
    options = PredictOptions()
    assert options.informative == contract.INFORMATIVE
    assert options.top == contract.TOP
    assert (FOUND_RELATION, LAST_RELATION) == (contract.FOUND_RELATION, contract.LAST_RELATION)
