"""Many graphs as a few flat arrays, one after the other: image i owns rows ptr[i]:ptr[i + 1] of an array.

No Python object per box; a `SceneGraph` is made on demand from views of these arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """The graphs of a data set.

    Args:
        image_ids, files, sizes, splits: of each image; sizes (N, 2) width, height.
        arrays: fields of SceneGraph, all images one after the other, checked, of its dtypes.
        pointers: (N + 1,) of boxes, relations and pairs, where each image's rows start.
        absent: for an array that only some images have: (N,) which ones don't.
    """

    vocabulary: Vocabulary
    image_ids: Sequence[int | str | None]
    files: Sequence[str | None]
    sizes: NDArray[np.int32]
    splits: NDArray[np.int8]
    arrays: Mapping[str, NDArray[Any]]
    pointers: Mapping[str, NDArray[np.int64]]
    attributes: AttributeColumns | None
    absent: Mapping[str, NDArray[np.bool_]]

    def __post_init__(self) -> None:
        for value in self.arrays.values():
            value.flags.writeable = False

    def __len__(self) -> int:
        return len(self.image_ids)

    def graph(self, i: int) -> SceneGraph:
        """Image i's graph: views, no copies."""
        rows = {name: slice(ptr.item(i), ptr.item(i + 1)) for name, ptr in self.pointers.items()}
        fields: dict[str, Any] = {name: array[rows[ROWS_OF[name]]] for name, array in self.arrays.items()}
        for name in ("scores", "label_dist", "relation_scores"):
            if name in fields and not len(fields[name]):
                fields[name] = None  # no rows, nothing said
        for name, missing in self.absent.items():
            if missing[i]:
                fields |= {name: None, "pairs": None} if name == "pair_dist" else {name: None}
        boxes = rows["boxes"]
        width, height = self.sizes[i].tolist()
        return SceneGraph.trusted(
            vocabulary=self.vocabulary,
            image_id=self.image_ids[i],
            file=self.files[i],
            width=width,
            height=height,
            attributes=None if self.attributes is None else self.attributes.rows(boxes.start, boxes.stop),
            **fields,
        )

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(N,) boxes and (N,) relations of each image."""
        return np.diff(self.pointers["boxes"]), np.diff(self.pointers["relations"])

    def split_codes(self) -> NDArray[np.int8]:
        """(N,) 0 train, 1 val, 2 test, -1 not said."""
        return self.splits


ROWS_OF = dict.fromkeys(("boxes", "labels", "scores", "label_dist"), "boxes")
ROWS_OF |= dict.fromkeys(("relations", "relation_scores"), "relations") | dict.fromkeys(("pairs", "pair_dist"), "pairs")
