"""Names as they are set in pictures: one line, not too long, in a font that has their letters; and their width."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import printable

POINT = 1 / 72
"""Inches."""
LONGEST = 26
# Fonts that people have for letters that matplotlib's own DejaVu Sans lacks; those that are not there are passed over.
_OTHERS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Noto Sans Bengali",
    "Arial Unicode MS",
)


@lru_cache(maxsize=1)
def font_families() -> list[str]:
    """DejaVu Sans, then whatever fonts of this machine can help it out."""
    from matplotlib.font_manager import fontManager

    there = {entry.name for entry in fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _OTHERS if name in there)]


def shortened(text: str, most: int = LONGEST) -> str:
    """The text on one line, its middle left out where it is longer than `most` characters."""
    text = printable(text)
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail].rstrip()}…{text[len(text) - tail :].lstrip()}"


def set_text(text: str, most: int = LONGEST) -> str:
    """For matplotlib: shortened, and no $ that would start a formula."""
    return shortened(text, most).replace("$", r"\$")


def named(name: str, i: int, most: int = LONGEST) -> str:
    """What box i is called in a picture: its name, shortened, and its number, which never is."""
    return f"{shortened(name, most)} {i}"


def text_sizes(texts: list[str], size: float, weight: str = "normal") -> NDArray[np.float64]:
    """(N, 2) width and height in inches of texts set at `size` points, with a little air around them."""
    return np.array([(_width(text, weight) * size * POINT + 0.12, size * POINT * 1.65) for text in texts]).reshape(
        -1, 2
    )


@lru_cache(maxsize=4096)
def _width(text: str, weight: str) -> float:
    """Width of a text at size 1."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(family=font_families(), weight=weight)
    return float(TextPath((0, 0), text or " ", size=10, prop=font).get_extents().width) / 10
