"""Word vectors: labels of several words, other forms, files of ours and of others."""

import numpy as np
import pytest
import torch

from scenegpi.data import DataError
from scenegpi.words import vectors as vector_files
from scenegpi.words.vectors import WordVectors, label_table, load_glove_text, load_words, predicate_table, wanted_words


@pytest.fixture
def words():
    names = ["dog", "cat", "pants", "carrying", "leaning", "riding", "traffic", "light", "next", "to", "bench"]
    return WordVectors(names, np.random.default_rng(0).normal(size=(11, 6)), "made up")


def test_a_label_is_the_mean_of_its_words(words):
    want = (words.vector("traffic") + words.vector("light")) / 2
    np.testing.assert_allclose(words.vector("Traffic light"), want)
    np.testing.assert_allclose(words.vector("traffic zebra"), words.vector("traffic"))
    assert not words.vector("zebra").any()
    assert words.table(["dog", "zebra"]).shape == (2, 6)
    assert words.table([]).shape == (0, 6)


@pytest.mark.parametrize(
    ("word", "form"),
    [
        ("dogs", "dog"),
        ("pant", "pants"),
        ("carry", "carrying"),
        ("lean", "leaning"),
        ("ride", "riding"),
        ("benches", "bench"),
        ("dog", "dog"),
        ("do", None),
        ("x", None),
        ("", None),
    ],
)
def test_other_forms_of_a_word(words, word, form):
    assert words.form(word) == form


def test_hyphens_fall_back_to_the_parts(words):
    np.testing.assert_allclose(words.vector("traffic-light"), words.vector("traffic light"))


def test_names_without_any_known_word_are_told(words):
    assert words.unknown(["dog", "pant", "ride to", "zebra", "zebra light"]) == ["zebra"]


def test_neighbours_are_the_largest_cosines_without_the_word_itself(words):
    unit = words.vectors / np.linalg.norm(words.vectors, axis=1, keepdims=True)
    cosine = {word: float(unit[0] @ unit[i]) for i, word in enumerate(words.words) if word != "dog"}
    want = sorted(cosine.items(), key=lambda item: -item[1])[:4]
    found = words.neighbours("dog", 4)
    assert [word for word, _ in found] == [word for word, _ in want]
    np.testing.assert_allclose([c for _, c in found], [c for _, c in want], rtol=1e-5)
    assert "traffic" not in dict(words.neighbours("traffic light", 20))
    with pytest.raises(KeyError, match="zebra"):
        words.neighbours("zebra")


def test_tables_of_a_vocabulary(words, vocabulary):
    labels, predicates = label_table(words, vocabulary), predicate_table(words, vocabulary)
    assert labels.shape == (4, 6)
    assert predicates.shape == (4, 6)
    assert not predicates[0].any()
    np.testing.assert_allclose(predicates[3].numpy(), words.vector("next to"))
    assert labels.dtype == torch.float32


def test_file_round_trip_and_files_that_are_none(tmp_path, words):
    path = tmp_path / "words.safetensors"
    words.save(path)
    for again in (WordVectors.load(path), load_words(path)):
        assert again.words == words.words
        assert again.source == "made up"
        assert np.array_equal(again.vectors, words.vectors)
    whole = path.read_bytes()
    bad = tmp_path / "bad.safetensors"
    changed = whole.replace(b'\\"cat\\"', b'\\"dog\\"')
    assert changed != whole
    for content in (b"", b"\0" * 8 + b"{", whole[:60], whole[:-4], changed, b"\xff" * 7 + b"\x7f{}"):
        bad.write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.safetensors: "):
            WordVectors.load(bad)


def test_an_invalid_table_is_refused():
    with pytest.raises(ValueError, match="is duplicated"):
        WordVectors(["a", "a"], np.ones((2, 3)))
    for number in (np.nan, np.inf, 1e300, -2e6):
        with pytest.raises(ValueError, match="not finite"):
            WordVectors(["a"], np.array([[number]]))
    assert WordVectors(["a", "b"], np.full((2, 2), 1e-30)).neighbours("a")[0][0] == "b"
    with pytest.raises(ValueError, match="shape"):
        WordVectors(["a"], np.ones((2, 3)))


def test_public_text_files_give_only_what_is_wanted(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the 1 2 3\ndog 4 5 6\npants 7 8 9\n. . 0 0 1\ndog 0 0 0\n")
    found = load_glove_text(path, ["dog", "pant"])
    assert found.words == ("dog", "pants")
    assert found.vector("dog").tolist() == [4, 5, 6]
    everything = load_words(path)
    assert everything.words == ("the", "dog", "pants", ". .")
    path.write_text("2 3\ndog 4 5 6\ncat 1 2 3\n")
    assert load_glove_text(path).words == ("dog", "cat")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"the 1 2 3\ndog 4 5\n", "line 2: 3 columns, expected a word and 3 numbers"),
        (b"the 1 2 3\ndog 4 five 6\n", "line 2: could not convert string to float: b'five'"),
        (b"the 1 2 3\ndog 4 " + b"x" * 9999 + b" 6\n", "line 2: could not convert string to float: b'x{20,80}$"),
        (b"the 1 2 3\ndog 4 nan 6\n", "not finite, at word 'dog'"),
        (b"the 1 2 3\ndog 4 1e30 6\n", "beyond 1,000,000, or not finite, at word 'dog'"),
        (b"the 1 2 3\n\xff\xff 4 5 6\n", "line 2: 'utf-8' codec can't decode"),
        (b"the 1 2 3\n" + b"9" * 70_000 + b"\n", "line 2: longer than"),
        (b"nothing\n", "line 1: 1 columns"),
        (b"cat 1 2 3\n", "no vector for a wanted word"),
        (b"", "empty"),
    ],
)
def test_public_text_files_that_are_none(tmp_path, text, message):
    path = tmp_path / "glove.txt"
    path.write_bytes(text)
    with pytest.raises(DataError, match=rf"glove\.txt: .*{message}"):
        load_glove_text(path, ["the", "dog"] if b"the" in text else ["dog"])


def test_a_huge_text_file_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_files, "MOST_BYTES", 100)
    path = tmp_path / "glove.txt"
    path.write_text("".join(f"w{i} 1 2 3\n" for i in range(100)))
    with pytest.raises(DataError, match="line 9: more than 500,000 words or 100 bytes"):
        load_glove_text(path)
    monkeypatch.undo()
    monkeypatch.setattr(vector_files, "FREE_WORDS", 20)
    with pytest.raises(DataError, match="line 21: more than 20 words"):
        load_glove_text(path)
    assert len(load_glove_text(path, [f"w{i}" for i in range(10)])) == 10


def test_wanted_words_cover_every_form_that_a_table_looks_up(words):
    wanted = wanted_words(["pant", "traffic-light", "ride"])
    assert {"pants", "traffic", "light", "riding"} <= wanted
