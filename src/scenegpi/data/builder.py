"""Graphs, one after the other -> columns. Used by every reader of row-wise files and by the Visual Genome writer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.checks import box_array, check_range, integer_array
from scenegpi.data.columns import NO_SPLIT, Columns
from scenegpi.errors import GraphError, Report
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

CHUNK = 4096
REQUIRED = {"boxes": (4, np.float64), "labels": (0, np.int32), "relations": (3, np.int32)}  # columns and dtype
OPTIONAL = {"scores": "boxes", "label_dist": "boxes", "relation_scores": "relations", "pair_dist": "pairs"}  # rows


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
        self.absent: dict[str, list[bool]] = {name: [] for name in OPTIONAL}
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in (*REQUIRED, *OPTIONAL, "pairs")}
        self._pending: list[SceneGraph] = []
        self._seen: set[tuple[int, int | str]] = set()

    def add(self, split: int = NO_SPLIT, **fields: Any) -> None:
        """One image from raw fields (see SceneGraph). One that makes no sense is reported and left out."""
        image = fields.get("image_id") if fields.get("image_id") is not None else fields.get("file")
        try:
            graph = SceneGraph(vocabulary=self.vocabulary, **fields)
        except GraphError as error:
            for line in list(_row_defects(self.vocabulary, fields)) or [str(error)]:
                where, _, message = line.partition(": ")
                self.report.error(image, where, message)
            self.report.skipped += 1
            return
        if graph.image_id is not None:
            if (split, graph.image_id) in self._seen:
                self.report.error(image, "image id", "stands twice; the second is left out")
                self.report.skipped += 1
                return
            self._seen.add((split, graph.image_id))
        for row in np.flatnonzero((graph.boxes[:, 2:] == graph.boxes[:, :2]).any(axis=1)).tolist():
            self.report.warning(image, f"boxes[{row}]", f"{graph.boxes[row].tolist()} has no area")
        self.add_graph(graph, split)

    def add_graph(self, graph: SceneGraph, split: int = NO_SPLIT) -> None:
        """One image that is a graph already; GraphError if its vocabulary is another one."""
        if graph.vocabulary != self.vocabulary:
            raise GraphError(f"image {graph.image_id}: its vocabulary differs from that of the images before it")
        self.image_ids.append(graph.image_id)
        self.files.append(graph.file)
        self.sizes.append((graph.width or 0, graph.height or 0))
        self.splits.append(split)
        self.counts["boxes"].append(len(graph))
        self.counts["relations"].append(len(graph.relations))
        self.counts["pairs"].append(0 if graph.pairs is None else len(graph.pairs))
        for name in OPTIONAL:
            self.absent[name].append(getattr(graph, name) is None)
        self._pending.append(graph)
        if len(self._pending) >= CHUNK:
            self._flush()

    def build(self) -> Columns:
        """The columns of all graphs added."""
        self._flush()
        arrays: dict[str, Any] = {}
        absent = {}
        for name, (width, dtype) in REQUIRED.items():
            empty = np.empty((0, width) if width else (0,), dtype=dtype)
            arrays[name] = np.concatenate([empty, *self._parts[name]])
        for name, rows in OPTIONAL.items():
            missing = np.array(self.absent[name], dtype=bool)
            if missing.all():
                continue
            arrays[name] = np.concatenate([self._none(name, 0), *self._parts[name]])
            # an image without rows has nothing to say: it is absent only where it has, or for pairs
            told = missing if name == "pair_dist" else missing & (np.array(self.counts[rows]) > 0)
            if told.any():
                absent[name] = told
        pointers = {name: np.concatenate([[0], np.cumsum(c, dtype=np.int64)]) for name, c in self.counts.items()}
        if "pair_dist" in arrays:
            arrays["pairs"] = np.concatenate([np.empty((0, 2), np.int32), *self._parts["pairs"]])
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
            absent=absent,
            **arrays,
        )

    def _none(self, name: str, rows: int) -> NDArray[np.float32]:
        """What stands for rows that are not given: score 1, distribution 0."""
        widths = {"label_dist": len(self.vocabulary.objects), "pair_dist": 1 + len(self.vocabulary.predicates)}
        return np.zeros((rows, widths[name]), np.float32) if name in widths else np.ones(rows, np.float32)

    def _flush(self) -> None:
        graphs, self._pending = self._pending, []
        if not graphs:
            return
        for name in REQUIRED:
            self._parts[name].append(np.concatenate([getattr(g, name) for g in graphs]))
        for name, rows in OPTIONAL.items():
            chunk = [
                self._none(name, 0 if rows == "pairs" else len(getattr(g, rows)))
                if getattr(g, name) is None
                else getattr(g, name)
                for g in graphs
            ]
            self._parts[name].append(np.concatenate(chunk))
        pairs = [g.pairs for g in graphs if g.pairs is not None]
        if pairs:
            self._parts["pairs"].append(np.concatenate(pairs))


def _row_defects(vocabulary: Vocabulary, fields: dict[str, Any]) -> Iterator[str]:
    """Every row of boxes, labels and relations that makes no sense by itself."""
    try:
        boxes, labels, relations = (list(fields.get(name, ())) for name in ("boxes", "labels", "relations"))
    except TypeError:
        return
    for name, rows in (("boxes", boxes), ("labels", labels), ("relations", relations)):
        for i, row in enumerate(rows):
            try:
                if name == "boxes":
                    box_array([row])
                elif name == "labels":
                    check_range(integer_array([row], (1,), name), len(vocabulary.objects), name)
                else:
                    triple = integer_array([row], (1, 3), name)
                    check_range(triple[:, :2], len(boxes), name)
                    check_range(triple[:, 2], len(vocabulary.predicates), "relations (predicate)")
            except GraphError as error:
                yield str(error).replace("[0]", f"[{i}]", 1)
