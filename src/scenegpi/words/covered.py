"""Which names of a store or a data set a typed word covers: "person" covers man and woman, "ride" covers riding.

A noun covers its singular or plural, its synonyms, names of its kinds, and longer names that end in it
("table": coffee table). A predicate covers the same verb in other forms and a few synonyms; a preposition also
covers verbs that go with it ("on": sitting on).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from scenegpi.words.forms import head, noun_forms, plain, predicate_stem
from scenegpi.words.label_map_rules import kinds_of, reviewed, synonyms_of

PREPOSITIONS = (
    *("on", "in", "at", "under", "behind", "above", "below", "over", "near", "by", "beside", "against", "along"),
    *("across", "inside", "with", "to", "from", "next to", "in front of", "on top of"),
)
_SAME = (
    ("near", "next to", "beside", "adjacent to", "by", "close to", "alongside"),
    ("under", "below", "beneath", "underneath"),
    ("above", "over"),
    ("in front of", "in the front of"),
    ("on top of", "on the top of"),
    ("in", "inside", "inside of"),
)


def covered_labels(word: str, labels: Iterable[str]) -> list[str]:
    """The labels that a word covers, in their order."""
    wanted = _same_thing(plain(word))
    return [label for label in labels if _covers(wanted, plain(label))]


def broader_labels(word: str, labels: Iterable[str]) -> list[str]:
    """The labels that a word is a kind of ("man": person), nearest first: used if no label is covered."""
    names = {plain(label): label for label in labels}
    seen = dict.fromkeys((plain(word), *noun_forms(plain(word)), *synonyms_of(plain(word)), *kinds_of(plain(word))))
    for name in list(seen):
        seen |= dict.fromkeys(kinds_of(name))
    return [names[name] for name in seen if name in names]


def covered_predicates(word: str, predicates: Iterable[str]) -> list[str]:
    """The predicates that a word or a phrase covers, in their order."""
    wanted = _meanings(predicate_stem(word))
    return [name for name in predicates if _covers_predicate(wanted, predicate_stem(name))]


@lru_cache(maxsize=1024)
def _same_thing(word: str) -> frozenset[str]:
    return frozenset((word, *noun_forms(word), *synonyms_of(word)))


def _covers(wanted: frozenset[str], label: str) -> bool:
    if label in wanted:
        return True
    seen, open_ = {label}, [label]
    while open_:  # a kind of a kind, by any of its names
        name = open_.pop()
        for kind in (kind for other in (name, *synonyms_of(name)) for kind in kinds_of(other)):
            if kind in wanted:
                return True
            if kind not in seen:
                seen.add(kind)
                open_.append(kind)
    last = head(label)
    return last != label and label not in reviewed().apart and (last in wanted or _covers(wanted, last))


@lru_cache(maxsize=1024)
def _meanings(stem: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    groups = (tuple(map(predicate_stem, group)) for group in _SAME)
    return frozenset((stem, *(other for group in groups if stem in group for other in group)))


def _covers_predicate(wanted: frozenset[tuple[str, ...]], stem: tuple[str, ...]) -> bool:
    places = {predicate_stem(phrase) for phrase in PREPOSITIONS}
    ends = () if stem[:1] in places else (stem[k:] for k in range(1, len(stem)))
    return stem in wanted or any(end in wanted and end in places for end in ends)
