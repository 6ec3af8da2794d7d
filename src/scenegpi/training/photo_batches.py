"""Photos and their boxes, as the photo network is trained on them: stretched to a square, mirrored, zoomed, re-lit."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from scenegpi.errors import DataError
from scenegpi.features.arrays import image_size
from scenegpi.graph import SceneGraph
from scenegpi.training.batches import Key
from scenegpi.vision.photos import open_photo

ZOOM = 0.6
"""Least side of the part that a zoomed photo shows."""
VISIBLE = 0.5
"""A box stays in a zoomed photo if at least this share of its area does."""
LIGHT = 0.25
log = logging.getLogger("scenegpi")


class PhotoBatch(NamedTuple):
    """photos ``(B, 3, S, S)`` bytes; boxes ``(N, 4)`` x1, y1, x2, y2 in fractions; label and photo of each ``(N,)``."""

    photos: Tensor
    boxes: Tensor
    labels: Tensor
    image: Tensor


class TrainingPhotos(Dataset[PhotoBatch]):
    """Photos as an epoch sees them: keys (epoch, i) -> a batch. What is done to one depends on the seed and its key.

    A photo that can't be read is reported and comes without boxes.
    """

    def __init__(self, photos: Sequence[Path], graphs: Sequence[SceneGraph], side: int, seed: int) -> None:
        self.photos, self.graphs, self.side, self.seed = photos, graphs, side, seed

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, keys: list[Key]) -> PhotoBatch:
        photos, boxes, labels = zip(*(self.photo(*key) for key in keys), strict=True)
        image = torch.arange(len(keys)).repeat_interleave(torch.tensor([len(each) for each in boxes]))
        return PhotoBatch(torch.stack(photos), torch.cat(boxes), torch.cat(labels), image)

    def photo(self, epoch: int, i: int) -> tuple[Tensor, Tensor, Tensor]:
        """The photo of an epoch, its boxes in fractions, and their labels."""
        rng = np.random.default_rng((self.seed, epoch, i))
        graph = self.graphs[i]
        try:
            image = Image.fromarray(open_photo(self.photos[i]))
        except DataError as error:
            log.warning("%s; left out", error)
            return torch.zeros(3, self.side, self.side, dtype=torch.uint8), torch.zeros(0, 4), torch.zeros(0).long()
        boxes = np.clip(graph.boxes / np.array(image_size(graph) * 2), 0, 1)
        window = _window(rng)
        boxes, kept = _seen_through(boxes, window)
        frame = np.array(image.size * 2) * window
        small = image.resize(
            (self.side, self.side), Image.Resampling.BILINEAR, box=tuple(frame.tolist()), reducing_gap=3.0
        )
        pixels = _relit(np.asarray(small), rng)
        if rng.random() < 0.5:
            pixels, boxes = pixels[:, ::-1], np.stack([1 - boxes[:, 2], boxes[:, 1], 1 - boxes[:, 0], boxes[:, 3]], 1)
        labels = torch.from_numpy(graph.labels[kept].astype(np.int64))
        return (
            torch.from_numpy(np.ascontiguousarray(pixels)).permute(2, 0, 1),
            torch.from_numpy(boxes).float(),
            labels,
        )


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


def _relit(pixels: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Brighter or darker, more or less contrast."""
    gain, shift = rng.uniform(1 - LIGHT, 1 + LIGHT), rng.uniform(-LIGHT, LIGHT) * 64
    table = np.clip((np.arange(256) - 128) * gain + 128 + shift, 0, 255).astype(np.uint8)
    return table[pixels]
