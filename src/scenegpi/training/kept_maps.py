"""Maps of a frozen backbone, computed once per photo and kept on disk while its necks and heads are trained.

FOLDER/maps.f16     a row per photo: the maps, from fine to coarse, in half precision
FOLDER/maps.done    a byte per photo: 1 once its row is whole, 2 if the photo cannot be read
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from scenegpi.training.batches import Key
from scenegpi.training.finder_loss import STRIDES
from scenegpi.training.photo_batches import NOTHING, PhotoBatch, TrainingPhotos
from scenegpi.training.photo_sets import TrainingPhoto
from scenegpi.vision.finder import LEVELS
from scenegpi.vision.network import PhotoNetwork

FILES = ("maps.f16", "maps.done")


class KeptMaps(TrainingPhotos):
    """As `TrainingPhotos`, with the maps in place of the photos; what is done to a photo depends on seed and number.

    Args:
        photos, seed: as there.
        side: of the square photos in pixels.
        network: whose backbone computes the maps.
        folder: where they are kept.
    """

    def __init__(
        self, photos: Sequence[TrainingPhoto], side: int, seed: int, network: PhotoNetwork, folder: Path
    ) -> None:
        super().__init__(photos, (side,), seed)
        self.network = network
        self.shapes = [(network.trunk.widths[name], side // STRIDES[name], side // STRIDES[name]) for name in LEVELS]
        self.ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        folder.mkdir(parents=True, exist_ok=True)
        self.maps: NDArray[np.float16] = _kept(
            folder / FILES[0], np.dtype(np.float16), (len(photos), int(self.ends[-1]))
        )
        self.done: NDArray[np.uint8] = _kept(folder / FILES[1], np.dtype(np.uint8), (len(photos),))

    def __getitem__(self, keys: list[Key]) -> PhotoBatch:
        rows = [i for _, i in keys]
        new = [i for i in rows if not self.done[i]]
        if new:
            self.compute(new)
        trunk = tuple(
            torch.from_numpy(part.reshape(-1, *shape)).to(memory_format=torch.channels_last)
            for part, shape in zip(np.split(self.maps[rows], self.ends[:-1], axis=1), self.shapes, strict=True)
        )
        seen = [self.boxes(0, i) if self.done[i] == 1 else NOTHING for i in rows]
        return self.batch(keys, seen, torch.empty(0), self.sides[0])._replace(trunk=trunk)

    @torch.inference_mode()
    def compute(self, rows: Sequence[int]) -> None:
        """Computes and keeps the maps of these photos."""
        for i in rows:
            pixels = self.pixels(self.sides[0], 0, i)
            if pixels is not None:
                photo = torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None]
                maps = self.network.trunk.maps(photo, LEVELS)
                self.maps[i] = torch.cat([each.values.flatten() for each in maps]).half().numpy()
            self.done[i] = 2 if pixels is None else 1


def drop_maps(folder: Path) -> None:
    """Removes what was kept, when it is no longer needed."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)


def _kept(path: Path, kind: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """The file as an array, zeros where it is new; one of another length is of another training and begun anew."""
    size = int(np.prod(shape)) * kind.itemsize
    fits = path.is_file() and path.stat().st_size == size
    return np.memmap(path, dtype=kind, mode="r+" if fits else "w+", shape=shape)
