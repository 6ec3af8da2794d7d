r"""GloVe: word vectors by weighted least squares on co-occurrence counts (Pennington et al. 2014).

.. math::
    J = \sum_{a, b : X_{ab} > 0} f(X_{ab}) \left(w_a^\top \tilde w_b + b_a + \tilde b_b - \log X_{ab}\right)^2
      + \sum_{a, b : X_{ab} = 0} f_0 \left(w_a^\top \tilde w_b + b_a + \tilde b_b - \log x_0\right)^2, \qquad
    f(x) = \min(1, x / x_{max})^{3/4}

The second sum is not in the paper, and `zeros=0` leaves it out. In a billion words the pairs that never occur can be
ignored; in a few hundred thousand they are most of the information. They are sampled: `zeros` of them for each
counted pair, both words drawn by frequency^(3/4). AdaGrad over shuffled minibatches.

The word's vector is w, or with `vectors="sum"` the paper's :math:`w + \tilde w`. Words with similar w have similar
neighbours (dog, cat); the sum also brings together words that occur next to each other (dog, lying), and with
little text that dominates.

X is counted from captions, symmetric and within a caption only,

.. math:: X_{ab} = \sum_{\text{captions}} \; \sum_{0 < |p - q| \le \text{window}} [w_p = a][w_q = b] \, / \, |p - q|

Words below `min_count` are left out before distances are taken. The text is read in pieces of bounded length and
counted in blocks of bounded size, so a hostile file costs time, not memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding

from scenegpi.errors import DataError
from scenegpi.files import check_file, reading
from scenegpi.words.vectors import tokens

LONGEST_LINE = 1 << 16
MOST_WORDS = 1 << 20
MOST_PAIRS = 1 << 26
BLOCK = 1 << 18
X_MAX, POWER = 3.0, 0.75
"""Counts from x_max on weigh 1, smaller ones (count / x_max) to this power."""
ZERO_COUNT, ZERO_WEIGHT = 0.01, 0.3
"""x_0 and f_0: the target of a pair that never occurs, and its weight."""


@dataclass(frozen=True)
class Cooccurrences:
    """Sparse symmetric counts: X[rows[k], columns[k]] = counts[k] > 0; `frequency (V,)` of each of the `words`."""

    words: tuple[str, ...]
    frequency: NDArray[np.int64]
    rows: NDArray[np.int32]
    columns: NDArray[np.int32]
    counts: NDArray[np.float32]


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 text file, cut where one is longer than `LONGEST_LINE`; DataError if it can't be read."""
    check_file(path)
    number = 0
    try:
        with reading(path), path.open(encoding="utf-8") as handle:
            while line := handle.readline(LONGEST_LINE):
                number += 1
                yield line
    except UnicodeDecodeError as error:
        raise DataError(path, f"line {number + 1} or soon after: not UTF-8 text ({error.reason})") from None


def count_words(lines: Iterable[str], min_count: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The words that occur at least `min_count` times, most frequent first (then by name), and how often."""
    seen: Counter[str] = Counter()
    floor = 0
    for line in lines:
        seen.update(tokens(line))
        while len(seen) > MOST_WORDS:
            floor += 1
            seen = Counter({word: count for word, count in seen.items() if count > floor})
    kept = sorted((-count, word) for word, count in seen.items() if count >= min_count)
    return tuple(word for _, word in kept), np.array([-count for count, _ in kept], dtype=np.int64)


def count_cooccurrences(path: str | Path, window: int = 10, min_count: int = 2) -> Cooccurrences:
    """Counts of a file of captions, one per line. DataError if there is nothing to count, or far too much."""
    path = Path(path)
    words, frequency = count_words(read_lines(path), min_count)
    if not words:
        raise DataError(path, f"no word occurs at least {min_count} times: nothing to learn from")
    number = {word: i for i, word in enumerate(words)}
    size = len(words)
    keys = np.zeros(0, dtype=np.int64)
    sums: NDArray[np.float64] = np.zeros(0)
    for text, caption in _blocks(path, number):
        block_keys, block_sums = _count_block(text, caption, window, size)
        keys, place = np.unique(np.concatenate([keys, block_keys]), return_inverse=True)
        sums = np.bincount(place, np.concatenate([sums, block_sums]), len(keys)).astype(np.float64, copy=False)
        if len(keys) > MOST_PAIRS:
            raise DataError(path, f"more than {MOST_PAIRS:,} pairs of words occur together: raise the minimum count")
    if not len(keys):
        raise DataError(path, "no two words occur together in a line: nothing to learn from")
    rows, columns = np.divmod(keys, size)
    return Cooccurrences(words, frequency, rows.astype(np.int32), columns.astype(np.int32), sums.astype(np.float32))


def _blocks(path: Path, number: dict[str, int]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Known words as numbers (T,) and the caption of each (T,), about BLOCK of them at a time."""
    text: list[int] = []
    lengths: list[int] = []
    for line in read_lines(path):
        known = [number[word] for word in tokens(line) if word in number]
        text += known
        lengths.append(len(known))
        if len(text) >= BLOCK:
            yield np.array(text, dtype=np.int64), np.repeat(np.arange(len(lengths)), lengths)
            text, lengths = [], []
    yield np.array(text, dtype=np.int64), np.repeat(np.arange(len(lengths)), lengths)


def _count_block(
    text: NDArray[np.int64], caption: NDArray[np.int64], window: int, size: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Keys a * V + b and their summed weights 1 / distance, one distance at a time."""
    keys = [np.zeros(0, dtype=np.int64)]
    sums = [np.zeros(0)]
    for distance in range(1, min(window, len(text) - 1) + 1):
        same = caption[distance:] == caption[:-distance]
        if not same.any():
            break
        left, right = text[:-distance][same], text[distance:][same]
        found, count = np.unique(np.concatenate([left * size + right, right * size + left]), return_counts=True)
        keys.append(found)
        sums.append(count / distance)
    return np.concatenate(keys), np.concatenate(sums)


@dataclass(frozen=True)
class GloveOptions:
    """How to fit; the defaults suit a few hundred thousand words of captions.

    Args:
        dim: width d of the vectors.
        epochs: passes over the counted pairs.
        zeros: pairs that never occur, sampled for each counted pair.
        vectors: "word" gives w, "sum" w + w~.
        learning_rate, batch: of AdaGrad.
        seed: random seed.
    """

    dim: int = 300
    epochs: int = 30
    zeros: float = 1.0
    vectors: Literal["word", "sum"] = "word"
    learning_rate: float = 0.05
    batch: int = 1 << 14
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("dim", "epochs", "batch", "learning_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: {getattr(self, name)}, expected more than 0")
        if self.zeros < 0:
            raise ValueError("zeros: expected 0 or more")


def train_glove(
    counts: Cooccurrences, options: GloveOptions | None = None, progress: Callable[[int, float], None] | None = None
) -> NDArray[np.float32]:
    """Vectors (V, d) of `counts.words`; `progress` is called with each epoch and its mean loss."""
    options = options or GloveOptions()
    random = torch.Generator().manual_seed(options.seed)
    pairs = _Pairs(counts, options, random)
    size, dim = len(counts.words), options.dim
    word, context = ((torch.rand(size, dim, generator=random) - 0.5).div_(dim).requires_grad_() for _ in range(2))
    word_bias, context_bias = (torch.zeros(size, 1, requires_grad=True) for _ in range(2))
    learned = [word, context, word_bias, context_bias]
    optimiser = torch.optim.Adagrad(learned, options.learning_rate, initial_accumulator_value=1.0, eps=0.0)
    for epoch in range(options.epochs):
        total = 0.0
        for chosen in torch.randperm(len(pairs), generator=random).split(options.batch):
            a, b, target, weight = pairs.take(chosen)
            bias = embedding(a, word_bias) + embedding(b, context_bias)
            error = (embedding(a, word) * embedding(b, context)).sum(1) + bias.squeeze(1) - target
            loss = (weight * error.square()).sum()
            optimiser.zero_grad()
            (loss / 2).backward()
            optimiser.step()
            total += float(loss.detach())
        if progress is not None:
            progress(epoch + 1, total / len(pairs))
    vectors = word if options.vectors == "word" else word + context
    return np.asarray(vectors.detach().numpy())


class _Pairs:
    """The training pairs: the counted ones, and zeros drawn anew with every batch."""

    def __init__(self, counts: Cooccurrences, options: GloveOptions, random: torch.Generator) -> None:
        self.rows, self.columns = (torch.from_numpy(x).long() for x in (counts.rows, counts.columns))
        count = torch.from_numpy(counts.counts)
        self.target = count.log()
        self.weight = (count / X_MAX).clamp(max=1) ** POWER
        self.size, self.options, self.random = len(counts.words), options, random
        self.keys = self.rows * self.size + self.columns  # ascending: rows, then columns
        draw = torch.from_numpy(counts.frequency).double() ** 0.75
        self.upto = torch.cumsum(draw, 0) / draw.sum()

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Rows, columns, targets and weights of the chosen pairs and of as many zeros as asked for."""
        found = self.rows[chosen], self.columns[chosen], self.target[chosen], self.weight[chosen]
        zeros = int(self.options.zeros * len(chosen))
        if not zeros:
            return found
        a, b = self._draw(zeros), self._draw(zeros)
        key = a * self.size + b
        place = torch.searchsorted(self.keys, key).clamp(max=len(self.keys) - 1)
        never = self.keys[place] != key
        a, b = a[never], b[never]
        target = torch.full((len(a),), float(np.log(ZERO_COUNT)))
        weight = torch.full((len(a),), ZERO_WEIGHT)
        drawn = (a, b, target, weight)
        return tuple(torch.cat(parts) for parts in zip(found, drawn, strict=True))  # type: ignore[return-value]

    def _draw(self, number: int) -> Tensor:
        uniform = torch.rand(number, dtype=torch.float64, generator=self.random)
        return torch.searchsorted(self.upto, uniform, right=True).clamp(max=self.size - 1)
