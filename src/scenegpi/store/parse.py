"""A line of text -> a query, in the words of a store.

    person riding horse                       a relation; "riding horse" has any subject
    ?a wearing hat and ?a riding ?b           shared variables; * is anything
    person ?a on bench and without ?a wearing hat
    at least 3 person and no dog              counts of things, or of subjects ("2 person riding horse")
    man or woman riding horse or bike         "or" joins names; "man wearing no hat" is "man and without wearing hat"
    horse ridden by man                       a participle and "by" reverse a relation
    a man in a hat riding a horse on a beach  free text: a later part goes with the thing it most often occurs with here
    "traffic light" "next to" car             in quotes: exactly this name

A clause alternates things and predicates. Things are the longest known labels, after their attributes ("red car");
unknown words before a label (adjectives) are ignored and reported. A clause that begins with a predicate is
about the subject of the previous clause.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import takewhile

from scenegpi.store.query import Clause, Comparison, Count, Query, QueryError, Thing, Word
from scenegpi.store.words import StoreWords
from scenegpi.words.covered import PREPOSITIONS

MOST_CHARACTERS, MOST_CLAUSES, LONGEST_NAME, MOST_COUNT = 1000, 12, 5, 1000
TOKEN = re.compile(r'"(?P<exact>(?:[^"\\]|\\.)*)"|(?P<variable>\?\w*)|(?P<any>\*)|(?P<stop>[,;])|(?P<word>[^\s,;"?*]+)')
FILLERS = frozenset(
    ["a", "an", "the", "some", "there", "is", "are", "was", "were", "be", "being", "who", "which", "that", "while"]
)
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
COMPARISONS: dict[tuple[str, ...], tuple[Comparison, int]] = {
    (): (">=", 0),
    ("exactly",): ("=", 0),
    ("at", "least"): (">=", 0),
    ("at", "most"): ("<=", 0),
    ("more", "than"): (">=", 1),
    ("less", "than"): ("<=", -1),
    ("fewer", "than"): ("<=", -1),
}
"""Words before a number -> the comparison, and the amount added to the number."""
PARTICIPLES = frozenset(
    ["ridden", "worn", "held", "eaten", "thrown", "driven", "flown", "caught", "led", "fed", "taken"]
)
Token = tuple[str, str]


def parse_query(text: str, words: StoreWords) -> Query:
    """The query of a line; QueryError, one line, if it can't be understood."""
    if len(text) > MOST_CHARACTERS:
        raise QueryError(f"query: {len(text):,} characters, at most {MOST_CHARACTERS:,}")
    reader = _Reader(words)
    for negated, tokens in _clauses(_tokens(text), words):
        reader.clause(tokens, negated)
    if not reader.clauses:
        raise QueryError("query: nothing to search for; for example: person riding horse")
    if len(reader.clauses) > MOST_CLAUSES:
        raise QueryError(f"query: {len(reader.clauses)} clauses, at most {MOST_CLAUSES}")
    return Query(tuple(reader.things), tuple(reader.clauses), tuple(reader.passed))


def _tokens(text: str) -> list[Token]:
    """(kind, text): "exact", "variable", "any", "stop" or "word"."""
    found = []
    for match in TOKEN.finditer(text):
        kind = str(match.lastgroup)
        value = match[kind]
        if kind == "word":
            value = value.lower().strip(".!:()")
        if kind == "exact":
            value = re.sub(r"\\(.)", r"\1", value)
        if value or kind == "exact":
            found.append((kind, value))
    if re.sub(r"\\.", "", text).count('"') % 2:
        raise QueryError("query: a quotation mark is not closed")
    return found


def _clauses(tokens: list[Token], words: StoreWords) -> list[tuple[bool, list[Token]]]:
    """(whether it is negated, its tokens), split at "and", commas, "without" and "no".

    "man wearing no hat" is split before its predicate, which belongs to the negated clause.
    """
    found: list[tuple[bool, list[Token]]] = []
    negated = False
    now: list[Token] = []
    for token in [*tokens, ("stop", ";")]:
        word = token[1] if token[0] == "word" else None
        if token[0] == "stop" or word in ("and", "without", "no", "not"):
            kept = _open_predicate(now, words) if word == "no" and not negated else len(now)
            rest, now = now[kept:], now[:kept]
            if now:
                found.append((negated, now))
                negated = False
            now = rest
            negated = negated or word in ("without", "no", "not")
        elif word not in FILLERS:
            now.append(token)
    if negated:
        raise QueryError("query: 'without' must be followed by a thing or a relation")
    return found


def _open_predicate(tokens: list[Token], words: StoreWords) -> int:
    """Where a predicate at the end of a clause begins; the clause's length if it ends with another word."""
    ends = range(max(0, len(tokens) - LONGEST_NAME), len(tokens))
    plain = (at for at in ends if all(kind == "word" for kind, _ in tokens[at:]))
    return next((at for at in plain if words.relations(_word(tokens[at:]))), len(tokens))


class _Reader:
    """Things and clauses so far."""

    def __init__(self, words: StoreWords) -> None:
        self.words = words
        self._label_end, self._attribute_end, self._predicate_end = (
            partial(_end, known=known) for known in (words.objects, words.attribute, words.relations)
        )
        self.things: list[Thing] = []
        self.clauses: list[Clause] = []
        self.variables: dict[str, int] = {}
        self.subject: int | None = None
        self.passed: list[str] = []

    def clause(self, tokens: list[Token], negated: bool) -> None:
        count, tokens = _count(tokens)
        at, here = 0, []
        begins = self._predicate_end(tokens, 0) or _place_end(tokens)
        if begins and not self._label_end(tokens, 0) and len(tokens) > 1 and not count:
            here = [self._new(Thing()) if self.subject is None else self.subject]
        else:
            at, thing = self._thing(tokens, 0)
            here = [thing]
            if not negated:
                self.subject = thing
        first = len(self.clauses)
        while at < len(tokens):
            turned = self._turned(tokens, at)
            at, predicate = self._predicate(tokens, at)
            at, thing = self._thing(tokens, at + turned)
            ends = (thing, here[-1]) if turned else (self._attached(here, predicate, thing), thing)
            self.clauses.append(Clause(ends[0], predicate, ends[1], negated))
            here.append(thing)
        known = any(here[0] in (clause.subject, clause.object) for clause in self.clauses if clause.matched)
        if len(self.clauses) == first and not (known and not negated and not count):  # "?b is horse" only names it
            self.clauses.append(Clause(here[0], without=negated))
        if negated and len(self.clauses) > first + 1:
            raise QueryError("query: 'without' takes one thing or one relation")
        if count:
            if len(self.clauses) > first + 1:
                raise QueryError("query: a counted clause takes one thing or one relation")
            self.clauses[first] = replace(self.clauses[first], count=count)

    def _thing(self, tokens: list[Token], at: int) -> tuple[int, int]:
        """Where a thing ends, and its number."""
        if at >= len(tokens):
            raise QueryError(f"query: {_said(tokens) or 'the number'!r} must be followed by a thing")
        name, word = None, None
        attributes: tuple[Word, ...] = ()
        while at < len(tokens) and (name is None or word is None):
            kind, text = tokens[at]
            if kind == "variable" and name is None:
                name, at = text[1:], at + 1
            elif kind == "any" and word is None and name is None:
                return at + 1, self._new(Thing())
            elif word is not None or attributes:
                break
            elif name is None or self._label_end(tokens, at) or self._attribute_end(tokens, at):
                at, word, attributes = self._label(tokens, at)
            else:
                break
        return at, self._named(name, word, attributes)

    def _label(self, tokens: list[Token], at: int) -> tuple[int, Word | None, tuple[Word, ...]]:
        """The longest label from here on, after attributes and unknown words; only those words if no label follows."""
        start = at
        attributes: list[Word] = []
        while at < len(tokens) and tokens[at][0] in ("word", "exact"):
            end, adjective = self._label_end(tokens, at), self._attribute_end(tokens, at)
            if adjective and end <= adjective and (not end or self._label_end(tokens, adjective)):
                attributes.append(_word(tokens[at:adjective]))  # "orange car": a label, but one follows it
                at = adjective
                continue
            if end:
                described = {part for word in attributes for part in word.text.split()}
                self.passed += [text for kind, text in tokens[start:at] if kind == "word" and text not in described]
                end, word = self._or(tokens, at, end, self._label_end)
                return end, word, tuple(attributes)
            if tokens[at][1].isdigit():
                raise QueryError("query: a number must be at the beginning of a clause; it counts what follows")
            if at > start and self._predicate_end(tokens, at):
                break
            at += 1
        if sum(len(word.text.split()) for word in attributes) == at - start > 0:
            return at, None, tuple(attributes)
        if at == start:
            raise QueryError(f"query: expected a thing before {_said(tokens[at:])!r}")
        return at, _word(tokens[start:at]), ()

    def _predicate(self, tokens: list[Token], at: int) -> tuple[int, Word | None]:
        if tokens[at][0] == "any":
            return at + 1, None
        end, place = self._predicate_end(tokens, at), _place_end(tokens[at:])
        if self._turned(tokens, at):
            end = at + 1
        elif not end and place:
            end = at + place
        if not end:  # unknown here: the words before the next thing
            end = at
            while end < len(tokens) and tokens[end][0] in ("word", "exact") and not self._label_end(tokens, end):
                end += 1
            if end == len(tokens):  # the thing is unknown as well
                end -= 1
            if end == at:
                raise QueryError(f"query: no predicate in this store matches the beginning of {_said(tokens[at:])!r}")
        return self._or(tokens, at, end, self._predicate_end)

    def _or(self, tokens: list[Token], at: int, end: int, known: Callable[[list[Token], int], int]) -> tuple[int, Word]:
        """A name with its alternatives after "or"; an unknown name is one word."""
        words = [_word(tokens[at:end])]
        while end + 1 < len(tokens) and tokens[end] == ("word", "or") and tokens[end + 1][0] in ("word", "exact"):
            at = end + 1
            end = known(tokens, at) or at + 1
            words.append(_word(tokens[at:end]))
        return end, replace(words[0], others=tuple(words[1:]))

    def _turned(self, tokens: list[Token], at: int) -> bool:
        """Whether a participle and "by" follow, so that the next thing is the subject."""
        pair = [text if kind == "word" else "" for kind, text in tokens[at : at + 2]]
        if len(pair) < 2 or pair[1] != "by" or not (pair[0].endswith("ed") or pair[0] in PARTICIPLES):
            return False
        return self._predicate_end(tokens, at) <= at + 1 and bool(self.words.relations(Word(pair[0])))

    def _attached(self, here: list[int], predicate: Word | None, thing: int) -> int:
        """The subject of a relation: the earlier thing in its clause with which it occurs most, else the nearest."""
        if len(here) == 1 or predicate is None:
            return here[-1]
        predicates = self.words.relations(predicate)

        def often(number: int) -> int:
            subjects, objects = (self.words.any_of(self.things[end].word) for end in (number, thing))
            return self.words.often(subjects, predicates, objects)

        return max(reversed(here), key=often)

    def _named(self, name: str | None, word: Word | None, attributes: tuple[Word, ...] = ()) -> int:
        if not name:
            return self._new(Thing(word, None, attributes))
        if name not in self.variables:
            self.variables[name] = self._new(Thing(word, name, attributes))
            return self.variables[name]
        number = self.variables[name]
        before = self.things[number]
        if word is not None and before.word is not None and word != before.word:
            raise QueryError(f"query: ?{name} is both {before.word} and {word}")
        self.things[number] = Thing(before.word or word, name, (*before.attributes, *attributes))
        return number

    def _new(self, thing: Thing) -> int:
        self.things.append(thing)
        return len(self.things) - 1


def _place_end(tokens: list[Token]) -> int:
    """Where a leading preposition ends, known to the store or not; 0 for other words."""
    plain = [text if kind == "word" else "" for kind, text in tokens[:3]]
    return next((n for n in range(len(plain), 0, -1) if " ".join(plain[:n]) in PREPOSITIONS), 0)


def _end(tokens: list[Token], at: int, known: Callable[[Word], tuple[str, ...]]) -> int:
    """Where the longest known name that starts here ends; 0 if there is none."""
    if at < len(tokens) and tokens[at][0] == "exact":
        return at + 1 if known(Word(tokens[at][1], True)) else 0
    plain = list(takewhile(lambda token: token[0] == "word", tokens[at : at + LONGEST_NAME]))
    return next((at + n for n in range(len(plain), 0, -1) if known(_word(plain[:n]))), 0)


def _count(tokens: list[Token]) -> tuple[Count | None, list[Token]]:
    """A number at the beginning, with or without "at least", "at most", "exactly"; and the rest."""
    plain = [text if kind == "word" else "" for kind, text in tokens]
    said = next(tuple(plain[:n]) for n in (2, 1, 0) if tuple(plain[:n]) in COMPARISONS)
    (comparison, more), at = COMPARISONS[said], len(said)
    number = plain[at] if at < len(plain) else ""
    if not (number.isascii() and number.isdigit()) and number not in NUMBERS:
        if at:
            raise QueryError(f"query: {_said(tokens[:at])!r} must be followed by a number")
        return None, tokens
    value = max(0, more + (NUMBERS.index(number) if number in NUMBERS else int(number[:9])))
    if value > MOST_COUNT:
        raise QueryError(f"query: {number:.20}, at most {MOST_COUNT:,}")
    return Count(comparison, value), tokens[at + 1 :]


def _word(tokens: list[Token]) -> Word:
    return Word(_said(tokens), exact=len(tokens) == 1 and tokens[0][0] == "exact")


def _said(tokens: list[Token]) -> str:
    return " ".join(text for _, text in tokens)
