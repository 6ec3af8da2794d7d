"""Where the name of each box goes: clear of other names and of small boxes, near its own box.

Every name has a list of possible places, best first: corners of its box, along its sides, inside, and further away with
a line to the box. Each takes the cheapest place in turn, until no name moves. The cost counts names covered (most), the
fraction of each box that is covered (a small box vanishes under a name), and the distance to its own box.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scenegpi.viz.canvas import largest_first

Array = NDArray[np.float64]
SWEEPS = 6
_ON_TAG, _ON_BOX, _AWAY, _ORDER = 30.0, 1.6, 0.55, 0.012


def place_tags(boxes: Array, sizes: Array, width: float, height: float) -> Array:
    """(N, 2) top-left corners for tags of (N, 2) `sizes` inside the picture; boxes (N, 4)."""
    n = len(boxes)
    if not n:
        return np.zeros((0, 2))
    limit = np.maximum(np.array([width, height]) - sizes, 0)
    spots = [np.clip(_spots(boxes[k], sizes[k]), 0, limit[k]) for k in range(n)]
    fixed = [_fixed_cost(spots[k], sizes[k], boxes, k) for k in range(n)]
    placed = np.full((n, 4), np.nan)
    for sweep in range(SWEEPS):
        moved = False
        for k in largest_first(boxes).tolist():
            others = placed[(np.arange(n) != k) & ~np.isnan(placed[:, 0])]
            covered = _overlap(spots[k], sizes[k], others).sum(axis=1) / np.prod(sizes[k])
            x, y = spots[k][int((fixed[k] + _ON_TAG * covered).argmin())]
            new = np.array([x, y, x + sizes[k, 0], y + sizes[k, 1]])
            moved |= not np.array_equal(new, placed[k])
            placed[k] = new
        if sweep and not moved:
            break
    return placed[:, :2]


def leaders(boxes: Array, corners: Array, sizes: Array) -> list[tuple[int, Array, Array]]:
    """(box, from, to): lines that join detached tags to their boxes."""
    found = []
    for k, (box, corner, size) in enumerate(zip(boxes, corners, sizes, strict=True)):
        low, high = corner, corner + size
        gap = np.maximum(np.maximum(box[:2] - high, low - box[2:]), 0)
        if gap.max() > 0.35 * size[1]:
            middle = (low + high) / 2
            end = np.clip(middle, box[:2], box[2:])
            found.append((k, np.clip(end, low, high), end))
    return found


def _spots(box: Array, size: Array) -> Array:
    """(S, 2) corners where the tag of one box may go, the usual ones first."""
    x1, y1, x2, y2 = box.tolist()
    w, h = size.tolist()
    cx, cy = (x1 + x2 - w) / 2, (y1 + y2 - h) / 2
    slide = [x1 + t * (x2 - x1 - w) for t in (0.0, 1.0, 0.5, 0.25, 0.75)]
    spots = [(x, y1 - h) for x in slide] + [(x1, y1), (x2 - w, y1)]
    spots += [(x, y2) for x in slide] + [(x1, y2 - h), (x2 - w, y2 - h)]
    spots += [(x, y) for y in (y1, y2 - h, cy) for x in (x2, x1 - w)]
    spots += [(cx, cy + step * h) for step in (0, 1, -1, 2, -2)]
    for ring in (1.0, 2.2, 3.6, 5.2, 7.0):
        reach = ((x2 - x1 + w) / 2 + ring * h, (y2 - y1 + h) / 2 + ring * h)
        for turn in np.arange(12) * (np.pi / 6):
            spots.append((cx + reach[0] * float(np.cos(turn)), cy + reach[1] * float(np.sin(turn))))
    return np.array(spots)


def _fixed_cost(spots: Array, size: Array, boxes: Array, own: int) -> Array:
    """(S,) the cost of each place, apart from other tags."""
    area = np.maximum(np.prod(boxes[:, 2:] - boxes[:, :2], axis=1), 1e-9)
    covered = _overlap(spots, size, boxes) / np.maximum(area, 0.6 * np.prod(size))
    covered[:, own] *= 1.2
    gap = np.maximum(np.maximum(boxes[own, :2] - (spots + size), spots - boxes[own, 2:]), 0)
    away = np.hypot(gap[:, 0], gap[:, 1]) / size[1]
    cost: Array = _ON_BOX * covered.sum(axis=1) + _AWAY * away + _ORDER * np.arange(len(spots))
    return cost


def _overlap(spots: Array, size: Array, others: Array) -> Array:
    """(S, M) areas that a tag of `size` at each spot shares with other rectangles (M, 4)."""
    low = np.maximum(spots[:, None], others[None, :, :2])
    high = np.minimum(spots[:, None] + size, others[None, :, 2:])
    return np.asarray(np.prod(np.maximum(high - low, 0), axis=2))
