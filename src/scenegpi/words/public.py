"""Word vectors from files: our own, or GloVe's text format.

A GloVe text file has a word and its d numbers on each line, separated by spaces. Files of several gigabytes are read
line by line; only wanted words are kept. Words may hold spaces (some public files have such lines), so the last d
columns are the vector, d being what the first line says or the caller.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from scenegpi.errors import DataError
from scenegpi.files import open_file, reason
from scenegpi.words.forms import word_forms
from scenegpi.words.vectors import WordVectors, tokens

LONGEST_LINE = 1 << 16
MOST_BYTES = 1 << 31
FREE_WORDS, BYTES_PER_WORD = 500_000, 50
"""A file may hold half a million words that are kept, or one in every 50 bytes, whichever is more."""


def wanted_words(names: Iterable[str]) -> set[str]:
    """Every word, and form of a word, that a table for these names may look up."""
    words = {word for name in names for word in tokens(name)}
    words |= {part for word in words for part in word.split("-")}
    return {form for word in words for form in word_forms(word)}


def load_words(path: str | Path, names: Iterable[str] | None = None) -> WordVectors:
    """By the file's first bytes: our own safetensors, or a GloVe text file."""
    path = Path(path)
    with open_file(path) as handle:
        head = handle.read(9)
    return WordVectors.load(path) if head[8:9] == b"{" else load_glove_text(path, names)


def load_glove_text(path: str | Path, names: Iterable[str] | None = None, dim: int | None = None) -> WordVectors:
    """Vectors of a GloVe text file for these names, or for all words; DataError with file and line if it is none.

    A first line of two whole numbers (word2vec's header) is skipped. Of a duplicated word the first counts.
    """
    path = Path(path)
    wanted = None if names is None else wanted_words(names)
    found: dict[str, None] = {}
    numbers = array("f")
    with open_file(path) as handle:
        most = max(FREE_WORDS, os.fstat(handle.fileno()).st_size // BYTES_PER_WORD)
        for number, line in _lines(path, handle):
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
        raise DataError(path, "holds no vector of a wanted word")
    try:
        vectors = np.frombuffer(numbers, dtype=np.float32).reshape(-1, dim)
        return WordVectors(tuple(found), vectors, f"GloVe text file {path.name}")
    except ValueError as error:
        raise DataError(path, str(error)) from None


def _lines(path: Path, handle: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, from 1; DataError at the first that is too long."""
    number = 0
    try:
        while line := handle.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                raise DataError(path, f"line {number}: longer than {LONGEST_LINE:,} bytes")
            yield number, line.rstrip()
    except OSError as error:
        raise DataError(path, f"cannot be read ({reason(error)})") from None
