"""A query -> SQL over the tables of a store.

Each clause that must match is a row of `relations` (or of `objects`), joined by image and by the things they share.
The score of a match is the product of P(label) of its objects, each once, and P(predicate) of its relations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from scenegpi.store.query import Clause, Query
from scenegpi.store.words import StoreWords

Condition = tuple[str, list[Any]]
"""SQL and its parameters."""


@dataclass
class Matches:
    """`text` selects image, n0, n1, ... (the objects) and score of every match; `values` are its parameters.

    `columns` names for each thing of the query its column, where it has one.
    """

    text: str
    values: list[Any]
    columns: dict[int, str]


def matches(query: Query, words: StoreWords, images: list[int] | None = None) -> Matches:
    """All matches of a query; of these images only, where they are given."""
    build = _Builder(query, words)
    matched = [clause for clause in query.clauses if clause.matched]
    for clause in sorted(matched, key=lambda clause: clause.object is None):
        if clause.object is not None or clause.subject not in build.places:  # else its label is a condition already
            build.join(clause)
    for thing in build.places:
        build.describe(thing)
    build.sources = build.sources or ["images r0"]
    for clause in query.clauses:
        if clause.without or clause.count is not None:
            build.restrict(clause)
    if images is not None:
        build.conditions.append((f"r0.image IN ({', '.join(str(int(image)) for image in images)})", []))
    columns = ", ".join(["r0.image AS image", *(f"{place} AS n{thing}" for thing, place in build.places.items())])
    score = " * ".join(f"{factor}::DOUBLE" for factor in build.factors) or "1.0::DOUBLE"
    where, values = _all(build.conditions)
    text = f"SELECT {columns}, max({score}) AS score FROM {', '.join(build.sources)} WHERE {where} GROUP BY ALL"
    return Matches(text, values, {thing: f"n{thing}" for thing in build.places})


@dataclass
class _Builder:
    """What the SQL of a query is made of; `places` are the columns with the object's number of each thing."""

    query: Query
    words: StoreWords
    sources: list[str] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    factors: list[str] = field(default_factory=list)
    places: dict[int, str] = field(default_factory=dict)

    def join(self, clause: Clause) -> None:
        """A row that has to be there."""
        alias = self._source(_table(clause))
        self.conditions += self._row(alias, clause)
        for thing, column in _ends(clause).items():
            number = f"{alias}.{column}"
            if thing in self.places:
                self.conditions.append((f"{number} = {self.places[thing]}", []))
            else:
                self.places[thing] = number
                self.factors.append(f"{alias}.score" if clause.object is None else f"{number}_score")
        if clause.object is not None:
            self.factors.append(f"{alias}.predicate_score")

    def describe(self, thing: int) -> None:
        """Attributes of a thing that other rows have found; their scores are factors."""
        for word in self.query.things[thing].attributes:
            alias = self._source("attributes")
            self.conditions.append((f"{alias}.object = {self.places[thing]}", []))
            self.conditions.append(_among(f"{alias}.attribute", self.words.attribute(word)))
            self.factors.append(f"{alias}.score")

    def restrict(self, clause: Clause) -> None:
        """What must not be there, or be there a given number of times, for the things that other clauses have found."""
        conditions = [("x.image = r0.image", []), *self._row("x", clause)]
        others = {end for other in self.query.clauses if other is not clause for end in (other.subject, other.object)}
        for thing, column in _ends(clause).items():
            for word in self.query.things[thing].attributes:  # "no red car": what is looked for has these attributes
                name, values = _among("a.attribute", self.words.attribute(word))
                same = f"a.image = x.image AND a.object = x.{column} AND {name}"
                conditions.append((f"EXISTS (SELECT 1 FROM attributes a WHERE {same})", values))
            counted = clause.count is not None and thing == clause.subject
            if thing in self.places and thing in others and not counted:
                conditions.append((f"x.{column} = {self.places[thing]}", []))
        where, values = _all(conditions)
        rows = f"FROM {_table(clause)} x WHERE {where}"
        if clause.count is None:
            text = f"EXISTS (SELECT 1 {rows})"
        else:
            number = f"(SELECT count(DISTINCT x.{_ends(clause)[clause.subject]}) {rows})"
            text = f"({number} {clause.count.comparison} {int(clause.count.number)})"
        self.conditions.append((f"NOT {text}" if clause.without else text, values))

    def _source(self, table: str) -> str:
        """One more table to join; its alias."""
        alias = f"r{len(self.sources)}"
        self.sources.append(f"{table} {alias}")
        if alias != "r0":
            self.conditions.append((f"{alias}.image = r0.image", []))
        return alias

    def _row(self, alias: str, clause: Clause) -> list[Condition]:
        """Labels and predicate of a row that a clause is about."""
        found: list[Condition] = []
        for thing, column in _ends(clause).items():
            word = self.query.things[thing].word
            if word is not None:
                label = "label" if clause.object is None else f"{column}_label"
                found.append(_among(f"{alias}.{label}", self.words.objects(word)))
        if clause.predicate is not None:
            found.append(_among(f"{alias}.predicate", self.words.relations(clause.predicate)))
        if clause.subject == clause.object:
            found.append((f"{alias}.subject = {alias}.object", []))
        return found


def _table(clause: Clause) -> str:
    return "objects" if clause.object is None else "relations"


def _ends(clause: Clause) -> dict[int, str]:
    """Thing -> the column of a row that holds its object's number."""
    if clause.object is None:
        return {clause.subject: "object"}
    return {clause.object: "object", clause.subject: "subject"}


def _among(column: str, names: tuple[str, ...]) -> Condition:
    return (f"{column} IN ({', '.join('?' * len(names))})", list(names)) if names else ("false", [])


def _all(conditions: Iterable[Condition]) -> Condition:
    texts, values = zip(*conditions, strict=True) if conditions else ((), ())
    return " AND ".join(texts) or "true", [value for some in values for value in some]


@dataclass(frozen=True)
class Among:
    """Only images of these keys; or, where not `inside`, only others."""

    keys: frozenset[str]
    inside: bool = True

    def condition(self) -> Condition:
        """On rows of `images`."""
        if not self.keys and not self.inside:
            return "true", []
        return f"key {'IN' if self.inside else 'NOT IN'} (SELECT unnest(?::VARCHAR[]))", [list(self.keys)]


EVERY = Among(frozenset(), inside=False)


def ranking(found: Matches, limit: int, offset: int, least: float, where: str) -> str:
    """Images by their best match, then by how many they have: image, key, file, score, matches, number of all images.

    Only those whose best match scores `least`, and that are as the condition says.
    """
    some = "" if where == "true" else f"WHERE image IN (SELECT image FROM images WHERE {where}) "
    order = "ORDER BY score DESC, matches DESC, image"
    return (
        f"SELECT image, key, file, score, matches, every FROM ("
        f"SELECT image, max(score) AS score, count(*) AS matches, count(*) OVER () AS every FROM ({found.text}) "
        f"{some}GROUP BY image HAVING max(score) >= {float(least)!r} {order} LIMIT {int(limit)} OFFSET {int(offset)}"
        f") LEFT JOIN images USING (image) {order}"
    )


def listing(where: str, uncertain: bool) -> str:
    """Images as they were added, or those first whose scores have the largest mean entropy."""
    if not uncertain:
        return f"SELECT image, key, file, 1.0 AS score FROM images WHERE {where} ORDER BY image"
    bits = "CASE WHEN p > 0 AND p < 1 THEN -(p * log2(p) + (1 - p) * log2(1 - p)) ELSE 0 END"
    scores = "SELECT image, score AS p FROM objects UNION ALL SELECT image, predicate_score FROM relations"
    means = f"SELECT image, avg({bits}) AS unsure FROM ({scores}) GROUP BY image"
    return (
        f"SELECT image, key, file, coalesce(unsure, 0) AS score FROM images LEFT JOIN ({means}) USING (image) "
        f"WHERE {where} ORDER BY score DESC, image"
    )
