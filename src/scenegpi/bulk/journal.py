"""A journal: JSON objects, one per line, appended and forced to disk before they count.

    with Journal(path) as journal:
        for number, row in journal.rows(): ...
        journal.append([{"key": "a"}])

A crash or a full disk can tear the last line, which then has no newline: it never counted and is cut off on opening. A
complete line that cannot be read is damage. It is an error that names the line, and nothing is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

from scenegpi.errors import DataError, GraphError
from scenegpi.files import check_file, no_link, open_file, parse_json, whole_file, writing

MAX_LINE = 2**28
"""Maximum bytes of one line."""
TORN = (b"{", b"\0")
"""How a torn line begins: like our lines, or with the zeros of a block that did not reach the disk before a crash."""


class Journal:
    """An open journal; the opener must hold the folder's lock (`folder_lock`), and call it from one thread at a time.

    Args:
        path: the file, created if it does not exist. A link is refused.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists():
            check_file(path, empty=True)
        self._file = self._opened()
        try:
            self._cut_torn_line()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Number of each line, from 1, and its object; DataError at the first damaged line."""
        return read_rows(self.path)

    def damage(self, number: int, message: str) -> DataError:
        """The error for a line that lacks what the caller expects."""
        return damage(self.path, number, message)

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Adds rows. They are on the disk when this returns; if it fails, none of them is in the file."""
        data = memoryview(b"".join(map(line_of, rows)))
        with writing(self.path):
            start = os.fstat(self._file.fileno()).st_size
            try:
                while data:
                    data = data[os.write(self._file.fileno(), data) :]
                os.fsync(self._file.fileno())
            except BaseException:
                os.ftruncate(self._file.fileno(), start)  # half a line would damage the next one
                raise

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replaces all lines by these rows, whole or not at all; they may come from `rows`, one by one."""
        with whole_file(self.path) as part, part.open("wb") as handle:
            for row in rows:
                handle.write(line_of(row))
        before, self._file = self._file, self._opened()
        before.close()

    def _opened(self) -> FileIO:
        with writing(self.path):
            return open(self.path, "ab+", buffering=0, opener=no_link)

    def _cut_torn_line(self) -> None:
        """Cuts off an unfinished last line, if it begins like one of ours."""
        size = os.fstat(self._file.fileno()).st_size
        end, tail = size, b""
        while end and b"\n" not in tail:
            step = min(end, 2**16)
            end -= step
            tail = os.pread(self._file.fileno(), step, end)
        start = end + tail.rfind(b"\n") + 1
        if start < size:
            if os.pread(self._file.fileno(), 1, start) not in TORN:
                raise DataError(self.path, "its last line is not a journal's; nothing was changed")
            with writing(self.path):
                os.ftruncate(self._file.fileno(), start)


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a journal that another process may be writing: a last line without newline is skipped."""
    with open_file(path, empty=True) as lines:
        number = 0
        while line := lines.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise damage(path, number, f"longer than {MAX_LINE:,} bytes")
            if not line.endswith(b"\n"):
                return
            try:
                row = parse_json(line)
            except GraphError as error:
                raise damage(path, number, str(error)) from None
            if not isinstance(row, dict):
                raise damage(path, number, f"expected a JSON object, found {type(row).__name__}")
            yield number, row


def damage(path: Path, number: int, message: str) -> DataError:
    """An error that names a line of a journal."""
    return DataError(path, f"line {number}: damaged ({message}); nothing was changed")


def line_of(row: Mapping[str, Any]) -> bytes:
    """A row as its line. Halves of surrogate pairs (names of files that are not UTF-8) become JSON's escapes."""
    text = json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode(errors="backslashreplace") + b"\n"
