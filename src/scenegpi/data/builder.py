"""Graphs, one after the other -> columns. Used by every reader of row-wise files and by the Visual Genome writer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.arrays import GraphError
from scenegpi.data.columns import NO_SPLIT, Columns
from scenegpi.data.errors import Report
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

CHUNK = 4096
# field -> (what counts its rows, columns a row, dtype); None: as wide as the data says
REQUIRED = {"boxes": (4, np.float64), "labels": (0, np.int32), "relations": (3, np.int32)}
OPTIONAL = {
    "scores": "boxes",
    "label_dist": "boxes",
    "relation_scores": "relations",
    "pairs": "pairs",
    "pair_dist": "pairs",
}


class ColumnsBuilder:
    """Takes graphs of one vocabulary, keeps them as a few arrays, gives `Columns` at the end."""

    def __init__(self, vocabulary: Vocabulary, report: Report) -> None:
        self.vocabulary = vocabulary
        self.report = report
        self.image_ids: list[int | str | None] = []
        self.files: list[str | None] = []
        self.sizes: list[tuple[int, int]] = []
        self.splits: list[int] = []
        self.counts: dict[str, list[int]] = {"boxes": [], "relations": [], "pairs": []}
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in (*REQUIRED, *OPTIONAL)}
        self._pending: list[SceneGraph] = []
        self._seen: set[int | str] = set()
        self._has: dict[str, bool | None] = dict.fromkeys(OPTIONAL)

    def add(self, split: int = NO_SPLIT, **fields: Any) -> None:
        """One image from raw fields (see SceneGraph). One that makes no sense is reported and left out."""
        image = fields.get("image_id")
        try:
            graph = SceneGraph(vocabulary=self.vocabulary, **fields)
        except GraphError as error:
            where, _, message = str(error).partition(": ")
            self.report.error(image if image is not None else fields.get("file"), where, message)
            self.report.skipped += 1
            return
        if graph.image_id is not None:
            if graph.image_id in self._seen:
                self.report.error(image, "image id", "stands twice; the second is left out")
                self.report.skipped += 1
                return
            self._seen.add(graph.image_id)
        for row in np.flatnonzero((graph.boxes[:, 2:] == graph.boxes[:, :2]).any(axis=1)).tolist():
            self.report.warning(image, f"boxes[{row}]", f"{graph.boxes[row].tolist()} has no area")
        self.add_graph(graph, split)

    def add_graph(self, graph: SceneGraph, split: int = NO_SPLIT) -> None:
        """One image that is a graph already; GraphError if it does not fit in with the rest."""
        if graph.vocabulary != self.vocabulary:
            raise GraphError(f"image {graph.image_id}: its vocabulary differs from that of the images before it")
        for name in ("label_dist", "pair_dist"):
            has = getattr(graph, name) is not None
            if name == "label_dist" and not len(graph):
                continue
            if self._has[name] not in (None, has):
                raise GraphError(f"image {graph.image_id}: {name}: some images have it and others do not")
            self._has[name] = has
        for name in ("scores", "relation_scores"):
            self._has[name] = bool(self._has[name]) or getattr(graph, name) is not None
        self.image_ids.append(graph.image_id)
        self.files.append(graph.file)
        self.sizes.append((graph.width or 0, graph.height or 0))
        self.splits.append(split)
        self.counts["boxes"].append(len(graph))
        self.counts["relations"].append(len(graph.relations))
        self.counts["pairs"].append(0 if graph.pairs is None else len(graph.pairs))
        self._pending.append(graph)
        if len(self._pending) >= CHUNK:
            self._flush()

    def build(self) -> Columns:
        """The columns of all graphs added."""
        self._flush()
        arrays: dict[str, Any] = {}
        for name, (width, dtype) in REQUIRED.items():
            empty = np.empty((0, width) if width else (0,), dtype=dtype)
            arrays[name] = np.concatenate([empty, *self._parts[name]])
        for name, rows in OPTIONAL.items():
            if self._has["pair_dist" if name == "pairs" else name]:
                arrays[name] = self._optional(name, sum(self.counts[rows]))
        sizes = np.array(self.sizes, dtype=np.int32).reshape(-1, 2)
        pointers = {
            f"{name}_ptr": np.concatenate([[0], np.cumsum(c, dtype=np.int64)]) for name, c in self.counts.items()
        }
        return Columns(
            vocabulary=self.vocabulary,
            image_ids=self.image_ids,
            files=self.files,
            widths=sizes[:, 0].copy(),
            heights=sizes[:, 1].copy(),
            splits=np.array(self.splits, dtype=np.int8),
            box_ptr=pointers["boxes_ptr"],
            relation_ptr=pointers["relations_ptr"],
            pair_ptr=pointers["pairs_ptr"] if self._has["pair_dist"] else None,
            **arrays,
        )

    def _optional(self, name: str, rows: int) -> NDArray[Any]:
        widths = {"label_dist": (len(self.vocabulary.objects),), "pair_dist": (1 + len(self.vocabulary.predicates),)}
        shape = (rows, 2) if name == "pairs" else (rows, *widths.get(name, ()))
        return np.concatenate(
            [np.empty((0, *shape[1:]), np.float32 if name != "pairs" else np.int32), *self._parts[name]]
        )

    def _flush(self) -> None:
        graphs, self._pending = self._pending, []
        if not graphs:
            return
        for name in REQUIRED:
            self._parts[name].append(np.concatenate([getattr(g, name) for g in graphs]))
        for name, rows in OPTIONAL.items():
            chunk = []
            for graph in graphs:
                value = getattr(graph, name)
                if value is None and name in ("scores", "relation_scores"):
                    value = np.ones(len(getattr(graph, rows)), dtype=np.float32)
                if value is not None:
                    chunk.append(value)
            if chunk:
                self._parts[name].append(np.concatenate(chunk))
