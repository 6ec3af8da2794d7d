"""Graphs in memory: `Graphs`, added one after the other, and `Columns`, a whole data set as a few flat arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.checks import Attributes, frozen
from scenegpi.data.limits import check_crowd
from scenegpi.errors import GraphError, Report
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

SPLITS = {"train": 0, "val": 1, "test": 2}
SPLIT_NAMES = {code: name for name, code in SPLITS.items()}
NO_SPLIT = -1
Counts = tuple[NDArray[np.int64], NDArray[np.int64]]
"""(N,) boxes and (N,) relations of each image."""


class Graphs:
    """Graphs of one vocabulary with their splits, as readers of row-wise files give them.

    `report` takes the defects of images that are left out.
    """

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

    def counts(self) -> Counts:
        """(N,) boxes and (N,) relations of each image."""
        return count_graphs(self.graphs)

    def split_codes(self) -> NDArray[np.int8]:
        """(N,) 0 train, 1 val, 2 test, -1 unknown."""
        return np.array(self.splits, dtype=np.int8)

    def add(self, split: int = NO_SPLIT, **fields: Any) -> None:
        """Adds an image from raw fields (see SceneGraph); an invalid one is reported and left out."""
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
        """Adds an image that is already a graph; GraphError if its vocabulary differs."""
        if graph.vocabulary != self.vocabulary:
            raise GraphError(f"image {graph.image_id}: its vocabulary differs from that of earlier images")
        if graph.attributes is not None:  # few distinct lists for millions of boxes: each is held once
            rows = tuple(self._attributes.setdefault(row, row) for row in graph.attributes)
            graph = graph.with_fields(attributes=rows)
        self.graphs.append(graph)
        self.splits.append(split)


def count_graphs(graphs: Iterable[SceneGraph]) -> Counts:
    """(N,) boxes and (N,) relations of each graph."""
    table = np.array([(len(graph), len(graph.relations)) for graph in graphs], dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def warn_flat(report: Report, image: object, boxes: NDArray[np.float64], field: str) -> None:
    """A warning for each box without area; `field` is the name of the field, with {} for the row."""
    flat = (boxes[:, 2:] == boxes[:, :2]).any(axis=1)
    if flat.any():
        rows = np.flatnonzero(flat).tolist()
        report.warn_each(rows, lambda row: (image, field.format(row), f"{boxes[row].tolist()} has no area"))


@dataclass(eq=False)
class Columns:
    """N images with B boxes and R relations; no Python object per box.

    Image i owns rows ptr[i]:ptr[i + 1] of an array; a `SceneGraph` is made on demand from views of these.

    Args:
        image_ids, files, splits: of each image.
        sizes: (N, 2) width, height.
        boxes, labels, relations: (B, 4), (B,), (R, 3), checked, of SceneGraph's dtypes.
        box_ptr, relation_ptr: (N + 1,) where each image's rows start.
        attributes: (B, K) places in `attribute_names`, from 1; 0 means no attribute.
    """

    vocabulary: Vocabulary
    image_ids: Sequence[int | str | None]
    files: Sequence[str | None]
    sizes: NDArray[np.int32]
    splits: NDArray[np.int8]
    boxes: NDArray[np.float64]
    labels: NDArray[np.int32]
    relations: NDArray[np.int32]
    box_ptr: NDArray[np.int64]
    relation_ptr: NDArray[np.int64]
    attributes: NDArray[np.int32] | None = None
    attribute_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        for values in (self.boxes, self.labels, self.relations):
            frozen(values)

    def __len__(self) -> int:
        return len(self.image_ids)

    def graph(self, i: int) -> SceneGraph:
        """Image i's graph: views, no copies."""
        rows = slice(*self.box_ptr[i : i + 2].tolist())
        width, height = self.sizes[i].tolist()
        return SceneGraph.trusted(
            boxes=self.boxes[rows],
            labels=self.labels[rows],
            vocabulary=self.vocabulary,
            relations=self.relations[slice(*self.relation_ptr[i : i + 2].tolist())],
            image_id=self.image_ids[i],
            file=self.files[i],
            width=width,
            height=height,
            attributes=self._attributes(rows),
        )

    def _attributes(self, rows: slice) -> Attributes | None:
        if self.attributes is None or not self.attributes[rows].any():
            return None
        numbers = (sorted({*row} - {0}) for row in self.attributes[rows].tolist())
        return tuple(tuple((self.attribute_names[k - 1], 1.0) for k in row) for row in numbers)

    def counts(self) -> Counts:
        """(N,) boxes and (N,) relations of each image."""
        return np.diff(self.box_ptr), np.diff(self.relation_ptr)

    def split_codes(self) -> NDArray[np.int8]:
        """(N,) 0 train, 1 val, 2 test, -1 unknown."""
        return self.splits
