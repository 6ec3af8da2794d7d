r"""All ordered pairs of an image's boxes, in the one order used everywhere here.

Pairs i != j are sorted by i, then j. With n boxes, the pair (i, j) has the index

.. math:: e(i, j) = i (n - 1) + j - [j > i].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


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
