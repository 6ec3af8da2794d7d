"""Photos with two annotations: which boxes are one thing, and which names a box may have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from scenegpi.graph import SceneGraph
from scenegpi.training.photo_sets import Annotations, LabelSets
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.everyday import COCO, STANDS_FOR, everyday_names, may_be

LABELS = ("man", "woman", "screen", "chair", "hat")
NAMES = (*LABELS, "tv", "couch")
OTHER = ("person", "tv", "couch", "zebra")


def graph(names: tuple[str, ...], labels: list[str], boxes: list[list[int]], **kwargs) -> SceneGraph:
    vocabulary = Vocabulary(names)
    return SceneGraph(
        np.array(boxes, dtype=float), [names.index(x) for x in labels], vocabulary, width=100, height=100, **kwargs
    )


def test_everyday_names_have_a_label_that_stands_for_them():
    assert everyday_names(LABELS) == ("tv", "couch")
    assert set(STANDS_FOR) & set(COCO) == set()
    assert may_be("person", NAMES) == ("man", "woman")
    assert may_be("couch", NAMES) == ("couch",)


def test_a_label_includes_its_kinds_and_another_annotation_is_a_set():
    sets = LabelSets(LABELS, NAMES, OTHER)
    rows = {
        name: {NAMES[k] for k in np.flatnonzero(sets.members[row])} for name, row in zip(OTHER, sets.other, strict=True)
    }
    assert rows == {"person": {"man", "woman"}, "tv": {"tv"}, "couch": {"couch"}, "zebra": set()}
    assert {NAMES[k] for k in np.flatnonzero(sets.members[2])} == {"screen", "tv"}
    assert {NAMES[k] for k in np.flatnonzero(sets.members[3])} == {"chair"}  # a couch is like a chair, not one


def test_the_loss_is_minus_log_of_the_sum_over_the_set():
    sets = LabelSets(LABELS, NAMES, OTHER)
    logits = torch.randn(3, len(NAMES), generator=torch.Generator().manual_seed(0))
    p = logits.softmax(1)
    found = sets.nll(logits, torch.tensor([sets.other[0], 2, 4]))
    expected = -torch.stack([p[0, 0] + p[0, 1], p[1, 2] + p[1, 5], p[2, 4]]).log()
    torch.testing.assert_close(found, expected)


def test_of_two_boxes_of_one_thing_the_more_careful_one_stays_with_the_finer_name():
    sets = LabelSets(LABELS, NAMES, OTHER)
    own = graph(LABELS, ["man", "screen", "hat"], [[10, 10, 50, 90], [60, 60, 95, 95], [20, 0, 40, 15]], image_id=1)
    there = graph(
        OTHER, ["person", "tv", "person", "zebra"], [[12, 12, 50, 90], [61, 60, 95, 95], [70, 5, 90, 40], [0, 0, 9, 9]]
    )
    other = {"7": (Path("7.jpg"), there), "8": (Path("8.jpg"), there)}
    photos = Annotations(sets, other, {"1": "7"}, 2).training([Path("a.jpg")], [own])
    assert [str(photo.path) for photo in photos] == ["a.jpg", "a.jpg", "8.jpg"]
    both, alone = photos[0], photos[2]
    assert both.rows.tolist() == [0, 5, sets.other[0], sets.alone[4]]  # man, tv, a person of unknown kind, just a hat
    assert both.kinds.tolist() == [0, 0, 0, 1]
    assert both.listed == (True, True)
    np.testing.assert_allclose(both.boxes[0], [0.12, 0.12, 0.5, 0.9], atol=1e-6)
    assert alone.rows.tolist() == [sets.other[0], 5, sets.other[0]]  # what has no name here is left out
    assert alone.listed == (True, False)


def test_a_screen_that_is_no_listed_tv_is_just_a_screen():
    sets = LabelSets(LABELS, NAMES, OTHER)
    own = graph(LABELS, ["screen"], [[10, 10, 50, 90]], image_id=1)
    for there in (graph(OTHER, ["tv"], [[60, 10, 95, 40]]), graph(OTHER, [], np.zeros((0, 4)))):
        (both,) = Annotations(sets, {"7": (Path("7.jpg"), there)}, {"1": "7"}).training([Path("a.jpg")], [own])
        assert {NAMES[k] for k in np.flatnonzero(sets.members[both.rows[-1]])} == {"screen"}


def test_a_thing_with_two_different_names_is_two_things():
    sets = LabelSets(LABELS, NAMES, OTHER)
    own = graph(LABELS, ["hat"], [[10, 10, 50, 90]], image_id=1)
    there = graph(OTHER, ["person"], [[10, 10, 50, 90]])
    (both,) = Annotations(sets, {"7": (Path("7.jpg"), there)}, {"1": "7"}).training([Path("a.jpg")], [own])
    assert both.rows.tolist() == [sets.other[0], sets.alone[4]]
    assert both.kinds.tolist() == [0, 1]


def test_a_half_does_not_see_the_photos_of_the_other_half():
    sets = LabelSets(LABELS, NAMES, OTHER)
    own = [graph(LABELS, ["man"], [[10, 10, 50, 90]], image_id=k) for k in (1, 2)]
    there = graph(OTHER, ["person"], [[10, 10, 50, 90]])
    other = {name: (Path(f"{name}.jpg"), there) for name in ("7", "8", "9")}
    photos = Annotations(sets, other, {"1": "7", "2": "8"}).training([Path("a.jpg")], own[:1])
    assert [str(photo.path) for photo in photos] == ["a.jpg", "9.jpg"]
