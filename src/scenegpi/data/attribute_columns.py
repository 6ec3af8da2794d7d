"""The attributes of all boxes of a data set as flat arrays: no Python object for a box."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from scenegpi.checks import Attributes
from scenegpi.graph import SceneGraph


class AttributeColumns:
    """Box b of all has the attributes `ends[b]:ends[b + 1]`, each a number of `names` and a score.

    Args:
        boxes: how many boxes without attributes come first.
    """

    def __init__(self, boxes: int) -> None:
        self.number: dict[str, int] = {}
        self.names: list[str] = []
        self.ids, self.scores = array("i"), array("d")
        self.ends = array("q", repeat(0, boxes + 1))

    @classmethod
    def of(cls, numbers: NDArray[np.int64], names: Sequence[str]) -> AttributeColumns:
        """From a table (B, K) of numbers from 1 to the number of names; 0 and what is repeated in a row are none."""
        order = np.sort(numbers, axis=1)
        there = order > 0
        there[:, 1:] &= order[:, 1:] != order[:, :-1]
        made = cls(0)
        made.names = list(names)
        made.number = {name: k for k, name in enumerate(made.names)}
        made.ids.frombytes((order[there] - 1).astype(np.int32).tobytes())
        made.scores.frombytes(np.ones(len(made.ids)).tobytes())
        made.ends.frombytes(np.cumsum(there.sum(1, dtype=np.int64)).tobytes())
        return made

    def add(self, graph: SceneGraph) -> None:
        """The boxes of the next image."""
        for row in graph.attributes or repeat((), len(graph)):
            for name, score in row:
                number = self.number.setdefault(name, len(self.names))
                if number == len(self.names):
                    self.names.append(name)
                self.ids.append(number)
                self.scores.append(score)
            self.ends.append(len(self.ids))

    def by_label(self, labels: NDArray[np.int32], words: Sequence[str]) -> Counter[tuple[str, str]]:
        """How many boxes of each label, of which `labels` (B,) has the numbers, have each attribute."""
        ends = np.array(self.ends, dtype=np.int64)
        box = np.repeat(np.arange(len(labels)), ends[1:] - ends[:-1])
        each = np.unique(np.stack([box, np.array(self.ids, dtype=np.int64)]), axis=1)
        pairs, counts = np.unique(np.stack([labels[each[0]], each[1]]), axis=1, return_counts=True)
        rows = zip(*pairs.tolist(), counts.tolist(), strict=True)
        return Counter({(words[label], self.names[name]): count for label, name, count in rows})

    def rows(self, start: int, stop: int) -> Attributes | None:
        """Of some boxes; None where none has any."""
        if self.ends[start] == self.ends[stop]:
            return None
        return tuple(
            tuple((self.names[self.ids[k]], self.scores[k]) for k in range(self.ends[b], self.ends[b + 1]))
            for b in range(start, stop)
        )
