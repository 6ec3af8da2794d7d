r"""Boxes of one frame -> the same things in the next, by overlap: so a node keeps its number through a video.

Pairs of a known thing and a new box with

.. math:: \text{IoU}(\text{last box}, \text{box}) \ge \tau

are taken greedily, same label first, then by IoU; other boxes get new numbers. A thing that was not seen for some
frames is forgotten, and its number is not used again.
"""

from __future__ import annotations

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
    """Numbers the boxes of successive frames.

    Args:
        iou: least overlap with the last box of a thing.
        patience: frames that a thing may be unseen before it is forgotten.
    """

    def __init__(self, iou: float = 0.3, patience: int = 5) -> None:
        self.iou, self.patience = iou, patience
        self._things: list[_Thing] = []
        self._next = 0

    @property
    def things(self) -> int:
        """How many there were so far."""
        return self._next

    def __call__(self, graph: SceneGraph) -> NDArray[np.int64]:
        """(N,) the number of each box of the next frame."""
        numbers = np.full(len(graph), -1, dtype=np.int64)
        known = self._things
        overlap = box_iou(np.array([thing.box for thing in known]).reshape(-1, 4), graph.boxes)
        same = np.array([thing.label for thing in known]).reshape(-1, 1) == graph.labels[None, :]
        rank = np.where(overlap >= self.iou, overlap + same, -1.0)
        for thing in known:
            thing.unseen += 1
        for flat in np.argsort(-rank, axis=None, kind="stable"):
            k, i = divmod(int(flat), max(len(graph), 1))
            if rank[k, i] < 0:
                break
            if numbers[i] < 0 and known[k].unseen:
                numbers[i] = known[k].number
                known[k].box, known[k].label, known[k].unseen = graph.boxes[i], int(graph.labels[i]), 0
        for i in np.flatnonzero(numbers < 0).tolist():
            numbers[i] = self._next
            known.append(_Thing(self._next, graph.boxes[i], int(graph.labels[i])))
            self._next += 1
        self._things = [thing for thing in known if thing.unseen <= self.patience]
        return numbers
