r"""Text -> windowed co-occurrence counts, the data that word vectors are fitted to.

.. math:: X_{ab} = \sum_{\text{captions}} \; \sum_{0 < |p - q| \le \text{window}} [w_p = a][w_q = b] \, / \, |p - q|

Symmetric, within a caption only. Words below `min_count` are left out before distances are taken. The text is read in
pieces of bounded length and counted in blocks of bounded size, so a hostile file costs time, not memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import DataError
from scenegpi.files import check_file, reason
from scenegpi.words.vectors import tokens

LONGEST_LINE = 1 << 16
MOST_WORDS = 1 << 20
MOST_PAIRS = 1 << 26
BLOCK = 1 << 18


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
        with path.open(encoding="utf-8") as handle:
            while line := handle.readline(LONGEST_LINE):
                number += 1
                yield line
    except OSError as error:
        raise DataError(path, f"cannot be read ({reason(error)})") from None
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
    """Counts of a file of captions, one per line. DataError where there is nothing to count, or far too much."""
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
