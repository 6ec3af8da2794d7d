"""Many graphs as a few flat arrays, one after the other: image i owns rows ptr[i]:ptr[i + 1] of an array.

No Python object per box; a `SceneGraph` is made on demand from views of these arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scenegpi.checks import Attributes, frozen
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

SPLITS = {"train": 0, "val": 1, "test": 2}
NO_SPLIT = -1


@dataclass(eq=False)
class Columns:
    """The graphs of a data set, for N images, B boxes and R relations.

    Args:
        image_ids, files, splits: of each image.
        sizes: (N, 2) width, height.
        boxes, labels, relations: (B, 4), (B,), (R, 3), checked, of SceneGraph's dtypes.
        box_ptr, relation_ptr: (N + 1,) where each image's rows start.
        attributes: (B, K) places in `attribute_names`, from 1; 0 is none.
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
        for array in (self.boxes, self.labels, self.relations):
            frozen(array)

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

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(N,) boxes and (N,) relations of each image."""
        return np.diff(self.box_ptr), np.diff(self.relation_ptr)

    def split_codes(self) -> NDArray[np.int8]:
        """(N,) 0 train, 1 val, 2 test, -1 not said."""
        return self.splits
