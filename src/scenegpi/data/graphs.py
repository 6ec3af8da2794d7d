"""Graphs in memory, added one after the other: what every reader of row-wise files gives."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.columns import NO_SPLIT
from scenegpi.data.limits import check_crowd
from scenegpi.errors import GraphError, Report
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary


class Graphs:
    """Graphs of one vocabulary with their splits; `report` takes the defects of those that are left out."""

    def __init__(self, vocabulary: Vocabulary, report: Report) -> None:
        self.vocabulary = vocabulary
        self.report = report
        self.graphs: list[SceneGraph] = []
        self.splits = array("b")
        self._seen: dict[int, set[int | str]] = {}
        self._attributes: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.graphs)

    def graph(self, i: int) -> SceneGraph:
        """Image i's graph."""
        return self.graphs[i]

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(N,) boxes and (N,) relations of each image."""
        table = np.array([(len(graph), len(graph.relations)) for graph in self.graphs], dtype=np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def split_codes(self) -> NDArray[np.int8]:
        """(N,) 0 train, 1 val, 2 test, -1 not said."""
        return np.array(self.splits, dtype=np.int8)

    def add(self, split: int = NO_SPLIT, **fields: Any) -> None:
        """One image from raw fields (see SceneGraph). An invalid one is reported and left out."""
        image = fields.get("image_id") if fields.get("image_id") is not None else fields.get("file")
        try:
            check_crowd(len(fields.get("boxes", ())), len(fields.get("relations", ())))
            graph = SceneGraph(vocabulary=self.vocabulary, **fields)
        except GraphError as error:
            self.report.skip(image, error)
            return
        if graph.image_id is not None:
            seen = self._seen.setdefault(split, set())
            if graph.image_id in seen:
                self.report.skip(image, "image id: is duplicated; the second is left out")
                return
            seen.add(graph.image_id)
        warn_flat(self.report, image, graph.boxes, "boxes[{}]")
        self.append(graph, split)

    def append(self, graph: SceneGraph, split: int = NO_SPLIT) -> None:
        """One image that is a graph already; GraphError if its vocabulary is another one."""
        if graph.vocabulary != self.vocabulary:
            raise GraphError(f"image {graph.image_id}: its vocabulary differs from that of the images before it")
        if graph.attributes is not None:  # the same few words for millions of boxes: each list of them is held once
            rows = tuple(self._attributes.setdefault(row, row) for row in graph.attributes)
            graph = graph.with_fields(attributes=rows)
        self.graphs.append(graph)
        self.splits.append(split)


def warn_flat(report: Report, image: object, boxes: NDArray[np.float64], field: str) -> None:
    """A warning for each box without area; `field` names one, with {} for its row."""
    flat = (boxes[:, 2:] == boxes[:, :2]).any(axis=1)
    if flat.any():
        rows = np.flatnonzero(flat).tolist()
        report.warn_each(rows, lambda row: (image, field.format(row), f"{boxes[row].tolist()} has no area"))
