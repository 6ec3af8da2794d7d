"""What a person's word covers among the names of a data set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenegpi.words.covered import broader_labels, covered_labels, covered_predicates, predicate_stem

VG = [
    "on",
    "wears",
    "wearing",
    "riding",
    "sitting on",
    "in front of",
    "has",
    "lying on",
    "laying on",
    "covered in",
    "in",
    "under",
]
VRD = [
    "wear",
    "ride",
    "sit on",
    "next to",
    "sleep next to",
    "walk beside",
    "in the front of",
    "beneath",
    "inside",
    "on",
]


@pytest.mark.parametrize(
    ("word", "vg", "vrd"),
    [
        ("rides", ["riding"], ["ride"]),
        ("wear", ["wears", "wearing"], ["wear"]),
        ("sits on", ["sitting on"], ["sit on"]),
        ("in front of", ["in front of"], ["in the front of"]),
        ("lies on", ["lying on", "laying on"], []),
        ("having", ["has"], []),
        ("beside", [], ["next to", "sleep next to", "walk beside"]),
        ("below", ["under"], ["beneath"]),
        ("kissing", [], []),
    ],
)
def test_predicates(word, vg, vrd):
    assert covered_predicates(word, VG) == vg
    assert covered_predicates(word, VRD) == vrd


def test_a_preposition_covers_verbs_that_go_with_it_but_not_the_other_way_round():
    assert set(covered_predicates("on", VG)) == {"on", "sitting on", "lying on", "laying on"}
    assert covered_predicates("sitting on", VG) == ["sitting on"]


def test_labels():
    labels = ["man", "girl", "coffee table", "hot dog", "dog", "puppy", "duck", "trees", "light"]
    assert covered_labels("person", labels) == ["man", "girl"]
    assert covered_labels("tables", labels) == ["coffee table"]
    assert covered_labels("dog", labels) == ["dog", "puppy"]  # a hot dog is none
    assert covered_labels("animal", labels) == ["dog", "puppy", "duck"]  # a duck is a bird is an animal
    assert covered_labels("tree", labels) == ["trees"]
    assert broader_labels("boy", ["person", "street"]) == ["person"]
    assert broader_labels("street", ["person"]) == []


@given(st.text(max_size=30), st.lists(st.text(max_size=12), max_size=5))
def test_any_text_covers_itself_and_nothing_breaks(word, names):
    assert set(covered_labels(word, [*names, word])) >= {word}
    assert set(covered_predicates(word, [*names, word])) >= {word}
    assert isinstance(predicate_stem(word), tuple)
