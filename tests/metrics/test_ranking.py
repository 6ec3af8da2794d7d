"""Order of triplets: the short cuts give what a full stable sort gives, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenegpi.metrics import Protocol, box_iou
from scenegpi.metrics.inputs import Prediction
from scenegpi.metrics.ranking import candidates, top

EMPTY = np.zeros((0, 3), dtype=int)


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(1, 20))
def test_top_is_a_stable_sort_cut_off(values, k):
    scores = np.array(values, dtype=float)
    assert top(scores, k).tolist() == sorted(range(len(values)), key=lambda i: (-values[i], i))[:k]


def pair_prediction(rng, n, predicates, levels):
    pairs = rng.permutation([(i, j) for i in range(n) for j in range(n) if i != j])
    weights = rng.integers(1, levels + 1, (len(pairs), 1 + predicates)).astype(float)
    scores = rng.integers(1, 4, n) / 4
    return Prediction(
        np.tile([0.0, 0, 9, 9], (n, 1)),
        np.zeros(n, dtype=int),
        scores,
        pairs,
        weights / weights.sum(axis=1, keepdims=True),
        EMPTY,
        None,
    )


@pytest.mark.parametrize("levels", [1, 2, 1000])
@pytest.mark.parametrize("limit", [1, 20, 100, 5000])
@pytest.mark.parametrize("per_pair", [1, 2, 3, None])
def test_ranked_equals_a_full_sort(levels, limit, per_pair):
    rng = np.random.default_rng(levels * limit)
    found = pair_prediction(rng, 12, 5, levels)
    everything = []
    for row, (s, o) in enumerate(found.pairs.tolist()):
        weight = found.scores[s] * found.scores[o]
        offers = sorted(range(5), key=lambda p: (-found.pair_dist[row, p + 1], p))[:per_pair]
        everything += [(-(weight * found.pair_dist[row, p + 1]), row, p, (s, o, p)) for p in offers]
    expected = [triplet for *_, triplet in sorted(everything)][:limit]
    ranked = candidates(found, EMPTY, limit, Protocol()).ranked(per_pair)
    assert (
        list(zip(ranked.subject.tolist(), ranked.object.tolist(), ranked.predicate.tolist(), strict=True)) == expected
    )
    assert (np.diff(ranked.score) <= 0).all()


def test_no_relation_is_never_ranked_but_lowers_the_rest():
    found = Prediction(
        np.zeros((2, 4)),
        np.zeros(2, dtype=int),
        None,
        np.array([[0, 1], [1, 0]]),
        np.array([[0.9, 0.1, 0.0], [0.5, 0.3, 0.2]]),
        EMPTY,
        None,
    )
    ranked = candidates(found, EMPTY, 10, Protocol()).ranked(1)
    assert ranked.subject.tolist() == [1, 0]
    assert ranked.predicate.tolist() == [0, 0]
    assert ranked.score.tolist() == [0.3, 0.1]


def test_iou_counts_pixels_inclusively():
    a = np.array([[0, 0, 9, 9]])
    assert box_iou(a, np.array([[0, 0, 9, 4]])).tolist() == [[0.5]]
    assert box_iou(a, np.array([[10, 0, 19, 9], [9, 9, 9, 9]])).tolist() == [[0.0, 0.01]]
    assert box_iou(np.array([[3.0, 3, 3, 3]]), np.array([[3.0, 3, 3, 3]])).tolist() == [[1.0]]


def test_iou_of_absurd_boxes_is_no_match_and_no_warning():
    huge = np.array([[-1e308, -1e308, 1e308, 1e308]])
    assert not (box_iou(huge, np.array([[0.0, 0, 1, 1]])) >= 0.5).any()
