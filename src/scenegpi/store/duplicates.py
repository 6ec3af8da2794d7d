"""Images of a store that are the same picture: copies, other sizes, other compression.

A photo's fingerprint is 64 bits: which cells of an 8 x 8 grid are darker than their right neighbours. Two photos match
if at most `distance` bits differ. Images without a photo, or with a blank one, match if they have the same objects and
relations.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from scenegpi.errors import DataError
from scenegpi.store.store import CHUNK, Hit, Store
from scenegpi.vision.photos import as_photo


def duplicates(store: Store, distance: int = 4) -> list[tuple[Hit, ...]]:
    """Groups of two or more images, in the order of the store; each image joins the first group that it matches."""
    with store.snapshot():
        hits = store.images(len(store))
        prints, shown, same = [], [], {}  # type: tuple[list[NDArray[np.int8]], list[int], dict[str, list[int]]]
        for start in range(0, len(hits), CHUNK):
            others = []
            for place, hit in enumerate(hits[start : start + CHUNK], start):
                found = fingerprint(store.photo(hit))
                if found is None:
                    others.append(place)
                else:
                    prints.append(found)
                    shown.append(place)
            graphs = store.graphs(hits[place].image for place in others)
            for place in others:
                graph = graphs[hits[place].image]
                if len(graph):
                    text = graph.replace(image_id=None, file=None).to_json()
                    same.setdefault(text, []).append(place)
    groups = [*_matching(np.array(prints, np.int8).reshape(-1, 64), shown, distance), *same.values()]
    return [tuple(hits[place] for place in group) for group in sorted(groups) if len(group) > 1]


def fingerprint(photo: Path | None) -> NDArray[np.int8] | None:
    """(64,) of -1 and 1; None for a photo that is missing, blank or cannot be read."""
    try:
        pixels = None if photo is None else as_photo(photo)
    except DataError:
        pixels = None
    if pixels is None:
        return None
    grey = np.asarray(Image.fromarray(pixels).convert("L").resize((9, 8), Image.Resampling.BOX), np.int16)
    found = np.where(grey[:, 1:] > grey[:, :-1], 1, -1).astype(np.int8).ravel()
    return None if (found == found[0]).all() else found


def _matching(prints: NDArray[np.int8], places: list[int], distance: int) -> Iterable[list[int]]:
    """Groups of `places`: each print (n, 64) joins the first earlier one that it matches."""
    first = np.arange(len(prints))
    for start in range(0, len(prints), CHUNK):
        block = prints[start : start + CHUNK].astype(np.float32)
        differ = (64 - block @ prints[: start + len(block)].T.astype(np.float32)) / 2
        match = differ <= distance
        match[:, start:] &= np.tri(len(block), dtype=bool)
        first[start : start + len(block)] = first[match.argmax(axis=1)]
    groups: dict[int, list[int]] = {}
    for place, leader in zip(places, first.tolist(), strict=True):
        groups.setdefault(leader, []).append(place)
    return groups.values()
