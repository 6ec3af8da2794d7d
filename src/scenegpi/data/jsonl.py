"""JSON lines, the project's own format: one image per line (docs/formats.md).

The first line that uses a vocabulary carries it whole, later ones refer to it, so lines can be streamed and read one by
one. On opening, each line is checked and its offset noted; a graph is parsed on demand.
"""

from __future__ import annotations

import json
import os
import re
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.graphs import NO_SPLIT, SPLIT_NAMES, SPLITS, Counts, warn_flat
from scenegpi.data.limits import check_images, check_line
from scenegpi.data.named import key_of
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.files import check_file, open_file, parse_json, read_lines, reading, whole_file
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import from_dict, to_dict
from scenegpi.vocabulary import Vocabulary

MAX_LINE = 2**26
DEFINITION = re.compile(rb'"vocabulary"\s*:\s*\{')
Survey = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]  # boxes, relations, split of each line


class JsonLines:
    """The graphs of a JSON lines file, parsed on demand. Blank lines don't count.

    Args:
        path: the file.
        report: where invalid lines are noted; they are left out.
        vocabulary: used for lines that hold none and refer to none (predictions written by other tools).
        trust: don't read the whole file first; an invalid line is then a DataError when it is reached.
    """

    def __init__(self, path: Path, report: Report, vocabulary: Vocabulary | None = None, trust: bool = False) -> None:
        self.path = path
        self.report = report
        self.given = vocabulary
        self.defined: dict[str, Vocabulary] = {}
        self.starts, self.lengths, self.numbers = self._scan()
        self._handle: BinaryIO | None = None
        self._checked: Survey | None = None
        if not trust:
            lines = len(self)
            self._check()
            if lines and self._readable == 0:
                first = report.first_error
                raise DataError(path, f"no line holds a JSON object ({first and f'{first.field}: {first.message}'})")
        if not len(self.starts) and not report.errors:
            raise DataError(path, "no line holds a graph")

    @property
    def vocabulary(self) -> Vocabulary:
        """The first one of the file."""
        known = next(iter(self.defined.values()), None) or self.given
        return known or (self.graph(0).vocabulary if len(self) else Vocabulary([]))

    def __len__(self) -> int:
        return len(self.starts)

    def graph(self, i: int) -> SceneGraph:
        """Line i's graph; DataError with the line's number if it is invalid."""
        try:
            return self._graph(self._parse(i))
        except GraphError as error:
            raise DataError(self.path, f"line {self.numbers[i]}: {error}") from None

    def fields(self, i: int, *keys: str) -> list[Any]:
        """The values of keys in line i that are not part of the graph, or None."""
        return list(map(self._parse(i).get, keys))

    def counts(self) -> Counts:
        """(N,) boxes and (N,) relations of each image."""
        boxes, relations, _ = self._survey()
        return boxes, relations

    def split_codes(self) -> NDArray[np.int8]:
        """(N,) 0 train, 1 val, 2 test, -1 unknown."""
        return self._survey()[2]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_handle": None}

    def _graph(self, data: Any) -> SceneGraph:
        check_line(data)
        return from_dict(data, self._known(data))

    def _known(self, data: Any) -> Vocabulary | None:
        reference = data.get("vocabulary") if isinstance(data, dict) else None
        if isinstance(reference, str):
            given = self.given if self.given is not None and self.given.reference == reference else None
            return self.defined.get(reference, given)
        return self.given or next(iter(self.defined.values()), None)

    def _parse(self, i: int) -> Any:
        start, left = self.starts.item(i), self.lengths.item(i)
        with reading(self.path):
            if self._handle is None:
                self._handle = open_file(self.path)
            # Read at an offset, not from where the last read ended: forked workers and threads share the handle.
            pieces = []
            while left and (piece := os.pread(self._handle.fileno(), left, start)):
                pieces.append(piece)
                start, left = start + len(piece), left - len(piece)
        return parse_json(b"".join(pieces))

    def _survey(self) -> Survey:
        if self._checked is None:  # opened on trust: now every line must be valid
            self.report = Report(str(self.path), strict=True)
            self._check()
        assert self._checked is not None
        return self._checked

    def _check(self) -> None:
        """Reads every line once for counts and splits, and drops invalid lines."""
        rows = array("q")  # place, boxes, relations, split of each valid line
        seen: set[int | str] = set()
        self._readable = 0
        for i in range(len(self)):
            line = f"line {self.numbers[i]}"
            data = None
            try:
                data = self._parse(i)
                self._readable += isinstance(data, dict)
                graph = self._graph(data)
            except GraphError as error:
                image = data.get("image") if isinstance(data, dict) else None
                self.report.skip(key_of(image, "id"), error, line=line)
                continue
            if graph.image_id is not None:
                if graph.image_id in seen:
                    self.report.skip(None, f"image.id: {graph.image_id!r:.60} is duplicated", line=line)
                    continue
                seen.add(graph.image_id)
            warn_flat(self.report, graph.image_id, graph.boxes, "objects[{}].box")
            split = data.get("split")
            if split not in (None, *SPLITS):
                said = f"{split!r:.40} is not one of {', '.join(SPLITS)}"
                self.report.warning(graph.image_id, f"{line}: split", said)
            rows.extend((i, len(graph), len(graph.relations), SPLITS.get(str(split), NO_SPLIT)))
        table = np.array(rows, dtype=np.int64).reshape(-1, 4)
        good = table[:, 0]
        self.starts, self.lengths, self.numbers = self.starts[good], self.lengths[good], self.numbers[good]
        self._checked = table[:, 1], table[:, 2], table[:, 3].astype(np.int8)

    def _scan(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        rows = array("q")  # start, length, number of each line
        check_file(self.path)
        position, size = 0, self.path.stat().st_size
        for number, line in read_lines(self.path, MAX_LINE):
            if line.strip():
                rows.extend((position, len(line), number))
                check_images(self.path, len(rows) // 3, size)
                if DEFINITION.search(line):
                    self._define(line)
            position += len(line)
        table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        return table[:, 0], table[:, 1], table[:, 2]

    def _define(self, line: bytes) -> None:
        try:
            data = parse_json(line)
            found = data.get("vocabulary") if isinstance(data, dict) else None
            if isinstance(found, dict):
                vocabulary = Vocabulary.from_dict(found)
                self.defined.setdefault(vocabulary.reference, vocabulary)
        except ValueError:
            return  # the line is reported when it is read


def write_rows(handle: TextIO, rows: Iterable[Any]) -> int:
    """The entries of a JSON list, one per line, and their number: the text of all at once would double the memory."""
    count = 0
    for count, row in enumerate(rows, 1):
        handle.write((",\n" if count > 1 else "\n") + dump(row))
    return count


def dump(value: Any) -> str:
    """JSON text on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def write_jsonl(
    target: str | Path, graphs: Iterable[SceneGraph], splits: Iterable[int] | None = None, overwrite: bool = True
) -> int:
    """Writes graphs one after the other and returns their number; the file appears whole or not at all."""
    count = 0
    with whole_file(Path(target), overwrite) as part, part.open("w", encoding="utf-8") as handle:
        for line in json_lines(graphs, splits):
            handle.write(line)
            count += 1
    return count


def json_lines(graphs: Iterable[SceneGraph], splits: Iterable[int] | None = None) -> Iterator[str]:
    """The lines of a file, each with its newline."""
    written: set[str] = set()
    codes = iter(splits) if splits is not None else None
    for graph in graphs:
        reference = graph.vocabulary.reference
        split = SPLIT_NAMES.get(next(codes)) if codes is not None else None
        data = to_dict(graph, vocabulary=reference not in written, **({"split": split} if split else {}))
        written.add(reference)
        yield dump(data) + "\n"
