"""A line of text -> a query, by the words of a store.

    person riding horse                       a relation; "riding horse" is of anything
    ?a wearing hat and ?a riding ?b           shared variables; * is anything
    person ?a on bench and without ?a wearing hat
    at least 3 person and no dog              counts: of things, or of subjects ("2 person riding horse")
    man or woman riding horse or bike         "or" joins names; "man wearing no hat" is "man and without wearing hat"
    horse ridden by man                       a participle and "by" turn a relation round
    a man in a hat riding a horse on a beach  free text: a later part belongs to what it most often goes with here
    "traffic light" "next to" car             in quotes: exactly this name

A clause is things and predicates in turn. Things are the longest known labels, after their attributes ("red car");
other words before one that are not known (adjectives) are passed over, which the query notes. A clause that begins with
a predicate is about the subject of the clause before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

from scenegpi.store.query import Clause, Comparison, Count, Query, QueryError, Thing, Word
from scenegpi.store.words import StoreWords
from scenegpi.words.covered import PREPOSITIONS

MOST_CHARACTERS, MOST_CLAUSES, LONGEST_NAME, MOST_COUNT = 1000, 12, 5, 1000
TOKEN = re.compile(r'"(?P<exact>(?:[^"\\]|\\.)*)"|(?P<variable>\?\w*)|(?P<any>\*)|(?P<stop>[,;])|(?P<word>[^\s,;"?*]+)')
FILLERS = ("a", "an", "the", "some", "there", "is", "are", "was", "were", "be", "being", "who", "which", "that")
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
COMPARISONS: dict[str, tuple[Comparison, int]] = {
    "": (">=", 0),
    "exactly": ("=", 0),
    "at least": (">=", 0),
    "at most": ("<=", 0),
    "more than": (">=", 1),
    "less than": ("<=", -1),
    "fewer than": ("<=", -1),
}
"""What is said before a number, and what is added to it."""
PASSIVE = re.compile(r"\w+(ed|en|wn|rn|ld|ght) by")
"""Ridden, worn, thrown, held, caught by."""
Token = tuple[str, str]
"""Its kind (a group of TOKEN) and its text."""
Known = Callable[[Word], object]
"""Whether a word is a name of the store."""


def parse_query(text: str, words: StoreWords) -> Query:
    """The query that a line asks; QueryError with one line where it can't be understood."""
    if len(text) > MOST_CHARACTERS:
        raise QueryError(f"query: {len(text):,} characters, at most {MOST_CHARACTERS:,}")
    if re.sub(r"\\.", "", text).count('"') % 2:
        raise QueryError("query: a quotation mark is not closed")
    reader = _Reader(words)
    reader.read(_tokens(text))
    if not reader.clauses:
        raise QueryError("query: nothing to search for; for example: person riding horse")
    if len(reader.clauses) > MOST_CLAUSES:
        raise QueryError(f"query: {len(reader.clauses)} clauses, at most {MOST_CLAUSES}")
    return Query(tuple(reader.things), tuple(reader.clauses), tuple(reader.passed))


def _tokens(text: str) -> list[Token]:
    found = []
    for match in TOKEN.finditer(text):
        kind = match.lastgroup or ""
        value = match[kind]
        if kind == "word":
            value = value.lower().strip(".!:()")
        if kind == "exact":
            value = re.sub(r"\\(.)", r"\1", value)
        if value or kind == "exact":
            found.append((kind, value))
    return found


class _Reader:
    """Things and clauses so far; `at` is the place in the tokens of the clause that is being read."""

    def __init__(self, words: StoreWords) -> None:
        self.words = words
        self.things: list[Thing] = []
        self.clauses: list[Clause] = []
        self.variables: dict[str, int] = {}
        self.subject: int | None = None
        self.passed: list[str] = []
        self.tokens: list[Token] = []
        self.at = 0

    def read(self, tokens: list[Token]) -> None:
        """Splits a line into clauses at "and", "while", commas, "without" and "no", and reads each.

        "man wearing no hat" is split before its predicate, which then belongs to what is negated.
        """
        negated, now = False, []  # type: bool, list[Token]
        for token in [*tokens, ("stop", ";")]:
            word = token[1] if token[0] == "word" else None
            if token[0] == "stop" or word in ("and", "while", "without", "no", "not"):
                kept = len(now)
                if word == "no" and not negated:
                    ends = range(max(0, kept - LONGEST_NAME), kept)
                    kept = next((at for at in ends if _end(now, at, self.words.relations) == kept), kept)
                if kept:
                    self._clause(now[:kept], negated)
                    negated = False
                now = now[kept:]
                negated = negated or word in ("without", "no", "not")
            elif word not in FILLERS:
                now.append(token)
        if negated:
            raise QueryError("query: 'without' what?")

    def _clause(self, tokens: list[Token], negated: bool) -> None:
        count, self.tokens = _count(tokens)
        self.at, first = 0, len(self.clauses)
        if self._predicate_end(0) and not self._label_end(0) and len(self.tokens) > 1 and not count:
            here = [self._new(Thing()) if self.subject is None else self.subject]
        else:
            here = [self._thing()]
            self.subject = self.subject if negated else here[0]
        while self.at < len(self.tokens):
            passive = self._is_passive()
            predicate = self._predicate(passive)
            thing = self._thing()
            ends = (thing, here[-1]) if passive else (self._attached(here, predicate, thing), thing)
            self.clauses.append(Clause(ends[0], predicate, ends[1], negated))
            here.append(thing)
        known = any(here[0] in (clause.subject, clause.object) for clause in self.clauses if clause.matched)
        if len(self.clauses) == first and (negated or count or not known):  # "?b is horse" only names it
            self.clauses.append(Clause(here[0], without=negated))
        if (negated or count) and len(self.clauses) > first + 1:
            said = "'without'" if negated else "a counted clause"
            raise QueryError(f"query: {said} takes one thing or one relation")
        if count:
            self.clauses[first] = replace(self.clauses[first], count=count)

    def _thing(self) -> int:
        """Reads a thing; its number."""
        if self.at >= len(self.tokens):
            raise QueryError(f"query: what comes after {_said(self.tokens) or 'the number'!r}?")
        name, word = None, None
        attributes: tuple[Word, ...] = ()
        while self.at < len(self.tokens) and (name is None or word is None):
            kind, text = self.tokens[self.at]
            if kind == "variable" and name is None:
                name = text[1:]
                self.at += 1
            elif kind == "any" and word is None and name is None:
                self.at += 1
                return self._new(Thing())
            elif word is not None or attributes:
                break
            elif name is None or self._label_end(self.at) or self._attribute_end(self.at):
                word, attributes = self._label()
            else:
                break
        return self._named(name, word, attributes)

    def _label(self) -> tuple[Word | None, tuple[Word, ...]]:
        """The longest label from here on, after attributes and unknown words; or those words, where none follows."""
        start, tokens = self.at, self.tokens
        attributes: list[Word] = []
        while self.at < len(tokens) and tokens[self.at][0] in ("word", "exact"):
            end, adjective = self._label_end(self.at), self._attribute_end(self.at)
            if adjective and end <= adjective and (not end or self._label_end(adjective)):
                attributes.append(_word(tokens[self.at : adjective]))  # "orange car": a label, but one follows it
                self.at = adjective
                continue
            if end:
                described = {part for word in attributes for part in word.text.split()}
                before = tokens[start : self.at]
                self.passed += [text for kind, text in before if kind == "word" and text not in described]
                return self._or(end, self._label_end), tuple(attributes)
            if tokens[self.at][1].isdigit():
                raise QueryError("query: a number goes at the beginning of a clause, and counts what follows it")
            if self.at > start and self._predicate_end(self.at):
                break
            self.at += 1
        if sum(len(word.text.split()) for word in attributes) == self.at - start > 0:
            return None, tuple(attributes)
        if self.at == start:
            raise QueryError(f"query: expected a thing before {_said(tokens[start:])!r}")
        return _word(tokens[start : self.at]), ()

    def _predicate(self, passive: bool) -> Word | None:
        """Reads a predicate; None for any."""
        tokens, start = self.tokens, self.at
        if tokens[start][0] == "any":
            self.at += 1
            return None
        end = start + 1 if passive else self._predicate_end(start)
        if not end:  # unknown here: what stands before the next thing
            end = start
            while end < len(tokens) and tokens[end][0] in ("word", "exact") and not self._label_end(end):
                end += 1
            if end == len(tokens):  # the thing is unknown, too
                end -= 1
            if end == start:
                raise QueryError(f"query: no predicate of this store begins {_said(tokens[start:])!r}")
        word = self._or(end, self._predicate_end)
        self.at += passive  # "by"
        return word

    def _is_passive(self) -> bool:
        """Whether a participle and "by" stand here: what follows does it."""
        pair = self.tokens[self.at : self.at + 2]
        by = all(kind == "word" for kind, _ in pair) and PASSIVE.fullmatch(_said(pair))
        return bool(by) and self._predicate_end(self.at) == self.at + 1

    def _or(self, end: int, known: Callable[[int], int]) -> Word:
        """Reads a name up to `end`, with those that follow it after "or"; one that is not known is one word."""
        words = [_word(self.tokens[self.at : end])]
        kinds = [kind for kind, _ in self.tokens]
        while self.tokens[end : end + 1] == [("word", "or")] and kinds[end + 1 : end + 2] in (["word"], ["exact"]):
            start = end + 1
            end = known(start) or start + 1
            words.append(_word(self.tokens[start:end]))
        self.at = end
        return replace(words[0], others=tuple(words[1:]))

    def _attached(self, here: list[int], predicate: Word | None, thing: int) -> int:
        """Which earlier thing of its clause a relation is about: that with which it occurs most, else the nearest."""
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

    def _label_end(self, at: int) -> int:
        return _end(self.tokens, at, self.words.objects)

    def _attribute_end(self, at: int) -> int:
        return _end(self.tokens, at, self.words.attribute)

    def _predicate_end(self, at: int) -> int:
        return _end(self.tokens, at, lambda word: self.words.relations(word) or word.text in PREPOSITIONS)


def _end(tokens: list[Token], at: int, known: Known) -> int:
    """Where the longest known name from here on ends; 0 if there is none."""
    if at < len(tokens) and tokens[at][0] == "exact":
        return at + 1 if known(_word(tokens[at : at + 1])) else 0
    plain = list(takewhile(lambda token: token[0] == "word", tokens[at : at + LONGEST_NAME]))
    return next((at + n for n in range(len(plain), 0, -1) if known(_word(plain[:n]))), 0)


def _count(tokens: list[Token]) -> tuple[Count | None, list[Token]]:
    """A number at the beginning, with or without "at least", "at most", "exactly"; and the rest."""
    plain = [text if kind == "word" else "" for kind, text in tokens]
    said = next(words for words in (" ".join(plain[:2]), plain[0], "") if words in COMPARISONS)
    (comparison, more), at = COMPARISONS[said], len(said.split())
    number = plain[at] if at < len(plain) else ""
    if not (number.isascii() and number.isdigit()) and number not in NUMBERS:
        if at:
            raise QueryError(f"query: {_said(tokens[:at])!r} how many?")
        return None, tokens
    value = max(0, more + (NUMBERS.index(number) if number in NUMBERS else int(number[:9])))
    if value > MOST_COUNT:
        raise QueryError(f"query: {number:.20}, at most {MOST_COUNT:,}")
    return Count(comparison, value), tokens[at + 1 :]


def _word(tokens: list[Token]) -> Word:
    return Word(_said(tokens), exact=len(tokens) == 1 and tokens[0][0] == "exact")


def _said(tokens: list[Token]) -> str:
    return " ".join(text for _, text in tokens)
