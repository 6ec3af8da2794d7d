"""The words of a store: labels, predicates and triplets with how often each occurs, and what a typed word covers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache, partial

from scenegpi.store.query import Query, Word
from scenegpi.words.covered import broader_labels, covered_labels, covered_predicates

Triple = tuple[str, str, str]
CACHED = 4096
"""Words of which it is remembered what they cover."""


class StoreWords:
    """Counts of labels, of (subject label, predicate, object label), and of attributes."""

    def __init__(
        self, labels: Mapping[str, int], triplets: Mapping[Triple, int], attributes: Mapping[str, int] | None = None
    ) -> None:
        self.labels, self.triplets, self.attributes = dict(labels), dict(triplets), dict(attributes or {})
        self._attributes = {name.lower(): name for name in self.attributes}
        self.predicates: dict[str, int] = {}
        for (_, predicate, _), count in self.triplets.items():
            self.predicates[predicate] = self.predicates.get(predicate, 0) + count
        self._labels = lru_cache(CACHED)(partial(_covered, covered_labels, tuple(self.labels)))
        self._predicates = lru_cache(CACHED)(partial(_covered, covered_predicates, tuple(self.predicates)))

    def objects(self, word: Word) -> tuple[str, ...]:
        """The labels that a word covers, or the one that it is a kind of; none where no label is like it."""
        return tuple(sorted({name for each in word.each() for name in self._labels(each) or self._broader(each)}))

    def relations(self, word: Word) -> tuple[str, ...]:
        """The predicates that a word covers."""
        return tuple(sorted({name for each in word.each() for name in self._predicates(each)}))

    def attribute(self, word: Word) -> tuple[str, ...]:
        """The attribute of this name."""
        found = word.text if word.exact else self._attributes.get(word.text.lower(), "")
        return (found,) if found in self.attributes else ()

    def _broader(self, word: Word) -> tuple[str, ...]:
        return () if word.exact else tuple(broader_labels(word.text, self.labels)[:1])

    def often(self, subjects: Iterable[str], predicates: Iterable[str], objects: Iterable[str]) -> int:
        """How many relations are of these labels and predicates."""
        s, p, o = set(subjects), set(predicates), set(objects)
        return sum(n for (a, b, c), n in self.triplets.items() if b in p and a in s and c in o)

    def any_of(self, word: Word | None) -> tuple[str, ...]:
        """The labels that a word covers; all where it may be anything."""
        return tuple(self.labels) if word is None else self.objects(word)

    def notes(self, query: Query) -> list[str]:
        """What of a query is not in this store, a line each, with the nearest names."""
        found = []
        if query.passed:
            found.append(f"not understood and passed over: {', '.join(dict.fromkeys(query.passed)):.200}")
        for word in (word for thing in query.things if thing.word is not None for word in thing.word.each()):
            if not self._labels(word):
                wider = self._broader(word)
                said = f"no label {word.text!r:.60} in this store, searched for {' '.join(wider)!r}"
                found.append(said if wider else _unknown("label", word, self.labels))
        for word in (word for clause in query.clauses if clause.predicate for word in clause.predicate.each()):
            if not self.relations(word):
                found.append(_unknown("predicate", word, self.predicates))
        return list(dict.fromkeys(found))

    def suggestions(self, text: str, limit: int = 10) -> list[str]:
        """Triplets and labels that begin, or have a word that begins, as the text does; the most frequent first."""
        start = " ".join(text.lower().split())
        every = {" ".join(triple): count for triple, count in self.triplets.items()} | self.labels
        near = [name for name in every if f" {start}" in f" {name}"]
        return sorted(near, key=lambda name: (not name.startswith(start), -every[name], name))[:limit]


def _covered(cover: Callable[[str, Iterable[str]], list[str]], names: tuple[str, ...], word: Word) -> list[str]:
    return [name for name in names if name == word.text] if word.exact else cover(word.text, names)


def _unknown(kind: str, word: Word, names: Iterable[str]) -> str:
    near = get_close_matches(word.text, list(names), n=3, cutoff=0.75)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"no {kind} of this store matches {word.text!r:.60}{hint}"
