"""Parquet with one row per image (docs/formats.md), in one file or a folder of files, read as a stream.

    boxes   list of lists of 4 numbers     labels  list of strings     scores  list of numbers
    id      a number or a string           file    a string            width, height

Only `boxes` is required, or `image`: photos as bytes, or as {bytes, path} in data sets of the hub. Instead of all
these, `graph` may hold each image as the text of a JSON line, which is what `scenegpi predict --form parquet` writes;
and data sets of the hub have `objects` with `relations` (hub_rows). On opening, the footers and the labels are read;
rows are read on demand, a few at a time, fastest in order: memory does not grow with the number of images.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.detector_results import NO_LABEL
from scenegpi.data.graphs import Counts, count_graphs
from scenegpi.data.hub_rows import COLUMNS as HUB
from scenegpi.data.hub_rows import OBJECTS, Tables, hub_fields, hub_names
from scenegpi.data.limits import check_crowd, check_images, check_line, check_names, file_vocabulary
from scenegpi.data.named import corners, split_of
from scenegpi.errors import DataError, GraphError, Report, RowError, first_line, require
from scenegpi.files import open_file, parse_json
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import from_dict
from scenegpi.vocabulary import Vocabulary

SUFFIX = ".parquet"
ABOUT = {"image_id": "id", "file": "file", "width": "width", "height": "height"}
COLUMNS = ("boxes", "labels", "scores", *ABOUT.values())
GRAPH = "graph"
ROWS, VALUES = 1024, 1 << 20
"""Maximum number of rows, and of values in them, that are read at a time."""
FREE_VALUES, VALUES_PER_BYTE = 1 << 24, 16
"""A row group may hold FREE_VALUES, or VALUES_PER_BYTE for each byte of its file: repeated values take no space."""
BYTES_PER_IMAGE = 8
IMAGE, BYTES = "image", 1 << 26
"""The column of pictures, and how much of a file is read at a time."""


class ParquetRows:
    """The graphs of Parquet files, read on demand.

    Args:
        path: a file, or a folder whose `*.parquet` files are taken by name.
        report: where defects are noted. Rows are checked when they are read: an invalid one is a RowError.
        vocabulary: for graphs without a vocabulary.
        pictures: read only the column of pictures.
    """

    def __init__(
        self, path: Path, report: Report, vocabulary: Vocabulary | None = None, pictures: bool = False
    ) -> None:
        self.path, self.report, self.pictures = path, report, pictures
        self.boxed = True
        """Whether there are boxes, or only photos."""
        self._photos: ParquetRows | None = None
        self.files = parquet_files(path)
        self._open: tuple[int, Any] | None = None
        self._next: tuple[int, Iterator[list[dict[str, Any]]]] | None = None  # first row that comes, and rows from it
        self._rows: tuple[int, list[dict[str, Any]]] = (0, [])
        self.groups: list[tuple[int, int, int]] = []
        """File, number in the file, and rows at a time of each row group."""
        counts = [0]
        self.columns: list[str] = []
        self.hub: Tables | None = None
        """With `objects`, the names of their numbers."""
        for k, file in enumerate(self.files):
            counts += self._footer(k, file)
        self.starts = np.cumsum(counts)
        self.defined: dict[int, Vocabulary] = {}
        """With graphs, the vocabulary of each file, which is in its first row."""
        self.vocabulary = vocabulary or self._vocabulary()
        fields = {} if pictures or not self.files else {each.name: each.type for each in self._file(0).schema_arrow}
        if "binary" in str(fields.get(IMAGE)):
            self._photos = ParquetRows(path, report, self.vocabulary, pictures=True)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def graph(self, i: int) -> SceneGraph:
        """Row i's graph; RowError if it is invalid."""
        row, group = self._row(i), self._group(i)
        k = self.groups[group][0]
        try:
            if GRAPH in self.columns:
                data = _parsed(row[GRAPH])
                check_line(data)
                return from_dict(data, self.defined.get(k, self.vocabulary))
            fields = _fields(row) if self.hub is None else hub_fields(row, self.hub)
            return SceneGraph(vocabulary=self.vocabulary, **fields)
        except GraphError as error:
            first = next(j for j, (other, _, _) in enumerate(self.groups) if other == k)
            raise RowError(self.files[k], f"row {i - int(self.starts[first])}: {error}") from None

    def fields(self, i: int, *keys: str) -> list[Any]:
        """The values of keys in row i's JSON line that are not part of the graph, or None."""
        try:
            return list(map(_parsed(self._row(i).get(GRAPH)).get, keys))
        except GraphError:  # reported when the graph is read
            return [None] * len(keys)

    def photo(self, i: int) -> bytes | None:
        """The content of row i's picture; None where the file holds none."""
        value = None if self._photos is None else self._photos._row(i)[IMAGE]
        value = value.get("bytes") if isinstance(value, dict) else value
        return value if isinstance(value, bytes) else None

    def counts(self) -> Counts:
        """(N,) boxes and (N,) relations of each image."""
        return count_graphs(map(self.graph, range(len(self))))

    def split_codes(self) -> NDArray[np.int8]:
        """(N,) by the files' names (train-00000-of-00002.parquet), else -1."""
        codes = [split_of(self.files[k]) for k, _, _ in self.groups]
        return np.repeat(np.array(codes, dtype=np.int8), np.diff(self.starts))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": None, "_next": None, "_rows": (0, [])}

    def _footer(self, k: int, file: Path) -> Iterator[int]:
        """Notes the groups of a file and gives the rows of each."""
        parquet = self._file(k)
        names = parquet.schema_arrow.names
        columns = [GRAPH] if GRAPH in names else [name for name in COLUMNS if name in names]
        if "boxes" not in columns and OBJECTS in names:
            columns = [name for name in HUB if name in names]
            self.hub = hub_names(parquet.schema_arrow.metadata)
        elif "boxes" not in columns and GRAPH not in columns and IMAGE in names:
            columns = [name for name in HUB if name in names] or [IMAGE]
            self.boxed, self.hub = False, {}
        elif "boxes" not in columns and GRAPH not in columns:
            raise DataError(file, f"expected a column boxes, objects, graph or image, found {', '.join(names)!r:.200}")
        columns = [IMAGE] if self.pictures else columns
        if k and columns != self.columns:
            raise DataError(file, f"columns {', '.join(columns)}, but earlier files have {', '.join(self.columns)}")
        self.columns = columns
        size = os.stat(file).st_size
        check_images(file, parquet.metadata.num_rows, size, BYTES_PER_IMAGE)
        for number in range(parquet.metadata.num_row_groups):
            group = parquet.metadata.row_group(number)
            values = max((group.column(j).num_values for j in range(group.num_columns)), default=0)
            if values > max(FREE_VALUES, VALUES_PER_BYTE * size):
                raise DataError(file, f"row group {number}: {values:,} values are too many for {size:,} bytes")
            most = min(VALUES / max(values, 1), BYTES / max(group.total_byte_size, 1))
            self.groups.append((k, number, max(1, min(ROWS, int(group.num_rows * most)))))
            yield group.num_rows

    def _vocabulary(self) -> Vocabulary:
        """All labels; for graphs, the vocabulary of the first file."""
        if GRAPH in self.columns:
            for j, (k, _, _) in enumerate(self.groups):
                if k in self.defined or self.starts[j] == self.starts[j + 1]:
                    continue
                try:
                    found = _parsed(self._row(int(self.starts[j]))[GRAPH]).get("vocabulary")
                    self.defined[k] = Vocabulary.from_dict(found)
                except ValueError as error:
                    raise DataError(self.files[k], f"first row: {error}") from None
            return next(iter(self.defined.values()), Vocabulary([]))
        if self.hub is not None and self.boxed:
            return self._hub_vocabulary()
        if "labels" not in self.columns:
            return Vocabulary([NO_LABEL])
        names: dict[str, None] = {}
        for k, file in enumerate(self.files):
            kind = self._file(k).schema_arrow.field("labels").type
            if "list" not in str(kind).partition("<")[0]:
                raise DataError(file, f"labels: expected lists of strings, found {kind}")
            for found in self._read(k, None, ROWS, ["labels"], lambda batch: batch.column(0).flatten().unique()):
                names |= dict.fromkeys(name for name in found if isinstance(name, str))
                check_names(file, len(names), "labels")
        return file_vocabulary(self.path, sorted(names))

    def _hub_vocabulary(self) -> Vocabulary:
        """The names in the metadata, or else those that occur."""
        assert self.hub is not None
        found: dict[str, dict[str, None]] = {kind: {} for kind in ("objects", "predicates")}
        for kind, names in self.hub.items():
            found[kind] |= dict.fromkeys(names.values())
        for i in range(len(self)) if not all(found.values()) else ():
            try:
                fields = hub_fields(self._row(i), self.hub)
            except GraphError:
                continue  # reported when the row is read
            found["objects"] |= dict.fromkeys(sorted(fields["labels"]))
            found["predicates"] |= dict.fromkeys(sorted(name for _, _, name in fields["relations"]))
            for kind, seen in found.items():
                check_names(self.path, len(seen), kind)
        return file_vocabulary(self.path, found["objects"], tuple(found["predicates"]))

    def _group(self, i: int) -> int:
        return int(np.searchsorted(self.starts, i, side="right")) - 1

    def _row(self, i: int) -> dict[str, Any]:
        """Row i; the rows after it are then read without another lookup."""
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
                    raise DataError(self.path, f"ends before row {i}, though its footer declares it")
            self._rows, self._next = (first, rows), (first + len(rows), stream)
        return rows[i - first]

    def _stream(self, group: int) -> Iterator[list[dict[str, Any]]]:
        """The rows of a group, and of those after it."""
        for k, number, count in self.groups[group:]:
            yield from self._read(k, [number], count, self.columns, lambda batch: batch)

    def _read(
        self, k: int, groups: list[int] | None, count: int, columns: list[str], part: Callable[[Any], Any]
    ) -> Iterator[list[Any]]:
        """A part of each batch of rows, as a list."""
        try:
            for batch in self._file(k).iter_batches(count, row_groups=groups, columns=columns, use_threads=False):
                yield part(batch).to_pylist()
        except (OSError, ValueError, NotImplementedError) as error:  # pyarrow's errors are of these kinds
            raise DataError(self.files[k], f"cannot be read ({first_line(error)})") from None

    def _file(self, k: int) -> Any:
        """File k as pyarrow reads it; one is open at a time."""
        if self._open is None or self._open[0] != k:
            pq = import_parquet()
            file = self.files[k]
            try:
                self._open = k, pq.ParquetFile(open_file(file), pre_buffer=False, buffer_size=1 << 20)
            except (OSError, ValueError) as error:
                raise DataError(file, f"cannot be read as Parquet ({first_line(error)})") from None
        return self._open[1]


def parquet_files(path: Path) -> list[Path]:
    """The files of a folder by name, or the one file."""
    return sorted(file for file in path.iterdir() if file.suffix == SUFFIX) if path.is_dir() else [path]


def import_parquet() -> Any:
    """The module pyarrow.parquet; DataError that says what to install."""
    require("parquet", "search", "pyarrow")
    import pyarrow.parquet

    return pyarrow.parquet


def _parsed(text: Any) -> dict[str, Any]:
    data = parse_json(text) if isinstance(text, str) else None
    if not isinstance(data, dict):
        raise GraphError("graph: expected a JSON object")
    return data


def _fields(row: dict[str, Any]) -> dict[str, Any]:
    """Columns of one image -> fields of its graph (see SceneGraph)."""
    boxes = [] if row["boxes"] is None else row["boxes"]
    if not isinstance(boxes, list):
        raise GraphError(f"boxes: expected a list, found {boxes!r:.60}")
    check_crowd(len(boxes))
    labels, scores = row.get("labels", [NO_LABEL] * len(boxes)), row.get("scores")
    if labels is None and boxes:
        raise GraphError("labels: missing, though there are boxes")
    for name, values in (("labels", labels), ("scores", scores)):
        if values is not None and (not isinstance(values, list) or len(values) != len(boxes)):
            raise GraphError(f"{name}: expected one for each of {len(boxes)} boxes")
    return {
        "boxes": [corners(box, f"boxes[{i}]", xywh=False) for i, box in enumerate(boxes)],
        "labels": labels or (),
        "scores": scores if any(score is not None for score in scores or ()) else None,
        **{key: row.get(column) for key, column in ABOUT.items()},
    }
