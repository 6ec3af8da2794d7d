"""Word vectors: names in, vectors out, from any kind of file.

A label of several words ("traffic light") is the mean of its words. A word that the table lacks falls back to a close
form of it: another ending ("pant" -> "pants", "carry" -> "carrying") or, for a word with hyphens, its parts. Words
still not found are left out of the mean; a label without any known word gets the zero vector, and is reported.

Files are our own, or in GloVe's text format: a word and its d numbers on each line, separated by spaces. Large files
are read line by line, keeping only wanted words. Words may contain spaces (as in some public files), so the last d
columns are the vector, with d from the first line or the caller.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import DataError, naming
from scenegpi.files import check_file, open_file, parse_json, read_lines, whole_file
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.forms import word_forms

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = "word vectors 1"
LARGEST = 1e6
"""Maximum absolute value: squares then fit single precision. Real vectors stay below 100."""
TINY = 1e-12
TOKEN = re.compile(r"'s\b|[^\W_]+(?:-[^\W_]+)*")
"""A word: letters and digits, hyphens inside; the possessive 's is a separate word, punctuation is none."""
LONGEST_WORD = 64
LONGEST_LINE = 1 << 16
MOST_BYTES = 1 << 31
FREE_WORDS, BYTES_PER_WORD = 500_000, 50
"""A file may contain half a million words to keep, or one per 50 bytes, whichever is more."""


class WordVectors:
    """A table of word vectors.

    Args:
        words: V different words, in lower case.
        vectors: (V, d) numbers of at most LARGEST.
        source: where they come from, for display.
    """

    def __init__(self, words: Sequence[str], vectors: NDArray[np.floating], source: str = "") -> None:
        if vectors.ndim != 2 or len(vectors) != len(words) or not vectors.shape[1]:
            raise ValueError(f"vectors: shape {vectors.shape} for {len(words)} words")
        if vectors.dtype.kind not in "fiu":
            raise ValueError(f"vectors: {vectors.dtype}, expected numbers")
        with np.errstate(over="ignore"):
            self.vectors: NDArray[np.float32] = np.ascontiguousarray(vectors, dtype=np.float32)
        fine = np.abs(self.vectors) <= LARGEST  # false for NaN too
        if not fine.all():
            row = int(np.argwhere(~fine)[0][0])
            raise ValueError(f"vectors: beyond {LARGEST:,.0f}, or not finite, at word {words[row]!r:.60}")
        self.words = tuple(words)
        self.number = {word: i for i, word in enumerate(self.words)}
        if len(self.number) != len(self.words):
            raise ValueError("words: one is duplicated")
        self.source = source

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.number

    def __repr__(self) -> str:
        return f"WordVectors({len(self):,} words, {self.dim} dimensions{self.source and f', {self.source}'})"

    @property
    def dim(self) -> int:
        return self.vectors.shape[1]

    def form(self, word: str) -> str | None:
        """The word itself or the form of it that the table knows, or None."""
        return next((form for form in word_forms(word) if form in self.number), None)

    def vector(self, label: str) -> NDArray[np.float32]:
        """(d,) mean of the label's known words; zeros if none is known."""
        rows = [self.number[known] for word in label_words(label, self) if (known := self.form(word))]
        return self.vectors[rows].mean(axis=0) if rows else np.zeros(self.dim, dtype=np.float32)

    def table(self, names: Iterable[str]) -> NDArray[np.float32]:
        """(C, d) the vector of each name."""
        rows = [self.vector(name) for name in names]
        return np.stack(rows) if rows else np.zeros((0, self.dim), dtype=np.float32)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """The names of which no word is known, in any form."""
        return [name for name in names if not any(map(self.form, label_words(name, self)))]

    def neighbours(self, label: str, k: int = 10) -> list[tuple[str, float]]:
        """The k words with the largest cosine to the label, without its own words; KeyError if it is not known."""
        own = {self.form(word) for word in label_words(label, self)}
        query = self.vector(label)
        if not query.any():
            raise KeyError(f"{label!r} is not among the {len(self):,} words")
        cosine = self._unit @ (query / max(float(np.linalg.norm(query)), TINY))
        order = np.argsort(-cosine, kind="stable")[: k + len(own)].tolist()
        return [(self.words[i], float(cosine[i])) for i in order if self.words[i] not in own][:k]

    @cached_property
    def _unit(self) -> NDArray[np.float32]:
        return self.vectors / np.maximum(np.linalg.norm(self.vectors, axis=1, keepdims=True), TINY)

    def save(self, path: str | Path, half: bool = False) -> None:
        """One safetensors file; the words are a JSON list in its header, so the two stay together.

        With `half`, numbers in half precision (float16), for tables that ship.
        """
        from safetensors.numpy import save_file

        about = {"scenegpi": FORMAT, "source": self.source, "words": json.dumps(self.words, ensure_ascii=False)}
        with whole_file(Path(path)) as part:
            save_file({"vectors": self.vectors.astype(np.float16) if half else self.vectors}, part, about)

    @classmethod
    def load(cls, path: str | Path) -> WordVectors:
        """Inverse of `save`; DataError with one line on anything else."""
        from safetensors import SafetensorError, safe_open

        path = Path(path)
        check_file(path)
        try:
            with safe_open(path, framework="numpy") as file:
                about = file.metadata() or {}
                if about.get("scenegpi") != FORMAT:
                    raise DataError(path, "contains no word vectors written by scenegpi")
                words = parse_json(about["words"])
                if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                    raise DataError(path, "words: expected a list of words")
                return cls(words, file.get_tensor("vectors"), about.get("source", ""))
        except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(path, f"contains no word vectors ({error})") from None


def tokens(text: str) -> list[str]:
    """The words of a text, in lower case."""
    return [word[:LONGEST_WORD] for word in TOKEN.findall(text.lower())]


def label_words(label: str, known: WordVectors) -> Iterator[str]:
    """The words of a label; one with hyphens that is not known as a whole gives its parts."""
    for word in tokens(label):
        if "-" in word and known.form(word) is None:
            yield from word.split("-")
        else:
            yield word


def label_table(words: WordVectors, vocabulary: Vocabulary) -> Tensor:
    """(C, d): row c is the vector of label c; `x_table` of a GPI layer."""
    import torch

    return torch.from_numpy(words.table(vocabulary.objects))


def predicate_table(words: WordVectors, vocabulary: Vocabulary) -> Tensor:
    """(1 + P, d): row 0, "no relation", is zero; row p + 1 is the vector of predicate p; `edge_table` of a layer."""
    import torch

    return torch.from_numpy(np.pad(words.table(vocabulary.predicates), ((1, 0), (0, 0))))


def wanted_words(names: Iterable[str]) -> set[str]:
    """Every word, and form of a word, that a table for these names may look up."""
    words = {word for name in names for word in tokens(name)}
    words |= {part for word in words for part in word.split("-")}
    return {form for word in words for form in word_forms(word)}


def load_words(path: str | Path, names: Iterable[str] | None = None) -> WordVectors:
    """Vectors from our own safetensors or a GloVe text file; the first bytes of the file tell which."""
    path = Path(path)
    with open_file(path) as handle:
        head = handle.read(9)
    return WordVectors.load(path) if head[8:9] == b"{" else load_glove_text(path, names)


def load_glove_text(path: str | Path, names: Iterable[str] | None = None, dim: int | None = None) -> WordVectors:
    """Vectors of a GloVe text file for these names, or for all words; DataError with file and line on any other.

    A first line of two whole numbers (word2vec's header) is skipped. The first of duplicated words is used.
    """
    path = Path(path)
    wanted = None if names is None else wanted_words(names)
    found: dict[str, None] = {}
    numbers = array("f")
    check_file(path)
    most = max(FREE_WORDS, path.stat().st_size // BYTES_PER_WORD)
    for number, line in read_lines(path, LONGEST_LINE):
        line = line.rstrip()
        columns = line.count(b" ") + 1
        if number == 1 and columns == 2 and all(field.isdigit() for field in line.split()):
            continue
        dim = dim or columns - 1
        if columns <= dim or dim < 1:
            raise DataError(path, f"line {number}: {columns} columns, expected a word and {dim} numbers")
        head, *fields = line.rsplit(b" ", dim)
        try:
            word = head.decode("utf-8")
            if word in found or (wanted is not None and word not in wanted):
                continue
            numbers.extend(map(float, fields))
        except ValueError as error:
            raise DataError(path, f"line {number}: {error!s:.90}") from None
        found[word] = None
        if len(found) > most or len(numbers) * numbers.itemsize > MOST_BYTES:
            limit = f"{most:,} words or {MOST_BYTES:,} bytes of vectors"
            raise DataError(path, f"line {number}: more than {limit}; name the words wanted")
    if not found or dim is None:
        raise DataError(path, "contains no vector for a wanted word")
    with naming(path, ValueError):
        vectors = np.frombuffer(numbers, dtype=np.float32).reshape(-1, dim)
        return WordVectors(tuple(found), vectors, f"GloVe text file {path.name}")
