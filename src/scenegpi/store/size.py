"""How many matches a query has, estimated before it is run: triples that share nothing multiply."""

from __future__ import annotations

from math import prod

from scenegpi.store.query import Query
from scenegpi.store.words import StoreWords

MOST_MATCHES = 20_000_000
"""Beyond this a query takes longer than people wait."""


def expected_matches(query: Query, words: StoreWords, images: int) -> float:
    """Matches in all images, if every image had as many objects and relations as the mean image.

    Each clause multiplies the matches of an image by its rows; each thing that it shares with clauses before it divides
    them by the objects that the thing may be.
    """

    def labels(thing: int) -> tuple[str, ...]:
        word = query.things[thing].word
        return tuple(words.labels) if word is None else words.objects(word)

    number = max(images, 1)
    found: set[int] = set()
    factors = []
    for clause in query.clauses:
        if not clause.matched:
            continue
        ends = [clause.subject] if clause.object is None else [clause.subject, clause.object]
        if clause.object is None:
            rows = sum(words.labels[name] for name in labels(clause.subject))
        else:
            predicates = words.predicates if clause.predicate is None else words.relations(clause.predicate)
            rows = words.often(labels(clause.subject), predicates, labels(clause.object))
        shared = [sum(words.labels[name] for name in labels(end)) / number for end in ends if end in found]
        factors.append(rows / number / prod(max(each, 1.0) for each in shared))
        found |= set(ends)
    return number * prod(factors)
