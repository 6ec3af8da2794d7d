r"""Which relations of an image are shown: small rules, each of which selects candidates.

A candidate is one predicate for an ordered pair of boxes; it scores P(subject) P(object) P(predicate). `chosen` takes
the candidates above their floors, best first, and applies the rules in their order. If no candidate is left, the graph
has no relation: nothing is likely enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.models.relation_counts import RelationCounts
from scenegpi.prediction.options import FOUND_PLAIN, FOUND_RELATION, GIVEN_RELATION, PredictOptions
from scenegpi.vocabulary import Vocabulary

ONE_THING = 0.3
CONSIDERED = 512
"""Repeats are sought among this many relations of an image, the best ones."""
NEARLY = 0.7
"""A rarer predicate is shown if its probability is at least this fraction of the best one's."""
OWNED, HELD, RESTING = "owned", "held", "resting"
_BOUND = {
    (1, OWNED): ("has", "wearing", "wears"),
    (0, OWNED): ("of", "belonging to", "part of"),
    (1, HELD): ("holding", "carrying", "using", "eating"),
    (0, RESTING): (
        *("on", "in", "at", "sitting on", "standing on", "laying on", "lying on", "walking on", "parked on", "riding"),
        *("mounted on", "hanging from", "attached to", "painted on", "growing on"),
    ),
}
BOUND = {predicate: bond for bond, predicates in _BOUND.items() for predicate in predicates}
"""Predicates that bind their subject (0) or object (1) to one other thing: a part has one owner, a held thing one
holder, a resting thing one place. In Visual Genome 2%, 10% and 7% of them have several."""
_SINGLE = "cap coat face glass hair hat head helmet jacket jean mouth neck nose pant shirt short tail tie trunk"
SINGLE = frozenset(_SINGLE.split())
"""An owner has one of each of these: several occur in at most 6% of Visual Genome's annotations (legs: 36%)."""
_PLAIN = """
on in at of has under over above below beneath behind between beside near by across along against inside
wear wearing wears part-of belonging-to in-front-of in-the-front-of on-back-of next-to adjacent-to
on-the-top-of on-the-left-of on-the-right-of hanging-from attached-to mounted-on painted-on growing-on
parked-on standing-on stand-on laying-on lying-on covering covered-in
"""
PLAIN = frozenset(name.replace("-", " ") for name in _PLAIN.split())
"""Predicates of place and of ownership. Of two boxes that are what they are called such a relation mostly holds; what
someone does ("watching", "holding") is guessed more often."""


@dataclass(frozen=True)
class Candidates:
    """R candidates of an image with N boxes.

    `pairs` (R, 2) subject and object; `predicates` (R,); `chances` (R,) P(predicate) and `none` (R,) P(no relation);
    `scores` (R,); `labels` (N,) and `boxes` (N, 4) of the image, in the `vocabulary`.
    """

    pairs: NDArray[np.int32]
    predicates: NDArray[np.int32]
    chances: NDArray[np.float32]
    none: NDArray[np.float32]
    scores: NDArray[np.floating]
    labels: NDArray[np.integer]
    boxes: NDArray[np.float64]
    vocabulary: Vocabulary

    def at(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Candidates:
        """The candidates at some rows (indices or a mask), in that order."""
        columns: tuple[Any, ...] = (self.pairs, self.predicates, self.chances, self.none, self.scores)
        pairs, predicates, chances, none, scores = (column[rows] for column in columns)
        return Candidates(pairs, predicates, chances, none, scores, self.labels, self.boxes, self.vocabulary)


Rule = Callable[[Candidates], NDArray[np.bool_]]
"""A rule: (R,) which candidates are kept; they are listed best first."""


def chosen(every: Candidates, options: PredictOptions, counts: RelationCounts | None, found: bool) -> Candidates:
    """The candidates that are shown, best first; `found` says that the boxes were found, not given."""
    some = every.at(likely(every) if options.top is None else every.scores >= floors(every, options, found))
    some = some.at(np.argsort(-some.scores, kind="stable"))
    for rule in rules(options, counts, found):
        some = some.at(rule(some))
    return some


def rules(options: PredictOptions, counts: RelationCounts | None, found: bool) -> list[Rule]:
    """The rules that apply, in order."""
    listed: list[Rule] = []
    if options.tidy:
        listed += [] if counts is None else [lambda some: plausible(some, counts)]
        listed += [one_direction, *([told_once, bound_once] if found else [])]
    if options.top is not None:
        most = options.top
        listed.append(lambda some: np.arange(len(some.pairs)) < most)
    return listed


def floors(some: Candidates, options: PredictOptions, found: bool) -> NDArray[np.float64]:
    """(R,) the least score with which each candidate is shown."""
    if options.min_relation is not None or not found:
        least = GIVEN_RELATION if options.min_relation is None else options.min_relation
        return np.full(len(some.scores), least)
    plain = np.array([name in PLAIN for name in some.vocabulary.predicates])
    return np.where(plain[some.predicates], FOUND_PLAIN, FOUND_RELATION)


def likely(some: Candidates) -> NDArray[np.bool_]:
    """Candidates whose predicate is likelier than "no relation"."""
    return np.asarray(some.chances > some.none)


def plausible(some: Candidates, counts: RelationCounts) -> NDArray[np.bool_]:
    """Candidates whose labels had these roles in training: an umbrella never wears anything."""
    ends = some.labels[some.pairs]
    return ~counts.absurd(ends[:, 0], ends[:, 1], some.predicates)


def one_direction(some: Candidates) -> NDArray[np.bool_]:
    """All but candidates from i to j that follow a better one from j to i, which mostly says the same."""
    seen: set[tuple[int, int]] = set()
    out = np.ones(len(some.pairs), dtype=bool)
    for k, (i, j) in enumerate(some.pairs.tolist()):
        out[k] = (j, i) not in seen
        seen.add((i, j))
    return out


def told_once(some: Candidates) -> NDArray[np.bool_]:
    """All but candidates that repeat a better one, with another box of the same thing.

    Two boxes are taken as one thing if they have the same label, share more than `ONE_THING` of the smaller box, and
    are related to the same box by the same predicate: two overlapping shirts of a person are one shirt.
    """
    subject, other = some.pairs[:CONSIDERED].T
    predicate, boxes = some.predicates[:CONSIDERED], some.boxes
    size = np.minimum(boxes[:, None, 2:], boxes[:, 2:]) - np.maximum(boxes[:, None, :2], boxes[:, :2])
    area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    common = size.clip(min=0).prod(axis=2) > ONE_THING * np.minimum(area[:, None], area)
    same = common & (some.labels[:, None] == some.labels)
    again = (subject[:, None] == subject) & same[np.ix_(other, other)]
    again |= (other[:, None] == other) & same[np.ix_(subject, subject)]
    again &= predicate[:, None] == predicate
    out = np.ones(len(some.pairs), dtype=bool)
    out[:CONSIDERED] = ~np.tril(again, -1).any(axis=1)
    return out


def bound_once(some: Candidates) -> NDArray[np.bool_]:
    """All but candidates that bind a thing a second time (`BOUND`), or give an owner a second head (`SINGLE`).

    Of two people close together, only one gets the hand that could belong to either; a sign in front of a house is on
    its pole.
    """
    predicates, labels = some.vocabulary.predicates, some.vocabulary.objects
    bound: dict[tuple[int, str], int] = {}
    parts: dict[tuple[int, str], int] = {}
    out = np.ones(len(some.pairs), dtype=bool)
    for k, (pair, p) in enumerate(zip(some.pairs.tolist(), some.predicates.tolist(), strict=True)):
        if predicates[p] not in BOUND:
            continue
        place, bond = BOUND[predicates[p]]
        thing, other = pair[place], pair[1 - place]
        name = labels[some.labels[thing]]
        second = bond == OWNED and name in SINGLE and parts.get((other, name), thing) != thing
        out[k] = bound.get((thing, bond), other) == other and not second
        if out[k]:
            bound[thing, bond], parts[other, name] = other, thing
    return out


def most_specific(edges: NDArray[np.float32], shares: NDArray[np.float64]) -> NDArray[np.int32]:
    """(E,) the rarest predicate of each pair that is nearly as probable as the best: "riding" rather than "on".

    Args:
        edges: (E, 1 + P), column 0 "no relation".
        shares: (P,) how common each predicate was in training.
    """
    some = edges[:, 1:]
    near = some >= NEARLY * some.max(axis=1, keepdims=True)
    return np.where(near, shares, np.inf).argmin(axis=1).astype(np.int32)
