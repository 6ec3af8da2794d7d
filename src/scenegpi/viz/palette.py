"""Colours that everyone can tell apart: Okabe and Ito's, assigned so that neighbours differ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scenegpi.viz.canvas import largest_first

# Yellow is left out: too pale on white. Black is last, so that it is rarely used: it vanishes on dark photos.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#3D3D3D")
INK, MUTED, FAINT, PAPER = "#1A1A1A", "#5F6368", "#C9CCD1", "#FFFFFF"
RIGHT, WRONG = "#0072B2", "#D55E00"
"""Right and wrong: blue and vermilion, never green and red."""


def deal_colours(boxes: NDArray[np.float64]) -> list[int]:
    """A colour number for each box (N, 4): the least used nearby, larger boxes first. Deterministic."""
    if not len(boxes):
        return []
    given = np.zeros(len(boxes), dtype=np.int64)
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    scale = max(float(np.ptp(boxes.reshape(-1, 2), axis=0).max()), 1e-6)
    order = largest_first(boxes)
    for k, i in enumerate(order.tolist()):
        before = order[:k]
        # Corners count as much as centres: lines that run close to each other confuse the eye.
        apart = np.abs(boxes[before] - boxes[i]).min(axis=1) + np.abs(centres[before] - centres[i]).sum(axis=1)
        near = 0.02 + np.exp(-4 * apart / scale)
        used = np.bincount(given[before], near, len(COLOURS)) + np.arange(len(COLOURS)) * 1e-3
        given[i] = used.argmin()
    return given.tolist()


def text_on(colour: str) -> str:
    """White or ink, whichever has the higher contrast with a colour (as WCAG defines it)."""
    light = luminance(colour)
    return PAPER if 1.05 / (light + 0.05) >= (light + 0.05) / (luminance(INK) + 0.05) else INK


def luminance(colour: str) -> float:
    """Relative luminance of "#RRGGBB", 0 to 1, as WCAG defines it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    r, g, b = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
