"""Mixing errors are caught, and the message says which image, which field, and what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from scenegpi import SceneGraph, Vocabulary
from scenegpi.errors import MetricError
from scenegpi.metrics import Protocol, scene_graph_recall

TARGET = {
    "boxes": [[0, 0, 9, 9], [20, 20, 40, 40], [21, 20, 41, 40]],
    "labels": [1, 2, 3],
    "relations": [[0, 1, 2]],
    "image_id": "street",
}
GOOD = {"pairs": [[0, 1], [1, 2]], "rel_scores": [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]}


def score(prediction, task="predcls", target=TARGET, **options):
    return scene_graph_recall([prediction], [target], Protocol(task, ks=(1, 5), **options), predicates=2)


def test_good_input_is_scored():
    assert score(GOOD).figures["R@1"] == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rel_scores": [[0.1, 0.2, 0.7], [0.5, 0.3, 0.3]]}, r"pairs\[1\]: its distribution sums to 1.1"),
        ({"rel_scores": [[-0.1, 0.4, 0.7], [0.5, 0.3, 0.2]]}, r"pairs\[0\]: its distribution has a negative"),
        ({"rel_scores": [[0.1, np.nan, 0.7], [0.5, 0.3, 0.2]]}, r"rel_scores\[0\]: not finite"),
        ({"rel_scores": [[0.3, 0.7], [0.5, 0.5]]}, r"rel_scores: expected shape \(2, 3\)"),
        ({"pairs": [[0, 1], [0, 1]]}, r"pairs\[1\]: pair \[0, 1\] is duplicated"),
        ({"pairs": [[0, 1], [1, 1]]}, r"pairs\[1\]: box 1 paired with itself"),
        ({"pairs": [[0, 1], [1, 3]]}, r"pairs\[1\]: \[1, 3\] is outside 0..2"),
        ({"boxes": TARGET["boxes"][:2], "labels": [1, 2]}, "PredCls gives 3 boxes, the prediction has 2"),
        ({"boxes": TARGET["boxes"][::-1]}, r"boxes\[[02]\]: IoU 0.00"),
        ({"labels": [1, 1, 3]}, r"labels\[1\]: differs from the label that PredCls gives"),
        ({"labels": [0, 1, 3]}, r"labels\[0\]: 0 is not a class; dicts count classes from 1"),
        ({"scored": 1}, "unknown key 'scored'"),
    ],
)
def test_wrong_predictions_are_refused(change, message):
    with pytest.raises(MetricError, match=message) as caught:
        score({**GOOD, **change})
    assert str(caught.value).startswith("image 'street': ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scores", [[1.0, 2.0, 0.5], [-0.1, 1, 1], [np.inf, 1, 1]])
def test_box_scores_are_probabilities(scores):
    with pytest.raises(MetricError, match=r"scores\["):
        score({**GOOD, "labels": [1, 2, 3], "scores": scores}, "sgcls")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relations": [[0, 1, 3]]}, r"target: relations\[0\]: predicate 3 is outside 1..2"),
        ({"relations": [[0, 3, 1]]}, r"target: relations\[0\]"),
        ({"labels": [1, 2]}, "target: labels: expected shape"),
        ({"boxes": [[9, 0, 0, 9], *TARGET["boxes"][1:]]}, r"target: boxes\[0\].*x2 < x1"),
    ],
)
def test_wrong_targets_are_refused(change, message):
    with pytest.raises(MetricError, match=message):
        score(GOOD, target={**TARGET, **change})


def test_several_predicates_of_a_pair_under_the_graph_constraint():
    listed = {"relations": [[0, 1, 1], [0, 1, 2]], "relation_scores": [0.6, 0.5]}
    with pytest.raises(MetricError, match=r"several predicates for the pair \(0, 1\)"):
        score(listed)
    assert score(listed, constraint="none").figures["ngR@5"] == 1.0
    best = score(listed, several="best").figures
    assert (best["R@5"], best["ngR@5"]) == (0.0, 1.0)


def test_a_triplet_listed_twice_takes_one_place():
    listed = {"relations": [[1, 2, 1], [1, 2, 1], [0, 1, 2]], "relation_scores": [0.9, 0.8, 0.5]}
    result = scene_graph_recall([listed], [TARGET], Protocol(ks=(1, 2)), predicates=2)
    assert (result.figures["R@1"], result.figures["R@2"]) == (0.0, 1.0)


def test_a_list_without_scores_is_ranked_as_it_stands():
    listed = {"relations": [[1, 2, 1], [0, 1, 2]]}
    result = score(listed)
    assert (result.figures["R@1"], result.figures["R@5"]) == (0.0, 1.0)


def test_an_empty_prediction_is_no_error():
    for empty in ({}, {"pairs": [], "rel_scores": []}, {"relations": []}, {"boxes": [], "labels": []}):
        result = score(empty, empty="zero")
        assert result.figures["R@5"] == 0.0
        assert result.counts["images_without_predictions"] == 1


def test_lists_are_expected_and_of_one_length():
    with pytest.raises(MetricError, match="1 predictions for 2 targets"):
        scene_graph_recall([GOOD], [TARGET, TARGET], predicates=2)
    with pytest.raises(MetricError, match="expected lists"):
        scene_graph_recall(GOOD, TARGET, predicates=2)
    with pytest.raises(MetricError, match="expected a SceneGraph or a dict"):
        scene_graph_recall([3], [TARGET], predicates=2)
    with pytest.raises(MetricError, match="pass predicates="):
        scene_graph_recall([{}], [TARGET])


def test_vocabularies_of_another_size_are_refused():
    graph = SceneGraph(TARGET["boxes"], [0, 1, 2], Vocabulary(list("abc"), list("pqr")), [[0, 1, 1]], image_id=1)
    with pytest.raises(MetricError, match="vocabulary of 3 predicates, expected 2"):
        scene_graph_recall([GOOD], [graph], predicates=2)


def test_boxes_that_were_rounded_or_clipped_still_are_the_given_ones():
    rounded = (np.array(TARGET["boxes"]) + 0.4).tolist()
    assert score({**GOOD, "boxes": rounded}).figures["R@1"] == 1.0
