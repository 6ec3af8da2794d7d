"""Other forms of words: singular and plural, verbs without their endings, and any form that a table may contain."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

MOST_NAME = 200
ARTICLES = frozenset({"a", "an", "the"})
_PLURALS = (
    "men man, women woman, people person, children child, leaves leaf, mice mouse, knives knife, shelves shelf, "
    "wolves wolf, feet foot, teeth tooth, geese goose, loaves loaf"
)
IRREGULAR_NOUNS = dict(pair.split() for pair in _PLURALS.split(", "))
_VERBS = (
    "has have, had have, having have, is be, are be, lying lie, lay lie, laying lie, lies lie, worn wear, held hold, "
    "ridden rid, rode rid, sat sit, wore wear, stood stand, ate eat, eaten eat, threw throw, thrown throw, flew fly, "
    "flown fly, drove driv, driven driv, hung hang, caught catch, grew grow, grown grow, made mak, led lead, fed feed, "
    "swung swing, took tak, taken tak, drank drink"
)
IRREGULAR_VERBS = dict(pair.split() for pair in _VERBS.split(", "))


def plain(name: str) -> str:
    """A name in lower case with single spaces; _ and - count as spaces."""
    return " ".join(name[:MOST_NAME].lower().replace("_", " ").replace("-", " ").split())


def head(word: str) -> str:
    """The head word of a name: the last one of "coffee table"; remarks in brackets don't count."""
    return (word.partition(" (")[0].split() or [word])[-1]


def noun_forms(word: str) -> Iterator[str]:
    """The noun with its last word in singular and plural."""
    start, space, last = word.rpartition(" ")
    for one, other in IRREGULAR_NOUNS.items():
        if last in (one, other):
            yield f"{start}{space}{other if last == one else one}"
    endings = [last + "s", last + "es"] if not last.endswith("s") else [last[:-1], last[:-2]]
    if last.endswith("ies"):
        endings.append(last[:-3] + "y")
    if last.endswith("y"):
        endings.append(last[:-1] + "ies")
    yield from (f"{start}{space}{ending}" for ending in endings if len(ending) > 2)


@lru_cache(maxsize=4096)
def predicate_stem(text: str) -> tuple[str, ...]:
    """A predicate without articles and endings: "riding on the" -> ("rid", "on")."""
    return tuple(_stem(word) for word in plain(text).split() if word not in ARTICLES)


def _stem(word: str) -> str:
    if word in IRREGULAR_VERBS:
        return IRREGULAR_VERBS[word]
    if word.endswith("ing") and len(word) > 4:
        word = word[:-3]
        if len(word) > 2 and word[-1] == word[-2] and word[-1] not in "sl":
            word = word[:-1]
    elif word.endswith(("ies", "ied")) and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("ed") and len(word) > 4:
        word = word[:-2]
        if word[-1] == word[-2] and word[-1] not in "sl":
            word = word[:-1]
    elif word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def word_forms(word: str) -> Iterator[str]:
    """A word, then its regular inflections and possible base forms, the likeliest first."""
    yield word
    stem = word[:-1]
    yield from (word + "s", word + "ing", word + word[-1:] + "ing", word + "ed", word + "es")
    if word.endswith("e"):
        yield from (stem + "ing", word + "d")
    if word.endswith("y"):
        yield from (stem + "ies", stem + "ied")
    for ending, replacements in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            yield from (word[: -len(ending)] + new for new in replacements)


_ENDINGS = (
    ("ies", ("y",)),
    ("es", ("", "e")),
    ("s", ("",)),
    ("ing", ("", "e", "s")),
    ("ied", ("y",)),
    ("ed", ("", "e")),
)
