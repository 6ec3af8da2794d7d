"""What the model that a run starts from finds in photos of the other annotation, of kinds that this does not list.

    finds = read_finds(config.start, photos, RUN / "vision" / "taught", processes=2)
    finds["391895"]                              # Finds: a window, a shirt, ..., each with P(label)

They are learned like annotated boxes (self-training; Sohn et al. 2020): Visual Genome names a shirt in few photos, and
COCO has a hundred thousand more. Photos are read once, in parts that are kept in the folder.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from scenegpi.errors import DataError
from scenegpi.files import whole_file
from scenegpi.models.checkpoint import load_model
from scenegpi.npz import load_npz
from scenegpi.progress import progress
from scenegpi.training.label_head import report_unreadable
from scenegpi.training.processes import is_first_process, wait_for
from scenegpi.vision.config import FinderConfig
from scenegpi.vision.find import Finder
from scenegpi.vision.photos import open_photo

PART = 1000
"""Photos per file."""
SURE, NAMED = 0.05, 0.3
"""Minimum chance of a find to be annotated, and minimum P of its label."""
SHARP = 2.0
"""P(label) is raised to this power: the label is to become clearer, not to stay as vague as it is."""


class Finds(NamedTuple):
    """Boxes ``(N, 4)``, x1, y1, x2, y2 in fractions of the photo, the chance of each to be a thing that people would
    annotate ``(N,)``, and P(label) ``(N, C)``."""

    boxes: NDArray[np.float32]
    chance: NDArray[np.float32]
    dist: NDArray[np.float16]


def read_finds(
    start: str, photos: Mapping[str, Path], folder: Path, *, processes: int = 1, shown: bool = False
) -> dict[str, Finds]:
    """What the model `start` finds in each photo, by the photo's name. All processes of a run call this; the first one
    reads the photos, with so many processes of its own, unless the folder holds the result."""
    names = list(photos)
    parts = [names[k : k + PART] for k in range(0, len(names), PART)]
    files = [folder / f"{k:05}.npz" for k in range(len(parts))]
    left = [k for k, file in enumerate(files) if not file.is_file()]
    if left and is_first_process():
        folder.mkdir(parents=True, exist_ok=True)
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, spawn) as pool, progress("photos to learn from", len(left), shown) as step:
            jobs = [pool.submit(_read, start, [photos[name] for name in parts[k]], files[k]) for k in left]
            for job in jobs:
                job.result()
                step()
    found: dict[str, Finds] = {}
    for some, file in zip(parts, files, strict=True):
        wait_for(file)
        found |= dict(zip(some, _kept(file, len(some)), strict=True))
    return found


def _read(start: str, photos: Sequence[Path], file: Path) -> None:
    """Writes the finds of these photos; one that cannot be read has none."""
    finder, finds = _finder(start), []
    for path in photos:
        try:
            finds.append(finds_in(finder, path))
        except DataError as error:
            report_unreadable(error)
            finds.append(no_finds(len(finder.vision.labels.objects)))
    boxes, chance, dist = (np.concatenate(each) for each in zip(*finds, strict=True))
    counts = np.array([len(each.boxes) for each in finds])
    with whole_file(file) as part, part.open("wb") as handle:
        np.savez(handle, counts=counts, boxes=boxes, chance=chance, dist=dist)


def finds_in(finder: Finder, path: Path) -> Finds:
    """The finds of one photo that are sure enough."""
    photo = open_photo(path)
    found = finder.detect(photo)
    if found.label_dist is None or found.sure is None:
        raise TypeError("the finder gives no distributions")
    dist = finder.vision.folded(torch.from_numpy(found.label_dist)).double().numpy()
    kept = (found.sure >= SURE) & (dist.max(1, initial=0.0) >= NAMED)
    sharp = dist[kept] ** SHARP
    share = found.boxes[kept] / np.array([photo.shape[1], photo.shape[0]] * 2)
    dist = (sharp / sharp.sum(1, keepdims=True)).astype(np.float16)
    return Finds(share.astype(np.float32), found.sure[kept].astype(np.float32), dist)


def no_finds(labels: int) -> Finds:
    """Those of a photo that cannot be read."""
    return Finds(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros((0, labels), np.float16))


@cache
def _finder(start: str) -> Finder:
    """Reads each photo once, not its mirror image as well: twice as many photos are worth more."""
    vision = load_model(start).vision
    if vision is None or vision.config.finder is None:
        raise DataError(start, "is not a photo model")
    vision.config = replace(vision.config, features=replace(vision.config.features, mirror=False))
    return Finder(vision, FinderConfig(**vars(vision.config.finder) | {"floor": SURE, "named_floor": 0.0}))


def _kept(file: Path, photos: int) -> list[Finds]:
    """The finds of each photo; DataError if the file is not one of ours."""
    arrays = load_npz(file, ("counts", *Finds._fields))
    counts = arrays.get("counts", np.zeros(0))
    lengths = {int(counts.sum()), *(len(arrays.get(name, ())) for name in Finds._fields)}
    if len(counts) != photos or len(lengths) > 1:
        raise DataError(file, "is not what was written for these photos")
    ends = np.cumsum(counts)[:-1]
    return [Finds(*each) for each in zip(*(np.split(arrays[name], ends) for name in Finds._fields), strict=True)]
