"""Which images a model was trained on, without keeping them: four bytes per image.

The key of an image is a hash of its boxes, rounded to pixels, with their label names. The order of the boxes, the
image's id and its file don't matter, so the same annotations are recognised in any file format. An image that was not
trained on is mistaken for one of n training images with probability n in four billion.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import numpy as np

from scenegpi.errors import DataError
from scenegpi.files import read_bytes
from scenegpi.graph import SceneGraph

MAX_BYTES = 1 << 26


class Fingerprint(frozenset[int]):
    """Keys of the training images."""

    @classmethod
    def of(cls, graphs: Iterable[SceneGraph]) -> Fingerprint:
        """The keys of annotated images; those without boxes can't be recognised."""
        return cls(image_key(graph) for graph in graphs if len(graph))

    def seen(self, graph: SceneGraph) -> bool:
        """Whether the model was trained on this image."""
        return len(graph) > 0 and image_key(graph) in self

    def count(self, graphs: Iterable[SceneGraph]) -> int:
        """The number of these images that the model was trained on."""
        return sum(map(self.seen, graphs))

    def write(self, path: Path) -> None:
        """Sorted numbers of four bytes, little endian."""
        path.write_bytes(np.array(sorted(self), dtype="<u4").tobytes())

    @classmethod
    def read(cls, path: Path) -> Fingerprint:
        """Inverse of `write`; DataError on anything else."""
        try:
            keys = np.frombuffer(read_bytes(path, MAX_BYTES, empty=True), dtype="<u4")
        except ValueError:
            raise DataError(path, "is not a list of four-byte numbers") from None
        if (keys[1:] <= keys[:-1]).any():
            raise DataError(path, "the keys are not sorted")
        return cls(keys.tolist())


def image_key(graph: SceneGraph) -> int:
    """The key of an image with boxes."""
    boxes = np.rint(graph.boxes).astype(np.int64).tolist()
    things = sorted((name, *box) for name, box in zip(graph.names, boxes, strict=True))
    return int.from_bytes(blake2b(repr(things).encode(), digest_size=4).digest(), "little")
