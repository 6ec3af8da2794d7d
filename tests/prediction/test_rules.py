"""The rules by which relations are shown, each against a plain loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from scenegpi import PredictOptions
from scenegpi.models.relation_counts import RelationCounts
from scenegpi.prediction import rules
from scenegpi.prediction.options import FOUND_PLAIN, FOUND_RELATION, GIVEN_RELATION
from scenegpi.prediction.rules import NEARLY, ONE_THING, Candidates
from scenegpi.vocabulary import Vocabulary

WORDS = Vocabulary(["man", "head"], ["has", "near"])


@pytest.fixture(params=range(3))
def some(request) -> Candidates:
    """Candidates of 8 boxes that overlap, with 2 labels and 2 predicates; best first."""
    rng = np.random.default_rng(request.param)
    low = rng.uniform(0, 40, (8, 2))
    boxes = np.concatenate([low, low + rng.uniform(10, 40, (8, 2))], axis=1)
    rows = np.unique(rng.integers(0, [8, 8, 2], (60, 3)), axis=0).astype(np.int32)
    rows = rng.permutation(rows[rows[:, 0] != rows[:, 1]])
    chances, none = rng.uniform(0, 1, (2, len(rows))).astype(np.float32)
    scores = np.sort(rng.uniform(0, 0.3, len(rows)))[::-1]
    return Candidates(rows[:, :2], rows[:, 2], chances, none, scores, rng.integers(0, 2, 8), boxes, WORDS)


def listed(some: Candidates) -> list[tuple[int, int, int]]:
    return [(i, j, p) for (i, j), p in zip(some.pairs.tolist(), some.predicates.tolist(), strict=True)]


def test_one_direction(some):
    kept = rules.one_direction(some)
    for k, (i, j) in enumerate(some.pairs.tolist()):
        assert kept[k] == ((j, i) not in map(tuple, some.pairs[:k].tolist()))
    assert 0 < kept.sum() < len(kept)


def test_told_once(some):
    kept, boxes, rows = rules.told_once(some), some.boxes, listed(some)

    def one_thing(i, j):
        width, height = np.minimum(boxes[i, 2:], boxes[j, 2:]) - np.maximum(boxes[i, :2], boxes[j, :2])
        smaller = min((box[2] - box[0]) * (box[3] - box[1]) for box in boxes[[i, j]])
        return some.labels[i] == some.labels[j] and max(width, 0) * max(height, 0) > ONE_THING * smaller

    for k, (i, j, p) in enumerate(rows):
        before = [(a, b) for a, b, q in rows[:k] if q == p]
        assert kept[k] != any((a == i and one_thing(b, j)) or (b == j and one_thing(a, i)) for a, b in before)
    assert 0 < kept.sum() < len(kept)


def test_a_part_has_one_owner_and_an_owner_one_head(some):
    kept, rows = rules.bound_once(some), listed(some)
    for k, (i, j, p) in enumerate(rows):
        before = [(a, b) for n, (a, b, q) in enumerate(rows[:k]) if q == 0 and kept[n]]
        second = any(b == j and a != i for a, b in before)
        another = some.labels[j] == 1 and any(a == i and b != j and some.labels[b] == 1 for a, b in before)
        assert kept[k] == (p == 1 or not (second or another))
    assert 0 < kept.sum() < len(kept)


def bound(words: list[str], *rows: tuple[int, str, int]) -> list[bool]:
    """Which relations between things with these labels stay, the best one first."""
    vocabulary = Vocabulary(sorted(set(words)), sorted({p for _, p, _ in rows}))
    pairs = np.array([(i, j) for i, _, j in rows], dtype=np.int32)
    predicates = np.array([vocabulary.predicate_index[p] for _, p, _ in rows], dtype=np.int32)
    flat, labels = np.ones(len(rows), np.float32), np.array([vocabulary.object_index[word] for word in words])
    boxes = np.zeros((len(words), 4))
    return rules.bound_once(Candidates(pairs, predicates, flat, flat, flat, labels, boxes, vocabulary)).tolist()


def test_what_belongs_is_read_in_both_directions():
    people = ["man", "man", "head", "head", "leg", "leg"]
    rows = [(0, "has", 2), (2, "of", 1), (3, "of", 0), (1, "near", 2), (0, "has", 4), (0, "has", 5)]
    # The head 2 is man 0's, not man 1's; man 0 has no second head, but two legs.
    assert bound(people, *rows) == [True, False, False, True, True, True]


def test_a_thing_rests_in_one_place_and_is_held_by_one():
    things = ["sign", "pole", "house", "man", "man", "cup"]
    rows = [(0, "on", 1), (0, "attached to", 2), (0, "near", 2), (3, "holding", 5), (4, "holding", 5), (5, "on", 2)]
    assert bound(things, *rows) == [True, False, True, True, False, True]


def test_told_once_looks_at_the_best_ones_only(some, monkeypatch):
    monkeypatch.setattr(rules, "CONSIDERED", 5)
    kept = rules.told_once(some)
    assert kept[5:].all()
    np.testing.assert_array_equal(kept[:5], rules.told_once(some.at(np.arange(5))))


def test_plausible(some):
    counts = RelationCounts(np.array([0.5, 0.5]), np.array([[1, 0], [1, 1]], bool), np.array([[1, 1], [0, 1]], bool))
    for (i, j, p), kept in zip(listed(some), rules.plausible(some, counts), strict=True):
        assert kept == (counts.as_subject[some.labels[i], p] and counts.as_object[some.labels[j], p])


def test_the_most_specific_of_those_that_are_nearly_as_probable():
    rng = np.random.default_rng(0)
    edges, shares = rng.dirichlet(np.ones(6), 200).astype(np.float32), rng.dirichlet(np.ones(5))
    found = rules.most_specific(edges, shares)
    for row, chosen in zip(edges[:, 1:].tolist(), found.tolist(), strict=True):
        near = [p for p in range(5) if row[p] >= np.float32(NEARLY * max(row))]
        assert shares[chosen] == min(shares[near])
    assert (found != edges[:, 1:].argmax(1)).any()
    alone = np.array([[0.1, 0.5, 0.5 * NEARLY - 0.01, 0.05, 0, 0]], dtype=np.float32)
    assert rules.most_specific(alone, np.array([0.9, 0.04, 0.03, 0.02, 0.01])).tolist() == [0]


def test_what_is_shown_is_above_its_floor_best_first_and_bounded(some):
    plain = PredictOptions(tidy=False, top=4)
    some = replace(some, vocabulary=Vocabulary(WORDS.objects, ["has", "holding"]))
    for found, least in ((True, (FOUND_PLAIN, FOUND_RELATION)), (False, (GIVEN_RELATION, GIVEN_RELATION))):
        for scale in (1.0, 0.3):  # best scores near the floors, too
            scored = replace(some, scores=some.scores * scale)
            assert (rules.floors(scored, replace(plain, min_relation=0.2), found) == 0.2).all()
            mixed = scored.at(np.random.default_rng(1).permutation(len(some.pairs)))
            shown = rules.chosen(mixed, replace(plain, top=100), None, found)
            rows = zip(scored.scores.tolist(), scored.predicates.tolist(), strict=True)
            wanted = sorted((score for score, p in rows if score >= least[p]), reverse=True)
            assert shown.scores.tolist() == wanted
            assert rules.chosen(mixed, plain, None, found).scores.tolist() == wanted[:4]
    assert not len(rules.chosen(some, replace(plain, min_relation=1.0), None, True).pairs)
    every = rules.chosen(some, replace(plain, top=None), None, True)
    assert len(every.pairs) == (some.chances > some.none).sum()
