"""How a name is matched to a label of another vocabulary, the most reliable way first.

same     the name itself, whatever its case, with _ or - for spaces
table    the reviewed table of COCO's 80 labels for this vocabulary, which also lists names without a match
form     its singular or plural: trees, tree; men, man
synonym  another word for it: sofa, couch
kind     its broader term: strawberry, fruit
head     its last word: coffee table, table
vectors  the nearest by word vectors, with the cosine
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from scenegpi.vocabulary import Vocabulary
from scenegpi.words.forms import head, noun_forms, plain
from scenegpi.words.vectors import WordVectors

How = Literal["same", "table", "form", "synonym", "kind", "head", "vectors", "none"]
TABLE = "label_map.json"


@dataclass(frozen=True)
class Match:
    """The match of one name: `target`, or None with a `note` that says why; `similarity` if vectors decided."""

    source: str
    target: str | None
    how: How
    note: str = ""
    similarity: float | None = None

    def __str__(self) -> str:
        if self.target is None:
            return f"{self.source}: no matching label ({self.note})"
        near = "" if self.similarity is None else f" {self.similarity:.2f}"
        return f"{self.source} -> {self.target} ({self.how}{near}{f'; {self.note}' if self.note else ''})"


@dataclass(frozen=True)
class Reviewed:
    """The tables that were written by hand (label_map.json)."""

    tables: Mapping[str, Mapping[str, Match]]
    synonyms: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, tuple[str, ...]]
    apart: frozenset[str]

    def table_for(self, target: Vocabulary) -> Mapping[str, Match]:
        """The COCO table for the vocabulary with this name, if it contains all the labels."""
        table = self.tables.get(target.name, {})
        known = {match.target for match in table.values() if match.target}
        return table if known <= set(target.objects) else {}


@cache
def reviewed() -> Reviewed:
    """The tables that ship in the package."""
    data: Any = json.loads((files("scenegpi.words") / TABLE).read_text(encoding="utf-8"))
    tables = {name: {label: _match(label, entry) for label, entry in t.items()} for name, t in data["tables"].items()}
    synonyms = {word: tuple(group) for group in data["same"] for word in group}
    kinds: dict[str, tuple[str, ...]] = {}
    for kind, members in data["kinds"].items():
        for member in members:
            kinds[member] = (*kinds.get(member, ()), kind)
    return Reviewed(tables, synonyms, kinds, frozenset(data["apart"]))


def _match(label: str, entry: Any) -> Match:
    if isinstance(entry, str):
        return Match(label, entry, "same" if entry == label else "table")
    if "none" in entry:
        return Match(label, None, "none", entry["none"])
    return Match(label, entry["to"], "same" if entry["to"] == label else "table", entry["note"])


def find_match(name: str, target: Vocabulary, words: WordVectors | None, threshold: float) -> Match:
    """The match of a name among the target's labels."""
    known = reviewed()
    labels = {plain(label): label for label in reversed(target.objects)}
    table = known.table_for(target)
    word = plain(name)
    if name in target.object_index:
        return Match(name, name, "same")
    for how, candidate in _candidates(word):
        if candidate in labels:
            return Match(name, labels[candidate], how)
        if candidate in table:  # the reviewed table's entry for a word also applies to its plural and synonyms
            entry = table[candidate]
            return Match(name, entry.target, entry.how if entry.target is None or how == "same" else how, entry.note)
    if words is None:
        return Match(name, None, "none", "no similar name, and no word vectors to compare by")
    return _nearest(name, word, target.objects, words, threshold)


def labels_for(name: str, target: Vocabulary) -> tuple[str, ...]:
    """All labels that a thing of this name may have: its match, synonyms, kinds and broader terms.

    A person may be a man, a dog an animal; none if there is no match.
    """
    match = find_match(name, target, None, 2.0).target
    if match is None:
        return ()
    words = {plain(name), plain(match)}
    broader = {kind for word in words for kind in kinds_of(word)}
    return tuple(
        label
        for label in target.objects
        if words & {(word := plain(label)), *noun_forms(word), *synonyms_of(word), *kinds_of(word)} or word in broader
    )


def _candidates(word: str) -> Iterator[tuple[How, str]]:
    """Names to try in place of a plain one, the most reliable first."""
    yield "same", word
    ways: dict[How, Callable[[str], Iterator[str]]] = {"form": noun_forms, "synonym": synonyms_of, "kind": kinds_of}
    for how, way in ways.items():
        yield from ((how, other) for other in way(word))
    last = head(word)
    if last != word and word not in reviewed().apart:
        yield from (("head", other) for other in (last, *noun_forms(last), *synonyms_of(last)))


def synonyms_of(word: str) -> Iterator[str]:
    """Synonyms, in singular and plural."""
    for form in (word, *noun_forms(word)):
        for other in reviewed().synonyms.get(form, ()):
            yield from (other, *noun_forms(other))


def kinds_of(word: str) -> Iterator[str]:
    """Its broader terms."""
    for form in (word, *noun_forms(word)):
        yield from reviewed().kinds.get(form, ())


def _nearest(name: str, word: str, labels: Sequence[str], words: WordVectors, threshold: float) -> Match:
    """The label with the largest cosine to the last word's vector, all vectors less the mean of the table.

    The mean is common to all words. Only the last word of a name is used: the others would map a bottle opener to a
    bottle.
    """
    query = words.vector(head(word))
    if not query.any():
        return Match(name, None, "none", "no similar name, and no word vector")
    middle = words.vectors.mean(axis=0)
    table = words.table(labels)
    known = table.any(axis=1)
    query, table = query - middle, table - middle
    lengths = np.linalg.norm(table, axis=1) * np.linalg.norm(query)
    cosine = np.where(known, table @ query / np.maximum(lengths, 1e-12), -1.0)
    best = int(cosine.argmax())
    similarity = float(cosine[best])
    if similarity < threshold:
        return Match(name, None, "none", f"the nearest is {labels[best]}, {similarity:.2f} is less than {threshold:g}")
    return Match(name, labels[best], "vectors", similarity=similarity)
