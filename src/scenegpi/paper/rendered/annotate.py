"""What an annotator would write down: a tight box around the visible part of each thing, and some of the relations."""

from __future__ import annotations

from itertools import combinations
from random import Random

import numpy as np
from numpy.typing import NDArray

from scenegpi.paper.rendered.paint import Painted
from scenegpi.paper.rendered.stage import Relation, Stage

SEEN, SIDE = 0.22, 9  # a thing is annotated if this share of it is visible and its box is this wide and high, in pixels
MOST = 40  # relations per image


def visible_boxes(stage: Stage, painted: Painted) -> dict[int, tuple[int, int, int, int]]:
    """Thing -> x1, y1, x2, y2 (x2, y2 just past the last pixel) of its visible part, with its own parts."""
    seen = np.bincount(painted.owner[painted.owner >= 0], minlength=len(stage.things))
    extents = {k: _extent(painted.owner == k) for k in np.flatnonzero(seen).tolist()}
    for k, thing in enumerate(stage.things):
        if thing.part_of in extents and k in extents:
            a, b = extents[thing.part_of], extents[k]
            extents[thing.part_of] = (min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]))
    return {
        k: box
        for k, box in sorted(extents.items())
        if stage.things[k].label and seen[k] >= SEEN * painted.full[k] and min(box[2] - box[0], box[3] - box[1]) >= SIDE
    }


def _extent(mask: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def annotate(stage: Stage, boxes: dict[int, tuple[int, int, int, int]], rng: Random) -> list[tuple[int, str, int]]:
    """The relations written down: of those the grammar knows most, of those the eye finds (near, behind, ...) a few."""
    known = [r for r in stage.relations if r.subject in boxes and r.object in boxes]
    taken = {frozenset((r.subject, r.object)) for r in known}
    found = [r for r in _seen(stage, boxes, rng) if frozenset((r.subject, r.object)) not in taken]
    chosen = [
        r for r in known + found if rng.random() < r.weight and holds(r.predicate, boxes[r.subject], boxes[r.object])
    ]
    return [(r.subject, r.predicate, r.object) for r in chosen[:MOST]]


def _seen(stage: Stage, boxes: dict[int, tuple[int, int, int, int]], rng: Random) -> list[Relation]:
    """Relations that only the eye finds. One of the two ways to say it is drawn (A behind B, B in front of A)."""
    found = []
    for a, b in combinations(boxes, 2):
        first, second = stage.things[a], stage.things[b]
        if first.part_of is not None or second.part_of is not None:
            continue
        if rng.random() < 0.5:
            a, b, first, second = b, a, second, first
        box, other = boxes[a], boxes[b]
        metre = (first.frame.scale + second.frame.scale) / 2
        wide = min(box[2], other[2]) - max(box[0], other[0])
        high = min(box[3], other[3]) - max(box[1], other[1])
        apart = (first.depth - second.depth) / metre
        if first.floating or second.floating:
            if first.floating != second.floating and wide > -0.4 * metre:
                up, low = (a, b) if first.floating else (b, a)
                gap = boxes[low][1] - boxes[up][3]
                if -4 <= gap < (4 if stage.things[up].label in ("bird", "kite") else 1.2) * metre:
                    found.append(Relation(*((up, "above", low) if rng.random() < 0.6 else (low, "under", up)), 0.15))
            elif first.floating and second.floating and max(-wide, -high) < 0.8 * metre:
                found.append(Relation(a, "near", b, 0.2))
        elif abs(apart) > 0.28 and wide > 0.3 * min(box[2] - box[0], other[2] - other[0]) and high > 0:
            found.append(Relation(a, "in front of" if apart > 0 else "behind", b, 0.24))
        elif abs(apart) < 0.6 and max(-wide, -high) < 0.5 * metre:
            found.append(Relation(a, "near", b, 0.08))
    return found


def holds(predicate: str, subject: tuple[int, int, int, int], object_: tuple[int, int, int, int]) -> bool:
    """Whether what is left of the two boxes, after hiding and cutting, still shows the relation."""
    wide = min(subject[2], object_[2]) - max(subject[0], object_[0])
    high = min(subject[3], object_[3]) - max(subject[1], object_[1])
    middle = (subject[1] + subject[3]) / 2
    if predicate in ("riding", "sitting on", "in", "behind", "in front of", "has"):
        return wide > 0 and high > 0
    if predicate == "on":
        return wide > 0 and high > -4 and middle < object_[3]
    if predicate == "above":
        return middle < (object_[1] + object_[3]) / 2
    if predicate == "under":
        return middle > (object_[1] + object_[3]) / 2
    if predicate == "wearing":
        return wide > 0 and high > -6 and middle > (object_[1] + object_[3]) / 2
    return True
