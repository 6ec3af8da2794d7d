"""A query: things, relations between them, counts, and what must be absent.

    person ?1 riding horse and ?1 wearing hat and without dog and at least 3 tree

A thing has a number; the same number is the same object in the image. Two things may be one object, as in SPARQL.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from scenegpi.errors import SceneGPIError

Comparison = Literal[">=", "<=", "="]
SAID = {">=": "at least", "<=": "at most", "=": "exactly"}


class QueryError(SceneGPIError, ValueError):
    """A query that can't be understood; one line says where."""


@dataclass(frozen=True)
class Word:
    """A name as typed; in quotes it is `exact`, otherwise it covers synonyms and kinds.

    `others` are alternatives: dog or cat.
    """

    text: str
    exact: bool = False
    others: tuple[Word, ...] = ()

    def __str__(self) -> str:
        quoted = self.text.replace("\\", "\\\\").replace('"', '\\"')
        return " or ".join([f'"{quoted}"' if self.exact else self.text, *map(str, self.others)])

    def each(self) -> tuple[Word, ...]:
        """All its alternatives."""
        return (replace(self, others=()), *self.others)


@dataclass(frozen=True)
class Thing:
    """An object to find: its `word` (None: any object), its `name` (?a) and its required `attributes` (red)."""

    word: Word | None = None
    name: str | None = None
    attributes: tuple[Word, ...] = ()


@dataclass(frozen=True)
class Count:
    """A condition on the number of different subjects (or things)."""

    comparison: Comparison
    number: int

    def __str__(self) -> str:
        return f"{SAID[self.comparison]} {self.number}"


@dataclass(frozen=True)
class Clause:
    """A relation between two things of the query (by number), or, if `object` is None, the presence of one thing.

    A `predicate` of None is any. `without` asks for absence; `count` for that many subjects.
    """

    subject: int
    predicate: Word | None = None
    object: int | None = None
    without: bool = False
    count: Count | None = None

    @property
    def matched(self) -> bool:
        """Whether an image must have a match; "at most 2" and "without" need none."""
        return not self.without and (self.count is None or (self.count.comparison != "<=" and self.count.number > 0))


@dataclass(frozen=True)
class Query:
    """Things and clauses about them, all of which an image must meet. `passed` are words that were not understood."""

    things: tuple[Thing, ...]
    clauses: tuple[Clause, ...]
    passed: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        shown: set[int] = set()
        uses = [end for clause in self.clauses for end in (clause.subject, clause.object) if end is not None]

        def thing(number: int) -> str:
            each = self.things[number]
            name = f"?{each.name or number + 1}" if uses.count(number) > 1 or each.name else ""
            first = number not in shown
            shown.add(number)
            said = [*each.attributes, *([each.word] if each.word else [])]
            word = " ".join(map(str, said)) if first or not name else ""
            return " ".join(part for part in (word, name) if part) or "*"

        parts = []
        for clause in self.clauses:
            words = ["without"] if clause.without else []
            words += [str(clause.count)] if clause.count else []
            words.append(thing(clause.subject))
            if clause.object is not None:
                words += [str(clause.predicate or "*"), thing(clause.object)]
            parts.append(" ".join(words))
        return " and ".join(parts)
