"""Many graphs as a few flat arrays.

    boxes (B, 4), labels (B,), relations (R, 3) with indices local to the image; image i owns boxes
    box_ptr[i]:box_ptr[i+1] and relations relation_ptr[i]:relation_ptr[i+1].

No Python object a box; a `SceneGraph` is made on demand from views of these arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.checks import Attributes
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

SPLITS = {"train": 0, "val": 1, "test": 2}
NO_SPLIT = -1


class AttributeColumns:
    """Box b of all has the attributes `ids[ends[b]:ends[b + 1]]`, numbers of `names`.

    Args:
        numbers: (B, K) numbers from 1 to the number of names; 0 and what is repeated in a row are none.
        names: of the attributes.
    """

    def __init__(self, numbers: NDArray[np.int64], names: Sequence[str]) -> None:
        order = np.sort(numbers, axis=1)
        there = order > 0
        there[:, 1:] &= order[:, 1:] != order[:, :-1]
        self.names, self.ids = names, (order[there] - 1).astype(np.int32)
        self.ends = np.concatenate([[0], np.cumsum(there.sum(1, dtype=np.int64))])

    def rows(self, start: int, stop: int) -> Attributes | None:
        """Of some boxes; None where none has any."""
        if self.ends[start] == self.ends[stop]:
            return None
        numbers = np.split(self.ids[self.ends[start] : self.ends[stop]], self.ends[start + 1 : stop] - self.ends[start])
        return tuple(tuple((self.names[k], 1.0) for k in row.tolist()) for row in numbers)


@dataclass(eq=False)
class Columns:
    """The graphs of a data set, each array checked. Rows without a size have width and height 0."""

    vocabulary: Vocabulary
    image_ids: Sequence[int | str | None]
    files: Sequence[str | None]
    widths: NDArray[np.int32]
    heights: NDArray[np.int32]
    splits: NDArray[np.int8]
    boxes: NDArray[np.float64]
    labels: NDArray[np.int32]
    box_ptr: NDArray[np.int64]
    relations: NDArray[np.int32]
    relation_ptr: NDArray[np.int64]
    scores: NDArray[np.floating] | None = None
    label_dist: NDArray[np.floating] | None = None
    relation_scores: NDArray[np.floating] | None = None
    pairs: NDArray[np.int32] | None = None
    pair_ptr: NDArray[np.int64] | None = None
    pair_dist: NDArray[np.floating] | None = None
    attributes: AttributeColumns | None = None
    absent: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    """For an optional array that only some images have: (N,) which ones don't."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __len__(self) -> int:
        return len(self.image_ids)

    def graph(self, i: int) -> SceneGraph:
        """Image i's graph: views, no copies."""
        a, b = self.box_ptr.item(i), self.box_ptr.item(i + 1)
        c, d = self.relation_ptr.item(i), self.relation_ptr.item(i + 1)
        fields: dict[str, Any] = {}
        for name, start, end in (("scores", a, b), ("label_dist", a, b), ("relation_scores", c, d)):
            column = getattr(self, name)
            if column is not None and end > start:
                fields[name] = column[start:end]
        if self.attributes is not None:
            fields["attributes"] = self.attributes.rows(a, b)
        if self.pairs is not None and self.pair_ptr is not None and self.pair_dist is not None:
            e, f = self.pair_ptr.item(i), self.pair_ptr.item(i + 1)
            fields["pairs"], fields["pair_dist"] = self.pairs[e:f], self.pair_dist[e:f]
        for name, missing in self.absent.items():
            if missing[i]:
                fields[name] = None
                if name == "pair_dist":
                    fields["pairs"] = None
        return SceneGraph.trusted(
            vocabulary=self.vocabulary,
            image_id=self.image_ids[i],
            file=self.files[i],
            width=self.widths.item(i) or None,
            height=self.heights.item(i) or None,
            boxes=self.boxes[a:b],
            labels=self.labels[a:b],
            relations=self.relations[c:d],
            **fields,
        )

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(N,) boxes and (N,) relations of each image."""
        return np.diff(self.box_ptr), np.diff(self.relation_ptr)

    def split_codes(self) -> NDArray[np.int8]:
        """(N,) 0 train, 1 val, 2 test, -1 not said."""
        return self.splits
