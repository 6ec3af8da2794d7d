"""Graphs, one after the other -> columns. Used by every reader of row-wise files and by the Visual Genome writer."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from itertools import groupby
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.checks import box_array, check_range, integer_array
from scenegpi.data.columns import NO_SPLIT, AttributeColumns, Columns
from scenegpi.data.limits import check_crowd
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

CHUNK, CHUNK_ROWS = 4096, 100_000  # graphs, and rows of them, held before they become columns
FREE_BYTES, MAX_RATIO = 2**28, 16
"""A column may take FREE_BYTES, or a multiple of what was given of it, whichever is more."""
REQUIRED = {"boxes": np.empty((0, 4)), "labels": np.empty(0, np.int32), "relations": np.empty((0, 3), np.int32)}
OPTIONAL = {"scores": "boxes", "label_dist": "boxes", "relation_scores": "relations", "pair_dist": "pairs"}  # rows


class ColumnsBuilder:
    """Takes graphs of one vocabulary, keeps them as a few arrays, gives `Columns` at the end."""

    def __init__(self, vocabulary: Vocabulary, report: Report) -> None:
        self.vocabulary = vocabulary
        self.report = report
        self.image_ids: list[int | str | None] = []
        self.files: list[str | None] = []
        self.sizes = array("i")  # width, height, width, ...
        self.splits = array("b")
        self.counts = {"boxes": array("q"), "relations": array("q"), "pairs": array("q")}
        self.absent = {name: array("b") for name in OPTIONAL}
        # For an optional column, a number stands for that many rows that are not given.
        self._parts: dict[str, list[NDArray[Any] | int]] = {name: [] for name in (*REQUIRED, *OPTIONAL, "pairs")}
        self.attributes: AttributeColumns | None = None
        self._pending: list[SceneGraph] = []
        self._rows = 0
        self._seen: dict[int, set[int | str]] = {}

    def add(self, split: int = NO_SPLIT, **fields: Any) -> None:
        """One image from raw fields (see SceneGraph). An invalid one is reported and left out."""
        image = fields.get("image_id") if fields.get("image_id") is not None else fields.get("file")
        try:
            check_crowd(len(fields.get("boxes", ())), len(fields.get("relations", ())))
        except GraphError as error:
            self.report.skip(image, error)
            return
        try:
            graph = SceneGraph(vocabulary=self.vocabulary, **fields)
        except GraphError as error:
            self.report.skip(image, *list(_row_defects(self.vocabulary, fields)) or [error])
            return
        if graph.image_id is not None:
            seen = self._seen.setdefault(split, set())
            if graph.image_id in seen:
                self.report.skip(image, "image id: is duplicated; the second is left out")
                return
            seen.add(graph.image_id)
        warn_flat(self.report, image, graph.boxes, "boxes[{}]")
        self.add_graph(graph, split)

    def add_graph(self, graph: SceneGraph, split: int = NO_SPLIT) -> None:
        """One image that is a graph already; GraphError if its vocabulary is another one."""
        if graph.vocabulary != self.vocabulary:
            raise GraphError(f"image {graph.image_id}: its vocabulary differs from that of the images before it")
        self.image_ids.append(graph.image_id)
        self.files.append(graph.file)
        self.sizes.extend((graph.width or 0, graph.height or 0))
        self.splits.append(split)
        if self.attributes is None and graph.attributes is not None:
            self.attributes = AttributeColumns(sum(self.counts["boxes"]))
        if self.attributes is not None:
            self.attributes.add(graph)
        self.counts["boxes"].append(len(graph))
        self.counts["relations"].append(len(graph.relations))
        self.counts["pairs"].append(0 if graph.pairs is None else len(graph.pairs))
        for name in OPTIONAL:
            self.absent[name].append(getattr(graph, name) is None)
        self._pending.append(graph)
        self._rows += len(graph) + len(graph.relations)
        if len(self._pending) >= CHUNK or self._rows >= CHUNK_ROWS:
            self._flush()

    def build(self) -> Columns:
        """The columns of all graphs added."""
        self._flush()
        arrays: dict[str, Any] = {}
        absent = {}
        for name, empty in REQUIRED.items():
            arrays[name] = self._joined(name, empty)
        for name, rows in OPTIONAL.items():
            missing = np.array(self.absent[name], dtype=bool)
            if missing.all():
                continue
            arrays[name] = self._joined(name, self._none(name, 0))
            # an image without rows has nothing to say: it is absent only where it has, or for pairs
            told = missing if name == "pair_dist" else missing & (np.array(self.counts[rows]) > 0)
            if told.any():
                absent[name] = told
        pointers = {name: np.concatenate([[0], np.cumsum(c, dtype=np.int64)]) for name, c in self.counts.items()}
        if "pair_dist" in arrays:
            arrays["pairs"] = self._joined("pairs", np.empty((0, 2), np.int32))
            arrays["pair_ptr"] = pointers["pairs"]
        sizes = np.array(self.sizes, dtype=np.int32).reshape(-1, 2)
        return Columns(
            vocabulary=self.vocabulary,
            image_ids=self.image_ids,
            files=self.files,
            widths=sizes[:, 0].copy(),
            heights=sizes[:, 1].copy(),
            splits=np.array(self.splits, dtype=np.int8),
            box_ptr=pointers["boxes"],
            relation_ptr=pointers["relations"],
            attributes=self.attributes,
            absent=absent,
            **arrays,
        )

    def _none(self, name: str, rows: int) -> NDArray[np.float32]:
        """What stands for rows that are not given: score 1, distribution 0."""
        widths = {"label_dist": len(self.vocabulary.objects), "pair_dist": 1 + len(self.vocabulary.predicates)}
        return np.zeros((rows, widths[name]), np.float32) if name in widths else np.ones(rows, np.float32)

    def _flush(self) -> None:
        graphs, self._pending, self._rows = self._pending, [], 0
        if not graphs:
            return
        for name in REQUIRED:
            self._parts[name].append(np.concatenate([getattr(g, name) for g in graphs]))
        for name, rows in OPTIONAL.items():
            for given, run in groupby(graphs, lambda graph, name=name: getattr(graph, name) is not None):
                if given:
                    self._parts[name].append(np.concatenate([getattr(graph, name) for graph in run]))
                elif rows != "pairs":
                    self._parts[name].append(sum(len(getattr(graph, rows)) for graph in run))
        pairs = [graph.pairs for graph in graphs if graph.pairs is not None]
        if pairs:
            self._parts["pairs"].append(np.concatenate(pairs))

    def _joined(self, name: str, empty: NDArray[Any]) -> NDArray[Any]:
        """A column's parts one after the other. Each is dropped when it is copied, so that none is held twice."""
        parts = deque(self._parts.pop(name))
        rows = sum(part if isinstance(part, int) else len(part) for part in parts)
        given = sum(part.nbytes for part in parts if not isinstance(part, int))
        dtype = np.result_type(empty, *{part.dtype for part in parts if not isinstance(part, int)})
        size = rows * prod(empty.shape[1:]) * dtype.itemsize
        if size > max(FREE_BYTES, MAX_RATIO * given):
            raise DataError(self.report.file, f"{name}: {size:,} bytes for all images, and too few of them have any")
        whole = np.empty((rows, *empty.shape[1:]), dtype=dtype)
        at = 0
        while parts:
            part = parts.popleft()
            rows = part if isinstance(part, int) else len(part)
            whole[at : at + rows] = self._none(name, 1) if isinstance(part, int) else part
            at += rows
        return whole


def warn_flat(report: Report, image: object, boxes: NDArray[np.float64], field: str) -> None:
    """A warning for each box without area; `field` names one, with {} for its row."""
    flat = (boxes[:, 2:] == boxes[:, :2]).any(axis=1)
    if flat.any():
        rows = np.flatnonzero(flat).tolist()
        report.warn_each(rows, lambda row: (image, field.format(row), f"{boxes[row].tolist()} has no area"))


def _row_defects(vocabulary: Vocabulary, fields: dict[str, Any]) -> Iterator[str]:
    """Every row of boxes, labels and relations that is invalid by itself."""
    try:
        boxes, labels, relations = (list(fields.get(name, ())) for name in ("boxes", "labels", "relations"))
    except TypeError:
        return

    def check(name: str, rows: list[Any]) -> None:
        if name == "boxes":
            box_array(rows)
        elif name == "labels":
            check_range(integer_array(rows, (len(rows),), name), len(vocabulary.objects), name)
        else:
            triples = integer_array(rows, (len(rows), 3), name)
            check_range(triples[:, :2], len(boxes), name)
            check_range(triples[:, 2], len(vocabulary.predicates), "relations (predicate)")

    for name, rows in (("boxes", boxes), ("labels", labels), ("relations", relations)):
        try:
            check(name, rows)
        except GraphError:
            for i, row in enumerate(rows):
                try:
                    check(name, [row])
                except GraphError as error:
                    yield str(error).replace("[0]", f"[{i}]", 1)
