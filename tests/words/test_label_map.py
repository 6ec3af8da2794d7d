"""Names of detectors in a model's vocabulary: the reviewed tables are whole, rules are sure, guesses are said."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from scenegpi import GraphError, SceneGraph, Vocabulary
from scenegpi.data.coco_names import COCO_IDS
from scenegpi.models.shipped import shipped_models
from scenegpi.words.label_map import LabelMap, shipped_words
from scenegpi.words.label_map_rules import find_match, reviewed
from scenegpi.words.vectors import WordVectors

VG150 = Vocabulary.from_dict(json.loads((shipped_models()["vg150-layout"] / "vocabulary.json").read_text()))
COCO = tuple(COCO_IDS.values())


def small() -> WordVectors:
    """Three directions: spoon lies near fork, cloud near nothing."""
    return WordVectors(
        ["fork", "spoon", "dog", "cloud"], np.array([[1, 0, 0], [0.9, 0.1, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    )


@pytest.mark.parametrize("name", ["vg150", "vrd"])
def test_each_of_the_80_is_mapped_or_said_to_have_no_like(name):
    table = reviewed().tables[name]
    assert tuple(table) == COCO
    assert len(COCO) == 80
    for label, match in table.items():
        assert match.source == label
        assert match.target or match.note


def test_the_table_for_vg150_speaks_its_labels_and_keeps_equal_names():
    for label, match in reviewed().tables["vg150"].items():
        assert match.target is None or match.target in VG150.objects
        assert label not in VG150.objects or match.target == label
    labels = LabelMap.between(COCO, VG150)
    assert [match.target for match in labels.matches] == [m.target for m in reviewed().tables["vg150"].values()]
    assert len(labels.unmapped) == 17


@pytest.mark.shared
def test_the_table_for_vrd_speaks_its_labels(shared_data):
    names = json.loads((shared_data / "vrd" / "objects.json").read_text())
    for label, match in reviewed().tables["vrd"].items():
        assert match.target is None or match.target in names
        assert label not in names or match.target == label


@pytest.mark.parametrize(
    ("name", "target", "how"),
    [
        ("man", "man", "same"),
        ("Traffic_Sign", "sign", "head"),
        ("tv", "screen", "table"),
        ("Trees", "tree", "form"),
        ("jeans", "jean", "form"),
        ("bicycles", "bike", "form"),
        ("sofa", "chair", "synonym"),
        ("aeroplane", "airplane", "synonym"),
        ("Strawberry", "fruit", "kind"),
        ("coffee table", "table", "head"),
        ("hot dog", "food", "table"),
        ("knife", None, "none"),
        ("Kitchen knife", None, "none"),
        ("computer mouse", None, "none"),
    ],
)
def test_rules_in_vg150(name, target, how):
    match = find_match(name, VG150, None, 0.8)
    assert (match.target, match.how) == (target, how)
    assert match.source == name


def test_what_the_table_denies_is_denied_for_its_like():
    assert "cutlery" in find_match("kitchen knives", VG150, small(), 0.0).note


def test_vectors_guess_by_the_last_word_above_the_threshold():
    target = Vocabulary(["fork", "dog"], ["on"])
    match = find_match("big spoon", target, small(), 0.5)
    assert (match.target, match.how) == ("fork", "vectors")
    assert match.similarity is not None
    assert 0.5 < match.similarity <= 1
    assert "vectors 0.9" in str(match)
    high = find_match("big spoon", target, small(), 0.9999)
    assert high.target is None
    assert "the nearest is fork" in high.note
    assert find_match("fork opener", target, small(), 0.0).target is None
    assert LabelMap.between(["spoon"], target, threshold=2).names(["spoon"]) == [None]


def test_the_shipped_vectors_are_small_and_known():
    words = shipped_words()
    assert words.dim == 100
    assert "dog" in words
    assert not words.unknown(VG150.objects)


def test_apply_drops_what_has_no_like_and_keeps_the_rest():
    source = Vocabulary(["tv", "knife", "person"])
    graph = SceneGraph(
        [[0, 0, 1, 1], [0, 0, 2, 2], [0, 0, 3, 3]],
        [0, 1, 2],
        source,
        scores=[0.9, 0.8, 0.7],
        label_dist=[[0.9, 0.05, 0.05], [0, 1, 0], [0.25, 0.5, 0.25]],
        image_id=7,
        file="7.jpg",
        width=9,
        height=8,
    )
    labels = LabelMap.between(source, VG150)
    out = labels.apply(graph)
    assert out.vocabulary == VG150
    assert out.names == ["screen", "person"]
    assert out.boxes[:, 2].tolist() == [1, 3]
    assert out.scores.tolist() == [0.9, 0.7]
    assert (out.image_id, out.file, out.width, out.height) == (7, "7.jpg", 9, 8)
    assert np.allclose(out.label_dist.sum(axis=1), 1)
    assert np.allclose(out.label_dist[1, [VG150.object_index["screen"], VG150.object_index["person"]]], 0.5)
    text = labels.report({"tv": 1, "knife": 2, "person": 1})
    assert "tv -> screen (table; screens of all kinds); 1 box" in text
    assert "knife: no matching label" in text
    assert "2 boxes left out" in text
    assert "person" not in text


def test_a_distribution_that_falls_on_nothing_becomes_the_label():
    source = Vocabulary(["tv", "knife"])
    graph = SceneGraph([[0, 0, 1, 1]], [0], source, label_dist=[[0, 1]])
    out = LabelMap.between(source, VG150).apply(graph)
    assert out.label_dist[0, VG150.object_index["screen"]] == 1


def test_a_name_that_is_not_in_the_map_is_an_error():
    with pytest.raises(GraphError, match="'man' is not among"):
        LabelMap.between(["dog"], VG150).apply(SceneGraph([[0, 0, 1, 1]], ["man"], Vocabulary(["man"])))


@given(strategies.graphs())
def test_a_map_onto_itself_changes_nothing_but_relations(graph):
    labels = LabelMap.between(graph.vocabulary, graph.vocabulary)
    assert all(match.source == match.target for match in labels.matches)
    out = labels.apply(graph)
    assert out.names == graph.names
    assert np.array_equal(out.boxes, graph.boxes)
    if graph.label_dist is not None:
        assert np.allclose(out.label_dist, graph.label_dist)


@given(st.text(max_size=40))
def test_any_name_gives_an_answer(name):
    match = find_match(name, VG150, shipped_words(), 0.8)
    assert match.target is None or match.target in VG150.objects
    assert LabelMap(VG150, [match]).report().count("\n") == 0
