"""Node numbers stay with their things through a video."""

from __future__ import annotations

import numpy as np

from models.model_cases import VOCABULARY
from scenegpi import SceneGraph
from scenegpi.prediction.tracking import Tracker


def frame(boxes, labels=None) -> SceneGraph:
    boxes = np.asarray(boxes, dtype=float).reshape(-1, 4)
    return SceneGraph(boxes, [0] * len(boxes) if labels is None else labels, VOCABULARY)


def test_things_that_move_keep_their_numbers_however_they_are_listed():
    rng = np.random.default_rng(0)
    start = np.array([[100.0 * k, 0, 100 * k + 60, 80] for k in range(6)])
    tracker, whose = Tracker(), {}
    for t in range(30):
        order = rng.permutation(6)
        numbers = tracker(frame((start + 5 * t)[order]))
        for thing, number in zip(order.tolist(), numbers.tolist(), strict=True):
            assert whose.setdefault(thing, number) == number
    assert sorted(whose.values()) == list(range(6))
    assert tracker.things == 6


def test_a_thing_comes_back_within_its_patience_and_is_new_after_it():
    box = [[0, 0, 50, 50]]
    tracker = Tracker(patience=2)
    assert tracker(frame(box)).tolist() == [0]
    tracker(frame([]))
    tracker(frame([]))
    assert tracker(frame(box)).tolist() == [0]
    for _ in range(3):
        tracker(frame([]))
    assert tracker(frame(box)).tolist() == [1]


def test_the_same_label_goes_before_the_larger_overlap():
    tracker = Tracker()
    tracker(frame([[0, 0, 100, 100], [10, 0, 110, 100]], [0, 1]))
    numbers = tracker(frame([[8, 0, 108, 100], [3, 0, 103, 100]], [0, 1]))
    assert numbers.tolist() == [0, 1]
    assert tracker(frame([[8, 0, 108, 100]], [2])).tolist() == [0]  # another label does not make it another thing


def test_one_thing_is_never_in_two_places():
    tracker = Tracker()
    tracker(frame([[0, 0, 100, 100]]))
    numbers = tracker(frame([[0, 0, 100, 100], [1, 1, 101, 101]]))
    assert numbers.tolist() == [0, 1]
