"""A query -> SQL over the tables of a store.

Each clause that must match is a row of `relations` (or of `objects`), joined by image and by the things they share.
The score of a match is the product of P(label) of its objects, each once, and P(predicate) of its relations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import log
from typing import Any

from scenegpi.graph import SceneGraph
from scenegpi.store.query import Clause, Query
from scenegpi.store.words import StoreWords


@dataclass
class Matches:
    """`text` selects image, n0, n1, ... (the objects) and score of every match; `values` are its parameters.

    `columns`: thing of the query -> its column; optional things have no column.
    """

    text: str
    values: list[Any]
    columns: dict[int, str]


@dataclass
class _Builder:
    """Conditions so far, and the values of their parameters in the same order."""

    query: Query
    words: StoreWords
    places: dict[int, str] = field(default_factory=dict)
    """Thing -> the column with its object's number."""
    sources: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    factors: list[str] = field(default_factory=list)

    def among(self, column: str, names: tuple[str, ...]) -> list[str]:
        """The condition that a column has one of these names."""
        self.values += names
        return [f"{column} IN ({', '.join('?' * len(names))})"] if names else ["false"]

    def label(self, column: str, thing: int) -> list[str]:
        """The condition on the label of a thing."""
        word = self.query.things[thing].word
        return [] if word is None else self.among(column, self.words.objects(word))

    def row(self, alias: str, clause: Clause) -> list[str]:
        """Conditions on the labels and the predicate of a clause's row."""
        if clause.object is None:
            return self.label(f"{alias}.label", clause.subject)
        found = self.label(f"{alias}.subject_label", clause.subject)
        if clause.predicate is not None:
            found += self.among(f"{alias}.predicate", self.words.relations(clause.predicate))
        return found + self.label(f"{alias}.object_label", clause.object)

    def bound(self, alias: str, clause: Clause) -> list[str]:
        """Conditions that a row has the same things as earlier rows."""
        return [
            f"{alias}.{column} = {self.places[thing]}"
            for thing, column in _ends(clause).items()
            if thing in self.places
        ]


def matches(query: Query, words: StoreWords, images: list[int] | None = None) -> Matches:
    """All matches of a query, in all `images` or in some."""
    build = _Builder(query, words)
    joined = [clause for clause in query.clauses if clause.matched and clause.object is not None]
    joined += [clause for clause in query.clauses if clause.matched and clause.object is None]
    for clause in joined:
        if (
            clause.object is not None or clause.subject not in build.places
        ):  # otherwise its label is already a condition
            _join(build, clause)
    for thing, place in build.places.items():
        for word in query.things[thing].attributes:
            alias = f"r{len(build.sources)}"
            build.conditions += [f"{alias}.image = r0.image", f"{alias}.object = {place}"]
            build.conditions += build.among(f"{alias}.attribute", words.attribute(word))
            build.factors.append(f"{alias}.score")
            build.sources.append(f"attributes {alias}")
    for clause in query.clauses:
        if clause.without or clause.count is not None:
            _restrict(build, clause)
    if images is not None:
        build.conditions.append(f"r0.image IN ({', '.join(str(int(image)) for image in images)})")
    columns = {thing: f"n{thing}" for thing in build.places}
    chosen = ", ".join(["r0.image AS image", *(f"{place} AS n{thing}" for thing, place in build.places.items())])
    score = " * ".join(f"{factor}::DOUBLE" for factor in build.factors) or "1.0::DOUBLE"
    where = " AND ".join(build.conditions) or "true"
    sources = ", ".join(build.sources) or "images r0"
    text = f"SELECT {chosen}, max({score}) AS score FROM {sources} WHERE {where} GROUP BY ALL"
    return Matches(text, build.values, columns)


def _join(build: _Builder, clause: Clause) -> None:
    """A row that matches a clause, in the same image as the other rows."""
    alias = f"r{len(build.sources)}"
    build.conditions += build.row(alias, clause) + build.bound(alias, clause)
    if build.sources:
        build.conditions.append(f"{alias}.image = r0.image")
    if clause.subject == clause.object:
        build.conditions.append(f"{alias}.subject = {alias}.object")
    build.sources.append(f"{_table(clause)} {alias}")
    for thing, column in _ends(clause).items():
        if thing not in build.places:
            build.places[thing] = f"{alias}.{column}"
            build.factors.append(f"{alias}.score" if clause.object is None else f"{alias}.{column}_score")
    if clause.object is not None:
        build.factors.append(f"{alias}.predicate_score")


@dataclass(frozen=True)
class Among:
    """Only images with these keys, or, if not `inside`, only the others."""

    keys: frozenset[str]
    inside: bool = True


def chosen(among: Iterable[Among]) -> tuple[str, list[Any]]:
    """A condition on rows of `images`, and its parameters."""
    some = list(among)
    texts = [f"key {'IN' if each.inside else 'NOT IN'} (SELECT unnest(?::VARCHAR[]))" for each in some]
    return " AND ".join(texts) or "true", [list(each.keys) for each in some]


def ranking(found: Matches, limit: int, offset: int, least: float = 0.0, where: str = "true") -> str:
    """Images by their best match, then by their number of matches: image, score, matches, and the number of all images.

    Only images whose best match scores at least `least` and that meet the condition `where`.
    """
    some = "" if where == "true" else f"WHERE image IN (SELECT image FROM images WHERE {where}) "
    return (
        f"SELECT image, max(score) AS score, count(*) AS matches, count(*) OVER () AS images FROM ({found.text}) "
        f"{some}GROUP BY image HAVING max(score) >= {float(least)!r} "
        f"ORDER BY score DESC, matches DESC, image LIMIT {int(limit)} OFFSET {int(offset)}"
    )


def listing(where: str, uncertain: bool) -> str:
    """Images in the order in which they were added, or by the mean entropy of their scores."""
    if not uncertain:
        return f"SELECT image, key, file, 1.0 AS score FROM images WHERE {where} ORDER BY image"
    bits = "CASE WHEN p > 0 AND p < 1 THEN -(p * log2(p) + (1 - p) * log2(1 - p)) ELSE 0 END"
    scores = "SELECT image, score AS p FROM objects UNION ALL SELECT image, predicate_score FROM relations"
    means = f"SELECT image, avg({bits}) AS unsure FROM ({scores}) GROUP BY image"
    return (
        f"SELECT image, key, file, coalesce(unsure, 0) AS score FROM images LEFT JOIN ({means}) USING (image) "
        f"WHERE {where} ORDER BY score DESC, image"
    )


def similar(graph: SceneGraph, words: StoreWords, images: int) -> tuple[str, list[Any]]:
    r"""SQL for the score of every image by how much of a graph it shows, best first, and its parameters.

    .. math:: s(I) = \sum_{t} w_t \max_{r \in I,\, r \sim t} P(r) + \sum_{l} w_l \max_{o \in I,\, o \sim l} P(o),
              \qquad w = \log \frac{1 + N}{1 + n}

    over the distinct triplets t and labels l of the graph (Johnson et al. 2015); r ~ t has its labels and predicate,
    P(r) is the score of a relation; n relations (objects) of N images match, so that rare ones count more. Each
    term is one pass over a table; triplets need not hold for the same objects.
    """
    distinct = sorted({(t.subject, t.predicate, t.object) for t in graph.triplets()})
    triplets: list[Any] = [(*triplet, words.triplets.get(triplet, 0)) for triplet in distinct]
    labels: list[Any] = [(label, words.labels.get(label, 0)) for label in sorted(set(graph.names))]
    triple, product = "subject_label, predicate, object_label", "subject_score::DOUBLE * object_score * predicate_score"
    parts: list[str] = []
    values: list[Any] = []
    for table, columns, score, rows in (
        ("relations", triple, product, triplets),
        ("objects", "label", "score::DOUBLE", labels),
    ):
        if rows:
            row = f"({'?, ' * (len(rows[0]) - 1)}?::DOUBLE)"
            parts.append(
                f"SELECT image, weight * max({score}) AS part FROM {table} "
                f"JOIN (VALUES {', '.join([row] * len(rows))}) wanted({columns}, weight) USING ({columns}) "
                f"GROUP BY image, {columns}, weight"
            )
        for *names, count in rows:
            values += [*names, log((1 + images) / (1 + min(count, images)))]
    found = " UNION ALL ".join(parts) or "SELECT image, 0.0 AS part FROM images"
    text = (
        f"SELECT i.image, coalesce(f.score, 0) AS score FROM images i LEFT JOIN "
        f"(SELECT image, sum(part) AS score FROM ({found}) GROUP BY image) f USING (image) ORDER BY score DESC, i.image"
    )
    return text, values


def _restrict(build: _Builder, clause: Clause) -> None:
    """The condition on the absence or count of a clause's matches, for the things that other clauses have found."""
    conditions = build.row("x", clause)
    for thing, column in _ends(clause).items():  # "no red car": without a car that is red
        for word in build.query.things[thing].attributes:
            named = build.among("a.attribute", build.words.attribute(word))
            same = " AND ".join(["a.image = x.image", f"a.object = x.{column}", *named])
            conditions.append(f"EXISTS (SELECT 1 FROM attributes a WHERE {same})")
    others = {end for other in build.query.clauses if other is not clause for end in (other.subject, other.object)}
    conditions += [
        f"x.{column} = {build.places[thing]}"
        for thing, column in _ends(clause).items()
        if thing in build.places and thing in others and (clause.count is None or thing != clause.subject)
    ]
    if clause.subject == clause.object:
        conditions.append("x.subject = x.object")
    where = " AND ".join(["x.image = r0.image", *conditions])
    if clause.count is None:
        build.conditions.append(f"NOT EXISTS (SELECT 1 FROM {_table(clause)} x WHERE {where})")
    else:
        subject = _ends(clause)[clause.subject]
        number = f"(SELECT count(DISTINCT x.{subject}) FROM {_table(clause)} x WHERE {where})"
        right = f"{number} {clause.count.comparison} {int(clause.count.number)}"
        build.conditions.append(f"NOT ({right})" if clause.without else right)


def _table(clause: Clause) -> str:
    return "objects" if clause.object is None else "relations"


def _ends(clause: Clause) -> dict[int, str]:
    """Thing -> the column of a row that holds its object's number."""
    if clause.object is None:
        return {clause.subject: "object"}
    return {clause.object: "object", clause.subject: "subject"}
