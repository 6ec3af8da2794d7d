r"""Matches boxes of one frame to those of the next by overlap, so that a node keeps its number through a video.

Pairs of a known thing and a new box with

.. math:: \text{IoU}(\text{last box}, \text{box}) \ge \tau

are taken greedily, same label first, then by IoU; other boxes get new numbers. A thing not seen for some frames
is forgotten, and its number is not used again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scenegpi.boxes import box_iou
from scenegpi.graph import SceneGraph


@dataclass
class _Thing:
    number: int
    box: NDArray[np.float64]
    label: int
    unseen: int = 0


class Tracker:
    """Numbers the boxes of successive frames; `things` is the number of things so far.

    Args:
        iou: minimum overlap with the last box of a thing.
        patience: number of frames that a thing may be unseen before it is forgotten.
    """

    def __init__(self, iou: float = 0.3, patience: int = 5) -> None:
        self.iou, self.patience = iou, patience
        self.things = 0
        self._known: list[_Thing] = []

    def __call__(self, graph: SceneGraph) -> NDArray[np.int64]:
        """(N,) thing number of each box of the next frame."""
        numbers = np.full(len(graph), -1, dtype=np.int64)
        known = self._known
        overlap = box_iou(np.array([thing.box for thing in known]).reshape(-1, 4), graph.boxes)
        same = np.array([thing.label for thing in known]).reshape(-1, 1) == graph.labels[None, :]
        rank = np.where(overlap >= self.iou, overlap + same, -1.0)
        for thing in known:
            thing.unseen += 1
        for k, i in best_pairs(rank, 0.0):
            numbers[i] = known[k].number
            known[k].box, known[k].label, known[k].unseen = graph.boxes[i], int(graph.labels[i]), 0
        for i in np.flatnonzero(numbers < 0).tolist():
            numbers[i] = self.things
            known.append(_Thing(self.things, graph.boxes[i], int(graph.labels[i])))
            self.things += 1
        self._known = [thing for thing in known if thing.unseen <= self.patience]
        return numbers


def best_pairs(rank: NDArray[np.float64], least: float) -> Iterator[tuple[int, int]]:
    """Rows and columns of a matrix (K, N), best first, each at most once, down to this value."""
    rows: set[int] = set()
    columns: set[int] = set()
    for flat in np.argsort(-rank, axis=None, kind="stable").tolist():
        k, i = divmod(flat, rank.shape[1])
        if rank[k, i] < least:
            return
        if k not in rows and i not in columns:
            rows.add(k)
            columns.add(i)
            yield k, i
