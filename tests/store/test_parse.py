"""How a line is understood, by the words of a small store."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenegpi.store import QueryError, parse_query
from scenegpi.store.words import StoreWords

LABELS = dict.fromkeys(
    ["man", "woman", "child", "horse", "hat", "kite", "traffic light", "coffee table", "beach", "watch"], 5
)
TRIPLETS = {
    ("man", "riding", "horse"): 9,
    ("child", "riding", "horse"): 3,
    ("man", "wearing", "hat"): 9,
    ("horse", "on", "beach"): 4,
    ("child", "holding", "kite"): 4,
    ("man", "sitting on", "coffee table"): 1,
    ("traffic light", "next to", "man"): 1,
    ("man", "in", "hat"): 2,
    ("woman", "watch", "kite"): 1,
}
WORDS = StoreWords(LABELS, TRIPLETS, {"red": 3, "Dark Brown": 1, "hat": 1, "on": 1})


@pytest.mark.parametrize(
    ("line", "understood"),
    [
        ("person riding horse", "person riding horse"),
        ("A man rides the horse.", "man rides horse"),
        ("?a wearing hat and ?a riding ?b", "?a wearing hat and ?a riding ?b"),
        ("man ?a riding horse and ?a wearing hat", "man ?a riding horse and ?a wearing hat"),
        ("?a riding ?b, ?b is horse", "?a riding horse ?b"),
        ("man in a hat riding a horse on the beach", "man ?1 in hat and ?1 riding horse ?3 and ?3 on beach"),
        ("a child riding a horse, holding a kite", "child ?1 riding horse and ?1 holding kite"),
        ("big brown horse on beach", "horse on beach"),
        ("traffic light next to man", "traffic light next to man"),
        ('"traffic light" "next to" *', '"traffic light" "next to" *'),
        ("riding horse", "* riding horse"),
        ("no hat", "without hat"),
        ("horse without man", "horse and without man"),
        ("two men", "at least 2 men"),
        ("at most 3 people riding horse", "at most 3 people riding horse"),
        ("exactly 1 kite and no child", "exactly 1 kite and without child"),
        ("woman watch kite", "woman watch kite"),  # a label and a predicate
        ("watch", "watch"),
        ("* * *", "* * *"),
        ("red hat", "red hat"),
        ("a man wearing a big red hat", "man wearing red hat"),
        ("dark brown horse on beach", "dark brown horse on beach"),
        ("?a red hat on *", "red hat ?a on *"),
        ("red on beach", "red on beach"),
        ("hat man", "hat man"),  # an attribute too, where a label follows
        ("no red horse", "without red horse"),
        ("man or woman riding horse or kite", "man or woman riding horse or kite"),
        ('"man" or unicorn in or near hat', '"man" or unicorn in or near hat'),
        ("man wearing no hat", "man ?1 and without ?1 wearing hat"),
        ("man riding horse and wearing no hat", "man ?1 riding horse and without ?1 wearing hat"),
        ("more than 2 men and fewer than 2 kites", "at least 3 men and at most 1 kites"),
        ("a horse being ridden by a man", "man ridden horse"),
        (
            "the man in the hat, holding a kite and under a horse",
            "man ?1 in hat and ?1 holding kite and ?1 under horse",
        ),
        ("man in hat, across a horse", "man ?1 in hat and ?1 across horse"),  # no such predicate here
        ('"a \\"b\\\\" riding *', '"a \\"b\\\\" riding *'),
    ],
)
def test_lines(line, understood):
    assert str(parse_query(line, WORDS)) == understood


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "nothing to search for"),
        ("person riding", "'person riding' must be followed by a thing"),
        ("without", "'without' must be followed by a thing or a relation"),
        ("2", "the number"),
        ("at least horse", "'at least' must be followed by a number"),
        ("man riding 2 horse", "at the beginning"),
        ("man horse", "no predicate"),
        ('"man riding', "not closed"),
        ("man ?a riding horse and child ?a wearing hat", "both"),
        ("9999 horse", "at most 1,000"),
        ("x" * 2000, "characters"),
        (" and ".join(["horse"] * 20), "clauses"),
        ("without man riding horse on beach", "one relation"),
    ],
)
def test_what_cannot_be_understood_is_one_line(line, said):
    with pytest.raises(QueryError, match=said) as error:
        parse_query(line, WORDS)
    assert "\n" not in str(error.value)


@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from([*LABELS, "riding", "and", "without", "?a", "?b", "*", "2", '"', ",", "the", "on"]), max_size=9
    ).map(" ".join)
)
def test_any_line_is_understood_or_refused(text):
    try:
        query = parse_query(text, WORDS)
    except QueryError as error:
        said = str(error)
        query = None
    if query is None:
        assert said.startswith("query: ")
        return
    ends = {end for clause in query.clauses for end in (clause.subject, clause.object) if end is not None}
    assert ends <= set(range(len(query.things)))
    assert str(query)


def test_words_cover_kinds_synonyms_and_forms():
    from scenegpi.store.query import Word

    assert set(WORDS.objects(Word("people"))) == {"man", "woman", "child"}
    assert WORDS.objects(Word("table")) == ("coffee table",)
    assert WORDS.objects(Word("table", exact=True)) == ()
    for word in ("ride", "rode", "ridden", "rides"):
        assert WORDS.relations(Word(word)) == ("riding",)
    assert WORDS.relations(Word("wore")) == ("wearing",)
    for word in ("next to", "beside", "by", "close to", "near"):
        assert WORDS.relations(Word(word)) == ("next to",)
    assert WORDS.relations(Word("ride")) == WORDS.relations(Word("rides")) == ("riding",)
    assert WORDS.relations(Word("on")) == ("on", "sitting on")
    assert WORDS.relations(Word("beside")) == ("next to",)
    assert StoreWords({"person": 1}, {}).objects(Word("girl")) == ("person",)


def test_what_was_not_understood_is_said():
    said = WORDS.notes(parse_query("an enormous man wearing a floppy hat or unicorn", WORDS))
    assert said[0] == "not understood, ignored: enormous, floppy"
    assert said[1].startswith("no label in this store matches 'unicorn'")
    assert WORDS.notes(parse_query("a red hat on the beach", WORDS)) == []


def test_suggestions_go_on_as_the_text_does():
    assert WORDS.suggestions("man")[0] == "man riding horse"
    assert WORDS.suggestions("hor")[0] in ("horse", "horse on beach")
    assert all("kite" in text for text in WORDS.suggestions("kite"))
    assert WORDS.suggestions("zzz") == []
