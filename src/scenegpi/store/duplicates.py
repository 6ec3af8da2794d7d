"""Images of a store that are the same picture: copies, other sizes, other compression.

A photo's fingerprint is 64 bits: which of 8 x 8 places are darker than the one to their right? Two photos are alike
where at most `distance` bits differ. Images without a photo, or with one that is blank, are alike where they have the
same objects and relations.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import DataError
from scenegpi.store.store import CHUNK, Hit, Store


def duplicates(store: Store, distance: int = 4) -> list[tuple[Hit, ...]]:
    """Groups of two or more images, in the order of the store; each is with the first one that it is like."""
    with store.snapshot():
        hits = store.images(len(store))
        prints, shown, same = [], [], {}  # type: tuple[list[NDArray[np.int8]], list[int], dict[str, list[int]]]
        for start in range(0, len(hits), CHUNK):
            some = hits[start : start + CHUNK]
            unseen = []
            for place, hit in enumerate(some, start):
                photo = store.photo(hit)
                try:
                    found = None if photo is None else fingerprint(photo)
                except DataError:  # it cannot be read
                    found = None
                if found is None or (found == found[0]).all():
                    unseen.append(place)
                else:
                    prints.append(found)
                    shown.append(place)
            graphs = store.graphs(hits[place].image for place in unseen)
            for place in unseen:
                graph = graphs[hits[place].image]
                if len(graph):
                    text = graph.replace(image_id=None, file=None).to_json()
                    same.setdefault(text, []).append(place)
    groups = [*_alike(np.array(prints, np.int8).reshape(-1, 64), shown, distance), *same.values()]
    return [tuple(hits[place] for place in group) for group in sorted(groups) if len(group) > 1]


def fingerprint(photo: object) -> NDArray[np.int8]:
    """(64,) of -1 and 1."""
    from PIL import Image

    from scenegpi.vision.photos import as_photo

    small = Image.fromarray(as_photo(photo)).convert("L").resize((9, 8), Image.Resampling.BOX)
    grey = np.asarray(small, np.int16)
    return np.where(grey[:, 1:] > grey[:, :-1], 1, -1).astype(np.int8).ravel()


def _alike(prints: NDArray[np.int8], places: list[int], distance: int) -> Iterable[list[int]]:
    """Groups of `places`: each print (n, 64) with the first earlier one that it is like."""
    first = np.arange(len(prints))
    for start in range(0, len(prints), CHUNK):
        block = prints[start : start + CHUNK].astype(np.float32)
        differ = (64 - block @ prints[: start + len(block)].T.astype(np.float32)) / 2
        like = differ <= distance
        like[:, start:] &= np.tri(len(block), dtype=bool)
        first[start : start + len(block)] = first[like.argmax(axis=1)]
    groups: dict[int, list[int]] = {}
    for place, leader in zip(places, first.tolist(), strict=True):
        groups.setdefault(leader, []).append(place)
    return groups.values()
