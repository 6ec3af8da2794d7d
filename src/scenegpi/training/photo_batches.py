"""Photos and their boxes, augmented for the photo network: stretched to a square, mirrored, zoomed, re-lit."""

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
"""Minimum side of the part that a zoomed photo shows."""
VISIBLE = 0.5
"""A box is kept in a zoomed photo if at least this fraction of its area is."""
LIGHT = 0.25
LISTED = 1.5
"""A box that a model found is in a view with this many times its chance of being annotated: people leave out much."""
log = logging.getLogger("scenegpi")


class PhotoBatch(NamedTuple):
    """photos ``(B, 3, S, S)`` bytes; boxes ``(N, 4)`` x1, y1, x2, y2 in fractions; row of label sets, kind and photo of
    each ``(N,)``; listed ``(B, KINDS)``, which kinds of things are annotated in a photo; taught ``(M,)``, which boxes a
    model found, and said ``(M, C)``, its P(label) of these.
    """

    photos: Tensor
    boxes: Tensor
    rows: Tensor
    kinds: Tensor
    image: Tensor
    listed: Tensor
    taught: Tensor = torch.zeros(0, dtype=torch.int64)
    said: Tensor = torch.zeros(0, 0)


class TrainingPhotos(Dataset[PhotoBatch]):
    """Photos as seen in an epoch: keys (epoch, i) -> a batch. Augmentation depends only on the seed and the key.

    The side of an epoch's square photos, in pixels, is one of `sides`: processes that train together keep step.
    """

    def __init__(self, photos: Sequence[TrainingPhoto], sides: Sequence[int], seed: int) -> None:
        self.photos, self.sides, self.seed = photos, tuple(sides), seed

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, keys: list[Key]) -> PhotoBatch:
        epoch = keys[0][0]
        side = int(np.random.default_rng((self.seed, epoch)).choice(self.sides))
        pixels, boxes, kept = zip(*(self.seen(side, *key) for key in keys), strict=True)
        photos = [self.photos[i] for _, i in keys]
        rows, kinds = (
            np.concatenate([getattr(photo, name)[some] for photo, some in zip(photos, kept, strict=True)])
            for name in ("rows", "kinds")
        )
        taught = [some - len(photo.rows) + len(photo.said) for photo, some in zip(photos, kept, strict=True)]
        said = [photo.said[row[row >= 0]] for photo, row in zip(photos, taught, strict=True) if (row >= 0).any()]
        return PhotoBatch(
            torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2),
            torch.from_numpy(np.concatenate(boxes)).float(),
            torch.from_numpy(rows),
            torch.from_numpy(kinds),
            torch.from_numpy(np.repeat(np.arange(len(keys)), [len(some) for some in kept])),
            torch.tensor([photo.listed for photo in photos]),
            torch.from_numpy(np.flatnonzero(np.concatenate(taught) >= 0)),
            torch.from_numpy(np.concatenate(said) if said else np.zeros((0, 0), np.float16)).float(),
        )

    def seen(self, side: int, epoch: int, i: int) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.int64]]:
        """A photo as it is in an epoch: pixels (side, side, 3), the boxes that can be seen in fractions of these, and
        their numbers. One that cannot be read is reported, and is black and without boxes.
        """
        photo, rng = self.photos[i], np.random.default_rng((self.seed, epoch, i))
        window, light, mirrored = _window(rng), _light(rng), rng.random() < 0.5
        there = np.append(np.ones(len(photo.rows) - len(photo.chance)), LISTED * photo.chance) > rng.random(
            len(photo.rows)
        )
        try:
            image = Image.fromarray(open_photo(photo.path))
        except DataError as error:
            log.warning("%s; left out", error)
            return np.zeros((side, side, 3), np.uint8), np.zeros((0, 4)), np.zeros(0, np.int64)
        frame = tuple((np.array(image.size * 2) * window).tolist())
        pixels = light[np.asarray(image.resize((side, side), Image.Resampling.BILINEAR, frame, reducing_gap=3.0))]
        boxes, kept = _seen_through(photo.boxes.astype(np.float64), window)
        boxes, kept = boxes[there[kept]], kept[there[kept]]
        if mirrored:
            pixels = pixels[:, ::-1]
            boxes = np.stack([1 - boxes[:, 2], boxes[:, 1], 1 - boxes[:, 0], boxes[:, 3]], 1)
        return pixels, boxes, kept


def jittered(boxes: Tensor, amount: float) -> Tensor:
    """Boxes ``(N, 4)`` whose edges are moved by up to `amount` of their sides: found boxes are never exact."""
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
    """Boxes in fractions of the window, and the indices of those visible in it."""
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
