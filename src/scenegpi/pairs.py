r"""All ordered pairs of an image's boxes, in the one order that the whole house uses; relations that repeat others.

Pairs i != j are sorted by i, then j. With n boxes, the pair (i, j) has the number

.. math:: e(i, j) = i (n - 1) + j - [j > i].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ONE_THING = 0.3


def complete_pairs(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """All ordered pairs within each of G images of (G,) boxes; boxes are numbered through all images: (2, E)."""
    degree = np.repeat(counts - 1, counts)
    first = np.cumsum(counts) - counts
    subject = np.repeat(np.arange(len(degree)), degree)
    start = np.repeat(first, counts)[subject]
    place = np.arange(len(subject)) - np.repeat(np.cumsum(degree) - degree, degree)
    return np.stack([subject, start + place + (place >= subject - start)])


def edge_numbers(pairs: NDArray[np.integer], boxes: int | NDArray[np.integer]) -> NDArray[np.int64]:
    """Number of each pair (R, 2), i != j, within its image of `boxes` boxes (one number, or one for each row): (R,)."""
    i, j = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
    return np.asarray(edge_number(i, j, boxes))


def edge_number(i: Any, j: Any, boxes: Any) -> Any:
    """e(i, j) of whole numbers, arrays or tensors, i != j, within an image of `boxes` boxes."""
    return i * (boxes - 1) + j - 1 * (j > i)


def repeats(subject: Any, other: Any, predicate: Any, place: Any, label: Any, boxes: Any) -> Any:
    """Relations, best first, that say again what a better one says, of boxes that show one thing twice: (R,) bools.

    Two boxes are taken for one thing if they have a label and more than `ONE_THING` of the smaller one in common, and
    if they are related to the same box by the same predicate: of a person's two shirts that overlap, one is meant.

    Args:
        subject, other, predicate, place: (R,); place is 0, 1, 2, ...
        label, boxes: (N,) and (N, 4). All are NumPy arrays, or all tensors.
    """
    a, b = boxes[:, None], boxes[None]
    low, high = a + b + abs(a - b), a + b - abs(a - b)  # twice the greater, and twice the smaller
    size = (high[..., 2:] - low[..., :2]) / 2
    size = size * (size > 0)
    side = boxes[:, 2:] - boxes[:, :2]
    area = side[:, 0] * side[:, 1]
    smaller = (area[:, None] + area - abs(area[:, None] - area)) / 2
    alike = (label[:, None] == label) & (size[..., 0] * size[..., 1] > ONE_THING * smaller)
    mine = (subject[:, None] == subject) & alike[other][:, other]
    theirs = (other[:, None] == other) & alike[subject][:, subject]
    return ((mine | theirs) & (predicate[:, None] == predicate) & (place < place[:, None])).any(1)
