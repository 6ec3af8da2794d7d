"""The words of a store: labels, predicates and triplets with their counts, and what a typed word covers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import prod

from scenegpi.store.query import Query, Word
from scenegpi.words.covered import broader_labels, covered_labels, covered_predicates

Triple = tuple[str, str, str]


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
        self._covered: dict[tuple[str, Word], tuple[str, ...]] = {}

    def objects(self, word: Word) -> tuple[str, ...]:
        """The labels that a word covers, or else the label that it is a kind of; empty if no label matches."""
        found = {name for each in word.each() for name in self._of("labels", each) or self._broader(each)}
        return tuple(sorted(found))

    def relations(self, word: Word) -> tuple[str, ...]:
        """The predicates that a word covers."""
        return tuple(sorted({name for each in word.each() for name in self._of("predicates", each)}))

    def attribute(self, word: Word) -> tuple[str, ...]:
        """The attribute of this name."""
        found = word.text if word.exact else self._attributes.get(word.text.lower(), "")
        return (found,) if found in self.attributes else ()

    def _broader(self, word: Word) -> tuple[str, ...]:
        return () if word.exact else tuple(broader_labels(word.text, self.labels)[:1])

    def _of(self, kind: str, word: Word) -> tuple[str, ...]:
        if (kind, word) not in self._covered:
            names: Iterable[str] = getattr(self, kind)
            if word.exact:
                found = [name for name in names if name == word.text]
            else:
                found = covered_labels(word.text, names) if kind == "labels" else covered_predicates(word.text, names)
            self._covered[kind, word] = tuple(sorted(found))
        return self._covered[kind, word]

    def often(self, subjects: Iterable[str], predicates: Iterable[str], objects: Iterable[str]) -> int:
        """The number of relations with these labels and predicates."""
        s, p, o = set(subjects), set(predicates), set(objects)
        return sum(n for (a, b, c), n in self.triplets.items() if b in p and a in s and c in o)

    def expected_matches(self, query: Query, images: int) -> float:
        """An estimate of the number of matches, as if every image had the mean number of objects and relations.

        Each clause multiplies the matches per image by its rows per image; each thing that it shares with earlier
        clauses divides them by the number of objects that could be the thing. Triples that share nothing multiply.
        """
        number = max(images, 1)
        found: set[int] = set()
        total = float(number)
        for clause in (clause for clause in query.clauses if clause.matched):
            ends = [end for end in (clause.subject, clause.object) if end is not None]
            labels = [self.any_of(query.things[end].word) for end in ends]
            often = [sum(self.labels[name] for name in names) for names in labels]
            rows = often[0]
            if clause.object is not None:
                predicates = self.predicates if clause.predicate is None else self.relations(clause.predicate)
                rows = self.often(labels[0], predicates, labels[1])
            shared = [max(count / number, 1.0) for end, count in zip(ends, often, strict=True) if end in found]
            total *= rows / number / prod(shared)
            found |= set(ends)
        return total

    def any_of(self, word: Word | None) -> tuple[str, ...]:
        """The labels that a word covers; all labels for None."""
        return tuple(self.labels) if word is None else self.objects(word)

    def notes(self, query: Query) -> list[str]:
        """Notes on words of a query that this store does not have, with the nearest names."""
        found = []
        if query.passed:
            found.append(f"not understood, ignored: {', '.join(dict.fromkeys(query.passed)):.200}")
        for word in (word for thing in query.things if thing.word is not None for word in thing.word.each()):
            if not self._of("labels", word):
                wider = self._broader(word)
                said = f"no label {word.text!r:.60} in this store; searched for {' '.join(wider)!r}"
                found.append(said if wider else _unknown("label", word, self.labels))
        for word in (word for clause in query.clauses if clause.predicate for word in clause.predicate.each()):
            if not self.relations(word):
                found.append(_unknown("predicate", word, self.predicates))
        return list(dict.fromkeys(found))

    def suggestions(self, text: str, limit: int = 10) -> list[str]:
        """Triplets and labels that begin, or have a word that begins, with the text; the most frequent first."""
        start = " ".join(text.lower().split())
        every = {" ".join(triple): count for triple, count in self.triplets.items()} | self.labels
        near = [name for name in every if f" {start}" in f" {name}"]
        return sorted(near, key=lambda name: (not name.startswith(start), -every[name], name))[:limit]


def _unknown(kind: str, word: Word, names: Iterable[str]) -> str:
    near = get_close_matches(word.text, list(names), n=3, cutoff=0.75)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"no {kind} in this store matches {word.text!r:.60}{hint}"
