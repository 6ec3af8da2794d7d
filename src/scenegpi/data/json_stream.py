"""Large JSON files value by value: memory follows the largest row, not the file.

    with JsonStream(path) as stream:
        for key in stream.entries():
            if key == "images":
                for text, row in stream.rows():
                    ...
            else:
                stream.skip()

A value is parsed by Python's own C reader, from a buffer that holds a piece of the file.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from scenegpi.errors import DataError, GraphError, naming
from scenegpi.files import MAX_BYTES, check_weight, json_problem, no_constant, open_file, reading

BLOCK = 2**20
MAX_VALUE = 2**28
SPACE = re.compile(r"[ \t\n\r]*")
_BLANK = ("", " ", "\t", "\n", "\r")
NEAR = 16  # an error so close to the end of the buffer may be the cut, not the file
DECODER = json.JSONDecoder(parse_constant=no_constant)


class JsonStream:
    """A JSON file, read from its beginning to its end. DataError that names the file on anything that is not JSON.

    `size` is that of the file, in bytes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = open_file(path, MAX_BYTES)
        self.size = os.fstat(self._handle.fileno()).st_size
        self._text, self._at, self._ended = "", 0, False
        head = self._read(max(BLOCK, 4))
        self._decode = codecs.getincrementaldecoder(json.detect_encoding(head[:4]))("surrogatepass").decode
        self._append(head)

    def __enter__(self) -> JsonStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.close()

    def peek(self) -> str:
        """The next character that is not space; "" at the end of the file."""
        while True:
            self._at = SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._append(self._read(BLOCK))

    def value(self) -> Any:
        """The next value, whole."""
        return self._value()[1]

    def entries(self, unique: bool = False) -> Iterator[str]:
        """The keys of the next object; after each, its value must be read. With `unique`, a duplicate is an error."""
        self._expect("{", "an object")
        seen: set[str] = set()
        more = self.peek() != "}"
        while more:
            if self.peek() != '"':
                self._fail("expected a key in double quotes")
            key = self.value()
            if unique and key in seen:
                self._fail(f"key {key!r:.60} is duplicated")
            if unique:
                seen.add(key)
            self._expect(":", "a colon after a key")
            yield key
            more = self.peek() == ","
            self._at += more
        self._expect("}", "a comma or the end of an object")

    def rows(self) -> Iterator[tuple[str, Any]]:
        """The values of the list that comes next, each with its text."""
        self._expect("[", "a list")
        more = self.peek() != "]"
        while more:
            yield self._value()
            more = self.peek() == ","
            self._at += more
        self._expect("]", "a comma or the end of a list")

    def skip(self) -> None:
        """Skips the next value; a list or an object is not held whole."""
        kind = self.peek()
        if kind == "[":
            for _ in self.rows():
                pass
        elif kind == "{":
            for _ in self.entries():
                self.value()
        else:
            self.value()

    def end(self) -> None:
        """Nothing but space may follow."""
        if self.peek():
            self._fail("unexpected text after the end")

    def _value(self) -> tuple[str, Any]:
        if self._text[self._at : self._at + 1] in _BLANK:
            self.peek()
        size = BLOCK
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
                if end <= len(self._text) - NEAR or self._ended:  # else it may be the beginning of a number: 1 of 1.5
                    text, self._at = self._text[self._at : end], end
                    return text, value
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self._text) - NEAR or error.msg.startswith("Unterminated string")
                if self._ended or not cut:
                    self._fail(error.msg)
            except (ValueError, RecursionError) as error:
                self._fail(json_problem(error))
            size *= 2  # a long value is tried again each time that twice as much of it is read
            while len(self._text) - self._at < size and not self._ended:
                self._append(self._read(BLOCK))
            if len(self._text) - self._at > MAX_VALUE:
                self._fail(f"a value of more than {MAX_VALUE:,} characters")
            with naming(self.path, GraphError):
                check_weight(self._text)

    def _expect(self, mark: str, what: str) -> None:
        if self.peek() != mark:
            self._fail(f"expected {what}")
        self._at += 1

    def _fail(self, what: str) -> NoReturn:
        near = self._text[self._at : self._at + 20]
        raise DataError(self.path, f"JSON: {what}, near {near!r}" if near else f"JSON: {what}, at the end of the file")

    def _append(self, block: bytes) -> None:
        self._ended = not block
        try:
            self._text = self._text[self._at :] + self._decode(block, final=self._ended)
        except UnicodeDecodeError as error:
            raise DataError(self.path, f"JSON: not text ({error.reason})") from None
        self._at = 0

    def _read(self, size: int) -> bytes:
        with reading(self.path):
            return self._handle.read(size)


class RowStore:
    """Rows of JSON kept as text, grouped by a key, to be parsed later: no Python object is kept for a row.

    `len` and iteration cover the groups not taken yet, in the order of the file.
    """

    def __init__(self) -> None:
        self._groups: dict[int | str, tuple[bytearray, array[int]]] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[int | str]:
        return iter(list(self._groups))

    def add(self, key: int | str, number: int, text: str) -> None:
        """One row: its group, its number in the file, its text."""
        texts, numbers = self._groups.setdefault(key, (bytearray(), array("q")))
        texts += ("," * bool(numbers) + text).encode("utf-8", "surrogatepass")
        numbers.append(number)

    def count(self, key: int | str) -> int:
        """Number of rows of a group not taken yet."""
        return len(self._groups[key][1]) if key in self._groups else 0

    def take(self, key: int | str) -> list[tuple[int, Any]]:
        """The rows of a group with their numbers, unless they were taken before."""
        texts, numbers = self._groups.pop(key, (b"", ()))
        rows = DECODER.decode(f"[{texts.decode('utf-8', 'surrogatepass')}]")  # all at once: a call for each is slow
        return list(zip(numbers, rows, strict=True))

    def drop(self, key: int | str) -> None:
        """Marks the rows of a group as taken."""
        self._groups.pop(key, None)
