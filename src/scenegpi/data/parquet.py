"""Parquet with one row per image (docs/formats.md), in one file or a folder of files, read as a stream.

    boxes   list of lists of 4 numbers     labels  list of texts       scores  list of numbers
    id      a number or a text             file    a text              width, height

Only `boxes` must be there, or `image`: photos as bytes, or as {bytes, path} in data sets of the hub. Instead of all
these, `graph` may hold each image as the text of a JSON line, which is what `scenegpi predict --form parquet` writes.
On opening, the footers are read and the labels; rows when they are asked for, a few at a time and best in their order:
memory does not grow with the number of images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.detector_results import NO_LABEL
from scenegpi.data.limits import check_images, check_line, check_names, file_vocabulary
from scenegpi.data.named import split_of
from scenegpi.errors import DataError, GraphError, Report, RowError, require
from scenegpi.files import open_file, parse_json
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import from_dict
from scenegpi.vocabulary import Vocabulary

SUFFIX = ".parquet"
ABOUT = {"image_id": "id", "id": "id", "file_name": "file", "file": "file", "width": "width", "height": "height"}
COLUMNS = ("boxes", "labels", "scores", *ABOUT)
GRAPH, IMAGE = "graph", "image"
ROWS, VALUES, BYTES = 1024, 1 << 20, 1 << 26
"""The most rows, values in them, and bytes of a file that are read at a time."""
FREE_VALUES, VALUES_PER_BYTE = 1 << 24, 16
"""A group of rows may hold FREE_VALUES, or VALUES_PER_BYTE for each byte of its file: repeated ones take no space."""
BYTES_PER_IMAGE = 8


class ParquetRows:
    """The graphs of Parquet files, read on demand.

    Args:
        path: a file, or a folder whose `*.parquet` files are taken by name.
        report: where defects are noted. Rows are checked when they are read: an invalid one is a RowError.
        vocabulary: for graphs that hold none.
    """

    def __init__(self, path: Path, report: Report, vocabulary: Vocabulary | None = None) -> None:
        self.path, self.report = path, report
        self._table = _Table(path)
        names = self._table.names
        columns = [GRAPH] if GRAPH in names else [name for name in COLUMNS if name in names]
        self.boxed = bool({GRAPH, "boxes"} & set(columns))
        """Whether there are boxes, or only photos."""
        if not self.boxed and IMAGE not in names:
            raise DataError(path, f"there is no column boxes, graph or image, found {', '.join(names)!r:.200}")
        self._table.columns = columns or [IMAGE]
        self._photos = _Table(path, [IMAGE]) if "binary" in self._table.kind(IMAGE) else None
        self.defined: dict[int, Vocabulary] = {}
        """With graphs, the vocabulary of each file, which is in its first row."""
        self.vocabulary = vocabulary or self._vocabulary()

    def __len__(self) -> int:
        return int(self._table.starts[-1])

    def graph(self, i: int) -> SceneGraph:
        """Row i's graph; RowError if it is invalid."""
        row, (k, number) = self._table.row(i), self._table.place(i)
        try:
            data = _parsed(row[GRAPH]) if GRAPH in row else _data(row)
            check_line(data)
            return from_dict(data, self.defined.get(k, self.vocabulary))
        except GraphError as error:
            raise RowError(self._table.files[k], f"row {number}: {error}") from None

    def photo(self, i: int) -> bytes | None:
        """The content of row i's picture; None where the file holds none."""
        value = None if self._photos is None else self._photos.row(i)[IMAGE]
        value = value.get("bytes") if isinstance(value, dict) else value
        return value if isinstance(value, bytes) else None

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(N,) boxes and (N,) relations of each image."""
        table = np.array([(len(g), len(g.relations)) for g in map(self.graph, range(len(self)))], dtype=np.int64)
        return table.reshape(-1, 2)[:, 0], table.reshape(-1, 2)[:, 1]

    def split_codes(self) -> NDArray[np.int8]:
        """(N,) as the files' names tell (train-00000-of-00002.parquet), else -1."""
        codes = [split_of(self._table.files[k]) for k, _, _ in self._table.groups]
        return np.repeat(np.array(codes, dtype=np.int8), np.diff(self._table.starts))

    def _vocabulary(self) -> Vocabulary:
        """Of all labels; of graphs, that of the first file."""
        table = self._table
        if GRAPH in table.columns:
            for (k, _, _), start, end in zip(table.groups, table.starts[:-1], table.starts[1:], strict=True):
                if k in self.defined or start == end:
                    continue
                try:
                    self.defined[k] = Vocabulary.from_dict(_parsed(table.row(int(start))[GRAPH]).get("vocabulary"))
                except ValueError as error:
                    raise DataError(table.files[k], f"first row: {error}") from None
            return next(iter(self.defined.values()), Vocabulary([]))
        if "labels" not in table.columns:
            return Vocabulary([NO_LABEL])
        names: dict[str, None] = {}
        for k, file in enumerate(table.files):
            if "list" not in table.kind("labels", k).partition("<")[0]:
                raise DataError(file, f"labels: expected lists of texts, found {table.kind('labels', k)}")
            for found in table.read(k, None, ROWS, ["labels"], lambda batch: batch.column(0).flatten().unique()):
                names |= dict.fromkeys(name for name in found if isinstance(name, str))
                check_names(file, len(names), "labels")
        return file_vocabulary(self.path, sorted(names))


class _Table:
    """The rows of Parquet files, one file after the other; of the `columns` that are asked for.

    `names` are the columns of the first file; `groups` has the file, the number in it, and the rows to read at a
    time of each group of rows; the rows of group j begin at `starts[j]`.
    """

    def __init__(self, path: Path, columns: list[str] | None = None) -> None:
        self.path = path
        self.files = sorted(file for file in path.iterdir() if file.suffix == SUFFIX) if path.is_dir() else [path]
        self._open: tuple[int, Any] | None = None
        self._next: tuple[int, Iterator[list[dict[str, Any]]]] | None = None  # first row that comes, and rows from it
        self._rows: tuple[int, list[dict[str, Any]]] = (0, [])
        self.groups: list[tuple[int, int, int]] = []
        self.names: list[str] = []
        self.starts = np.cumsum([0, *(count for k in range(len(self.files)) for count in self._footer(k))])
        self.columns = columns or self.names

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": None, "_next": None, "_rows": (0, [])}

    def kind(self, column: str, k: int = 0) -> str:
        """The type of a column in file k; "" where there is no such column."""
        return str(self._file(k).schema_arrow.field(column).type) if self.files and column in self.names else ""

    def place(self, i: int) -> tuple[int, int]:
        """The file of row i, and its number there."""
        k = self.groups[self._group(i)][0]
        first = next(j for j, (other, _, _) in enumerate(self.groups) if other == k)
        return k, i - int(self.starts[first])

    def row(self, i: int) -> dict[str, Any]:
        """Row i; those after it come without being looked for again."""
        first, rows = self._rows
        if not first <= i < first + len(rows):
            start = int(self.starts[self._group(i)])
            if self._next is None or not start <= self._next[0] <= i:
                self._next = start, self._stream(self._group(i))
            first, stream = self._next
            rows = []
            while not first <= i < first + len(rows):
                first += len(rows)
                rows = next(stream, [])
                if not rows:
                    raise DataError(self.path, f"ends before row {i}, which its footer promises")
            self._rows, self._next = (first, rows), (first + len(rows), stream)
        return rows[i - first]

    def read(
        self, k: int, groups: list[int] | None, count: int, columns: list[str], part: Callable[[Any], Any]
    ) -> Iterator[list[Any]]:
        """A part of each batch of rows, as a list."""
        try:
            for batch in self._file(k).iter_batches(count, row_groups=groups, columns=columns, use_threads=False):
                yield part(batch).to_pylist()
        except (OSError, ValueError, NotImplementedError) as error:  # pyarrow's errors are of these kinds
            raise DataError(self.files[k], f"cannot be read ({_first_line(error)})") from None

    def _footer(self, k: int) -> Iterator[int]:
        """Notes the groups of a file and gives the rows of each."""
        file, parquet = self.files[k], self._file(k)
        names, known = parquet.schema_arrow.names, {*COLUMNS, GRAPH, IMAGE}
        if k and known & {*names} != known & {*self.names}:
            raise DataError(file, f"columns {', '.join(names)}, but the first file has {', '.join(self.names)}")
        self.names = self.names or names
        size = file.stat().st_size
        check_images(file, parquet.metadata.num_rows, size, BYTES_PER_IMAGE)
        for number in range(parquet.metadata.num_row_groups):
            group = parquet.metadata.row_group(number)
            values = max((group.column(j).num_values for j in range(group.num_columns)), default=0)
            if values > max(FREE_VALUES, VALUES_PER_BYTE * size):
                raise DataError(file, f"group of rows {number}: {values:,} values are too many for {size:,} bytes")
            most = min(VALUES / max(values, 1), BYTES / max(group.total_byte_size, 1))
            self.groups.append((k, number, max(1, min(ROWS, int(group.num_rows * most)))))
            yield group.num_rows

    def _group(self, i: int) -> int:
        return int(np.searchsorted(self.starts, i, side="right")) - 1

    def _stream(self, group: int) -> Iterator[list[dict[str, Any]]]:
        """The rows of a group, and of those after it."""
        for k, number, count in self.groups[group:]:
            yield from self.read(k, [number], count, self.columns, lambda batch: batch)

    def _file(self, k: int) -> Any:
        """File k as pyarrow reads it; one is open at a time."""
        if self._open is None or self._open[0] != k:
            require("parquet", "search", "pyarrow")
            import pyarrow.parquet

            file = self.files[k]
            try:
                self._open = k, pyarrow.parquet.ParquetFile(open_file(file), pre_buffer=False, buffer_size=1 << 20)
            except (OSError, ValueError) as error:
                raise DataError(file, f"cannot be read as Parquet ({_first_line(error)})") from None
        return self._open[1]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _parsed(text: Any) -> dict[str, Any]:
    data = parse_json(text) if isinstance(text, str) else None
    if not isinstance(data, dict):
        raise GraphError("graph: expected a JSON object")
    return data


def _data(row: dict[str, Any]) -> dict[str, Any]:
    """Columns of one image -> its JSON form."""
    boxes = [] if row.get("boxes") is None else row["boxes"]
    if not isinstance(boxes, list):
        raise GraphError(f"boxes: expected a list, found {boxes!r:.60}")
    objects = [{"box": box, "label": NO_LABEL} for box in boxes]
    if boxes and row.get("labels", ()) is None:
        raise GraphError("labels: missing, though there are boxes")
    for key, name in (("label", "labels"), ("score", "scores")):
        values = row.get(name)
        if values is None:
            continue
        if not isinstance(values, list) or len(values) != len(boxes):
            raise GraphError(f"{name}: expected one for each of {len(boxes)} boxes")
        for one, value in zip(objects, values, strict=True):
            one[key] = value
    return {"image": {key: row[name] for name, key in ABOUT.items() if row.get(name) is not None}, "objects": objects}
