"""Two detectors together: boxes that agree are one, evidence is multiplied, order does not matter, weights are found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scenegpi.training.finder_calibration import fit_combination
from scenegpi.vision.combine import LOWEST, Candidates, Combined, Things, chances, shipped_weights, things
from scenegpi.vision.config import FinderConfig
from scenegpi.vision.detect import Detections
from scenegpi.vision.find import Finder
from scenegpi.vision.model import VisionModel
from vision.vision_cases import TINY_EYES, VOCABULARY

SIZE = (100, 100)
PERSON = np.array([True, True, False, False])  # of the labels man, woman, dog, hat
NOTHING = np.zeros(4, dtype=bool)
WEIGHTS = shipped_weights("yolov4-tiny")


def boxes_of(*rows):
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


def candidates(boxes, scores, dist=None):
    n = len(boxes)
    return Candidates(boxes, np.array(scores, float), np.full((n, 4), 0.25, np.float32) if dist is None else dist)


NONE = candidates(boxes_of(), [])
MINE = candidates(boxes_of([10, 10, 50, 50], [60, 60, 90, 90]), [0.6, 0.3])
THEIRS = candidates(boxes_of([12, 10, 50, 52], [5, 60, 40, 95]), [0.8, 0.5])
SETS = np.stack([PERSON, NOTHING])
KNOWS = PERSON


def test_a_detector_without_weights_of_its_own_has_those_for_any():
    assert shipped_weights("hf:some") == shipped_weights("mine.onnx") == shipped_weights()
    assert shipped_weights("yolov4-tiny") != shipped_weights()


def test_that_the_other_misses_what_it_does_not_know_says_nothing():
    unknown = candidates(boxes_of([10, 10, 50, 50]), [0.6], np.array([[0.05, 0.05, 0.0, 0.9]], np.float32))  # a hat
    known = candidates(boxes_of([10, 10, 50, 50]), [0.6], np.array([[0.9, 0.0, 0.05, 0.05]], np.float32))  # a man
    hat, man = (chances(things(each, NONE, SETS[:0], KNOWS, SIZE, 0.05), WEIGHTS)[0] for each in (unknown, known))
    assert hat > man


def test_boxes_that_agree_are_one_thing_with_the_others_box():
    found = things(MINE, THEIRS, SETS, KNOWS, SIZE, 0.05)
    assert found.seen.tolist() == [0, 2, 1]
    assert found.boxes.tolist() == [[12, 10, 50, 52], [5, 60, 40, 95], [60, 60, 90, 90]]


def test_what_both_see_is_surer_than_what_we_see_and_no_less_sure_than_what_the_other_sees():
    together = chances(things(MINE, THEIRS, SETS, KNOWS, SIZE, 0.05), WEIGHTS)[0]
    mine = chances(things(MINE, NONE, SETS[:0], KNOWS, SIZE, 0.05), WEIGHTS)[0]
    theirs = chances(things(NONE, THEIRS, SETS, KNOWS, SIZE, 0.05), WEIGHTS)[0]
    assert together > mine
    assert together > theirs - 0.05


@pytest.mark.parametrize(("ours", "theirs", "count"), [(MINE, NONE, 2), (NONE, THEIRS, 2), (NONE, NONE, 0)])
def test_one_alone_or_none(ours, theirs, count):
    found = things(ours, theirs, SETS[: len(theirs.boxes)], KNOWS, SIZE, 0.05)
    chance = chances(found, WEIGHTS)
    assert len(found.boxes) == len(chance) == count
    assert np.allclose(found.dist.sum(1), 1)


def test_a_surer_detector_makes_a_surer_thing():
    for name, column in (("both", 1), ("both", 2), ("ours", 1), ("theirs", 2)):
        assert WEIGHTS[name][column] > 0
    assert 0 < WEIGHTS["leak"][0] < 1


def test_labels_are_multiplied_by_what_the_other_says_of_a_set():
    dist = np.array([[0.3, 0.2, 0.4, 0.1]] * 2, dtype=np.float32)
    theirs = candidates(THEIRS.boxes, [0.8, 0.5], dist)
    found = things(NONE, theirs, SETS, KNOWS, SIZE, 0.05).dist
    wanted = dist[0] * [0.8, 0.8, 0.01, 0.01]
    assert np.allclose(found[0], wanted / wanted.sum(), atol=1e-6)
    assert np.allclose(found[1], dist[1], atol=1e-6)  # it has no word of ours for it, and says nothing


def test_the_order_of_candidates_does_not_matter():
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 60, (12, 2))
    boxes = np.concatenate([low, low + rng.uniform(10, 40, (12, 2))], 1)
    dist = rng.dirichlet(np.ones(4), 12).astype(np.float32)
    score, sets = rng.uniform(0.05, 0.95, 12), rng.random((12, 4)) < 0.5

    def answer(mine, other):
        found = things(
            Candidates(boxes[mine], score[mine], dist[mine]), Candidates(boxes[other], score[other], dist[other]), sets[other], KNOWS, SIZE, 0.05
        )  # fmt: skip
        rows = np.concatenate([found.boxes, chances(found, WEIGHTS)[:, None], found.dist], 1)
        return rows[np.lexsort(rows.T)]

    mine, other = np.arange(6), np.arange(6, 12)
    first = answer(mine, other)
    for _ in range(5):
        assert np.allclose(answer(rng.permutation(mine), rng.permutation(other)), first)


def test_weights_are_found_again():
    """Things that are right with a chance that the model can express: the fit finds the weights behind it, up to the scale."""
    rng = np.random.default_rng(0)
    truth = {"both": [0.5, 1.0, 0.5], "ours": [-1.0, 0.8, 0.0], "theirs": [0.0, 0.0, 1.2]}
    examples = []
    for _ in range(2000):
        features = np.concatenate([np.ones((6, 1)), rng.normal(size=(6, 2))], 1)
        seen = rng.integers(0, 3, 6)
        p = 1 / (1 + np.exp(-(features * np.array(list(truth.values()))[seen]).sum(1)))
        boxes = np.array([[100.0 * k, 0, 100 * k + 50, 50] for k in range(6)])
        examples.append((Things(boxes, features, seen, np.ones((6, 1))), boxes[rng.random(6) < p]))
    found = fit_combination(examples)
    for name, wanted in truth.items():
        mask = np.array(wanted) != 0
        assert np.allclose(np.array(found[name])[mask], np.array(wanted)[mask], atol=0.25), name


class Other:
    """Sees one thing, of the first label, and calls another by a name that we have no word for."""

    names, floor = (VOCABULARY.objects[0], "quark"), 0.25

    def detect(self, photo):
        boxes = np.array([[5.0, 5, 40, 45], [30, 2, 60, 30]])
        return Detections(boxes, np.array([0, 1]), np.array([0.95, 0.6]), self.names, photo.shape[1::-1])


def test_a_finder_and_another_detector_on_a_photo():
    torch.manual_seed(0)
    finder = Finder(VisionModel(TINY_EYES, VOCABULARY).eval(), FinderConfig(floor=0.0, same_label=1.0))
    other = Other()
    both = Combined(finder, other)
    assert other.floor == LOWEST
    found = both.detect(np.random.default_rng(0).integers(0, 255, (50, 64, 3), dtype=np.uint8))
    assert tuple(found.names) == VOCABULARY.objects
    assert found.size == (64, 50)
    assert (np.diff(found.sure) <= 0).all()
    assert np.allclose(found.label_dist.sum(1), 1, atol=1e-5)
    place = np.flatnonzero((found.boxes == [5, 5, 40, 45]).all(1))
    assert len(place) == 1
    assert found.labels[place[0]] == 0
