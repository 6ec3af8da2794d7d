"""Co-occurrence counts against a loop over positions; GloVe recovers what it is given."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scenegpi.data import DataError
from scenegpi.paper import glove
from scenegpi.paper.glove import Cooccurrences, GloveOptions, count_cooccurrences, count_words, train_glove
from scenegpi.words.vectors import LONGEST_WORD, WordVectors, tokens


def counts_by_loop(lines, window, min_count):
    frequency = Counter(word for line in lines for word in line.split())
    found = {}
    for line in lines:
        kept = [word for word in line.split() if frequency[word] >= min_count]
        for p, a in enumerate(kept):
            for q, b in enumerate(kept):
                if 0 < abs(p - q) <= window:
                    found[a, b] = found.get((a, b), 0) + 1 / abs(p - q)
    return found


@given(
    st.lists(st.lists(st.sampled_from("abcde"), max_size=8).map(" ".join), max_size=8),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([2, 1000]),
)
def test_counts_against_a_loop_over_positions(tmp_path_factory, lines, window, min_count, block):
    path = tmp_path_factory.mktemp("captions") / "captions.txt"
    path.write_text("\n".join(lines) + "\n")
    want = counts_by_loop(lines, window, min_count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(glove, "BLOCK", block)
        if not want:
            with pytest.raises(DataError, match="nothing to learn"):
                count_cooccurrences(path, window, min_count)
            return
        found = count_cooccurrences(path, window, min_count)
    named = {
        (found.words[a], found.words[b]): float(x)
        for a, b, x in zip(found.rows, found.columns, found.counts, strict=True)
    }
    assert named == pytest.approx(want)


def test_words_are_lower_case_without_punctuation():
    assert tokens("A T-shirt, on the man's back . 2") == ["a", "t-shirt", "on", "the", "man", "'s", "back", "2"]
    assert tokens("_ -- ...") == []
    assert len(tokens("x" * 1000)[0]) == LONGEST_WORD


def test_words_come_most_frequent_first():
    words, frequency = count_words(["b a a", "c b a"], 2)
    assert words == ("a", "b")
    assert frequency.tolist() == [3, 2]


def test_hostile_text_costs_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(glove, "MOST_WORDS", 10)
    words, _ = count_words([f"word{i} often often" for i in range(200)], 2)
    assert words == ("often",)
    path = tmp_path / "captions.txt"
    path.write_text("a b " * 100_000)
    monkeypatch.setattr(glove, "MOST_PAIRS", 3)
    with pytest.raises(DataError, match="raise the minimum count"):
        count_cooccurrences(path)
    path.write_bytes(b"good words\nbad \xff\xfe words\n")
    with pytest.raises(DataError, match="not UTF-8"):
        count_cooccurrences(path)
    with pytest.raises(DataError, match="cannot be read"):
        count_cooccurrences(tmp_path / "absent.txt")


def planted(size: int = 24, dim: int = 3) -> Cooccurrences:
    """Counts whose logarithm is exactly a product of rank `dim` and two biases."""
    rng = np.random.default_rng(0)
    w, b = rng.normal(size=(size, dim)) * 0.7, rng.normal(size=size) * 0.3
    counts = np.exp(w @ w.T + b[:, None] + b)
    rows, columns = np.divmod(np.arange(size * size), size)
    words = tuple(f"w{i}" for i in range(size))
    return Cooccurrences(
        words,
        np.ones(size, dtype=np.int64),
        rows.astype(np.int32),
        columns.astype(np.int32),
        counts.ravel().astype(np.float32),
    )


def test_a_matrix_of_low_rank_is_fitted():
    losses = []
    options = GloveOptions(dim=4, epochs=400, zeros=0, batch=64, learning_rate=0.1)
    train_glove(planted(), options, lambda epoch, loss: losses.append(loss))
    assert losses[-1] < 0.01 * losses[0]
    assert len(losses) == 400


def test_the_first_step_is_adagrad_on_the_gradient_of_the_loss():
    counts = planted(6)
    options = GloveOptions(dim=3, epochs=1, zeros=0, batch=1000, learning_rate=0.1, vectors="sum")
    random = torch.Generator().manual_seed(0)
    w, v = ((torch.rand(6, 3, generator=random) - 0.5).div(3).requires_grad_() for _ in range(2))
    x = torch.from_numpy(counts.counts).view(6, 6)
    loss = ((x / 3).clamp(max=1) ** 0.75 * (w @ v.T - x.log()) ** 2).sum() / 2
    loss.backward()
    stepped = [side.detach() - 0.1 * side.grad / (1 + side.grad**2).sqrt() for side in (w, v)]
    torch.testing.assert_close(torch.from_numpy(train_glove(counts, options)), stepped[0] + stepped[1])


def test_the_seed_decides_and_words_of_like_company_are_near(tmp_path):
    animals, things = ("dog", "cat", "cow"), ("table", "chair", "desk")
    rng = np.random.default_rng(0)
    lines = [f"furry {rng.choice(animals)} eats hay" for _ in range(60)]
    lines += [f"wooden {rng.choice(things)} stands inside" for _ in range(60)]
    path = tmp_path / "captions.txt"
    path.write_text("\n".join(lines))
    counts = count_cooccurrences(path)
    options = GloveOptions(dim=8, epochs=60)
    vectors = train_glove(counts, options)
    assert np.array_equal(vectors, train_glove(counts, options))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    row = {word: unit[i] for i, word in enumerate(counts.words)}
    assert row["dog"] @ row["cat"] > row["dog"] @ row["table"] + 0.3


@pytest.mark.parametrize("bad", [{"dim": 0}, {"epochs": 0}, {"learning_rate": float("nan")}, {"zeros": -1}])
def test_options_that_make_no_sense(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        GloveOptions(**bad)


@pytest.mark.shared
def test_neighbours_learned_from_real_captions_make_sense(shared_data):
    counts = count_cooccurrences(shared_data / "vg_captions" / "captions.txt", min_count=5)
    words = WordVectors(counts.words, train_glove(counts, GloveOptions(dim=50, epochs=15)))
    assert "cat" in dict(words.neighbours("dog", 5))
    assert {"road", "sidewalk"} <= set(dict(words.neighbours("street", 5)))
    assert {"shirt", "pants", "wears", "dressed", "shorts"} & set(dict(words.neighbours("wearing", 3)))
