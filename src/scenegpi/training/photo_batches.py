"""Photos and their boxes, as the photo network is trained on them: stretched to a square, mirrored, zoomed, re-lit."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from scenegpi.errors import DataError
from scenegpi.training.batches import Key
from scenegpi.training.photo_sets import TrainingPhoto
from scenegpi.vision.photos import open_photo

ZOOM = 0.6
"""Least side of the part that a zoomed photo shows."""
VISIBLE = 0.5
"""A box stays in a zoomed photo if at least this share of its area does."""
LIGHT = 0.25
log = logging.getLogger("scenegpi")
Seen = tuple[NDArray[np.float64], NDArray[np.int64]]
"""Boxes in fractions of what a photo shows, and their numbers."""
NOTHING: Seen = (np.zeros((0, 4)), np.zeros(0, np.int64))


class View(NamedTuple):
    """What is done to a photo: the part that is shown, (4,), what each of 256 values becomes, and whether mirrored."""

    window: NDArray[np.float64]
    light: NDArray[np.uint8]
    mirrored: bool


class PhotoBatch(NamedTuple):
    """photos ``(B, 3, S, S)`` bytes; boxes ``(N, 4)`` x1, y1, x2, y2 in fractions; row of label sets, kind and photo of
    each ``(N,)``; listed ``(B, KINDS)``, which kinds of things are annotated in a photo; side S.

    `trunk`, if any, are the backbone's maps of the photos, which are left out then.
    """

    photos: Tensor
    boxes: Tensor
    rows: Tensor
    kinds: Tensor
    image: Tensor
    listed: Tensor
    side: int
    trunk: tuple[Tensor, ...] = ()


class TrainingPhotos(Dataset[PhotoBatch]):
    """Photos as an epoch sees them: keys (epoch, i) -> a batch. What is done to one depends on the seed and its key.

    A photo that can't be read is reported and comes without boxes.

    Args:
        photos: with their boxes.
        sides: the side of a batch's square photos, in pixels, is one of these.
        seed: of everything random.
    """

    def __init__(self, photos: Sequence[TrainingPhoto], sides: Sequence[int], seed: int) -> None:
        self.photos, self.sides, self.seed = photos, tuple(sides), seed

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, keys: list[Key]) -> PhotoBatch:
        side = int(np.random.default_rng((self.seed, *keys[0])).choice(self.sides))
        pixels = [self.pixels(side, *key) for key in keys]
        seen = [self.boxes(*key) if some is not None else NOTHING for key, some in zip(keys, pixels, strict=True)]
        shown = [np.zeros((side, side, 3), np.uint8) if some is None else some for some in pixels]
        return self.batch(keys, seen, torch.from_numpy(np.stack(shown)).permute(0, 3, 1, 2), side)

    def batch(self, keys: list[Key], seen: Sequence[Seen], pixels: Tensor, side: int) -> PhotoBatch:
        """Photos ``(B, 3, S, S)`` and the boxes that can be seen in each."""
        boxes, kept = zip(*seen, strict=True)
        photos = [self.photos[i] for _, i in keys]
        rows, kinds = (
            np.concatenate([getattr(photo, name)[some] for photo, some in zip(photos, kept, strict=True)])
            for name in ("rows", "kinds")
        )
        image = np.repeat(np.arange(len(keys)), [len(some) for some in kept])
        return PhotoBatch(
            pixels,
            torch.from_numpy(np.concatenate(boxes)).float(),
            torch.from_numpy(rows),
            torch.from_numpy(kinds),
            torch.from_numpy(image),
            torch.tensor([photo.listed for photo in photos]),
            side,
        )

    def pixels(self, side: int, epoch: int, i: int) -> NDArray[np.uint8] | None:
        """A photo as it is in an epoch, (side, side, 3); None if it can't be read."""
        try:
            image = Image.fromarray(open_photo(self.photos[i].path))
        except DataError as error:
            log.warning("%s; left out", error)
            return None
        view = self.view(epoch, i)
        frame = np.array(image.size * 2) * view.window
        small = image.resize((side, side), Image.Resampling.BILINEAR, box=tuple(frame.tolist()), reducing_gap=3.0)
        pixels = view.light[np.asarray(small)]
        return pixels[:, ::-1] if view.mirrored else pixels

    def boxes(self, epoch: int, i: int) -> Seen:
        """The boxes that can be seen of a photo in an epoch, in fractions, and their numbers."""
        view = self.view(epoch, i)
        boxes, kept = _seen_through(self.photos[i].boxes.astype(np.float64), view.window)
        if view.mirrored:
            boxes = np.stack([1 - boxes[:, 2], boxes[:, 1], 1 - boxes[:, 0], boxes[:, 3]], 1)
        return boxes, kept

    def view(self, epoch: int, i: int) -> View:
        """What is done to a photo in an epoch."""
        rng = np.random.default_rng((self.seed, epoch, i))
        return View(_window(rng), _light(rng), bool(rng.random() < 0.5))


def jittered(boxes: Tensor, amount: float) -> Tensor:
    """Boxes ``(N, 4)`` whose edges are moved by up to `amount` of their sides: found boxes are never quite right."""
    side = (boxes[:, 2:] - boxes[:, :2]).repeat(1, 2)
    return (boxes + side * amount * (2 * torch.rand_like(boxes) - 1)).clamp(0, 1)


def _window(rng: np.random.Generator) -> NDArray[np.float64]:
    """The part of the photo that is shown, (4,) x1, y1, x2, y2: all of it for half of them."""
    if rng.random() < 0.5:
        return np.array([0.0, 0.0, 1.0, 1.0])
    size = rng.uniform(ZOOM, 1, 2)
    low = rng.uniform(0, 1 - size)
    return np.concatenate([low, low + size])


def _seen_through(
    boxes: NDArray[np.float64], window: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Boxes in fractions of the window, and the numbers of those that can be seen in it."""
    low, size = np.tile(window[:2], 2), np.tile(window[2:] - window[:2], 2)
    moved = (boxes - low) / size
    cut = np.clip(moved, 0, 1)
    area = [np.maximum(each[:, 2:] - each[:, :2], 0).prod(1) for each in (moved, cut)]
    kept = np.flatnonzero((area[1] > 0) & (area[1] >= VISIBLE * area[0]))
    return cut[kept], kept


def _light(rng: np.random.Generator) -> NDArray[np.uint8]:
    """Brighter or darker, more or less contrast: what each of 256 values becomes."""
    gain, shift = rng.uniform(1 - LIGHT, 1 + LIGHT), rng.uniform(-LIGHT, LIGHT) * 64
    return np.clip((np.arange(256) - 128) * gain + 128 + shift, 0, 255).astype(np.uint8)
