"""Names in pictures: one line, not too long, in a font that has their letters; and their width."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import count, groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import printable
from scenegpi.vocabulary import spoken

if TYPE_CHECKING:
    from PIL.ImageFont import FreeTypeFont

LONGEST = 26
BASELINE = 0.37
"""Distance from the middle of the letters to the baseline, relative to the font size."""
FAMILIES = "DejaVu Sans, Verdana, Noto Sans, sans-serif"
_OTHERS = ("Noto Sans CJK", "Source Han Sans", "PingFang", "Microsoft YaHei", "Arial Unicode", "Noto Sans")
"""Name prefixes of fonts with letters that DejaVu Sans lacks."""


def shortened(text: str, most: int = LONGEST) -> str:
    """The text on one line, without its middle if it is longer than `most` characters."""
    text = printable(text)
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail].rstrip()}…{text[len(text) - tail :].lstrip()}"


def numbered(names: Sequence[str], most: int = LONGEST) -> list[str]:
    """The name of each box as people say it, shortened; names that occur more than once are numbered from 1."""
    short = [shortened(spoken(name), most) for name in names]
    total, numbers = Counter(short), {name: count(1) for name in short}
    return [f"{name} {next(numbers[name])}" if total[name] > 1 else name for name in short]


def text_sizes(texts: Sequence[str], points: float, bold: bool = False) -> NDArray[np.float64]:
    """(N, 2) width and height in inches of texts set at `points`, with a small margin."""
    sizes = [(width(text, bold) * points / 72 + 0.12, points / 72 * 1.65) for text in texts]
    return np.array(sizes).reshape(-1, 2)


@lru_cache(maxsize=4096)
def width(text: str, bold: bool) -> float:
    """Width of a text at size 1."""
    return sum(font(file, 100.0).getlength(piece) for piece, file in runs(text, bold)) / 100


@lru_cache(maxsize=64)
def font(file: str, size: float) -> FreeTypeFont:
    """A font file at a size in pixels."""
    from PIL import ImageFont

    return ImageFont.truetype(file, size, layout_engine=ImageFont.Layout.BASIC)


def runs(text: str, bold: bool) -> list[tuple[str, str]]:
    """The text in pieces, each with a font file that has its letters."""
    return [("".join(letters), file) for file, letters in groupby(text, lambda letter: _font_of(letter, bold))]


@lru_cache(maxsize=4096)
def _font_of(letter: str, bold: bool) -> str:
    own = _own_font(bold)
    if letter.isascii() or _has(own, letter):
        return own
    last = _fonts() / "LastResortHE-Regular.ttf"  # a box that shows the letter's script; older matplotlibs lack it
    others = (_own_font(False), *_other_fonts(), *([str(last)] if last.is_file() else []))
    return next((file for file in others if _has(file, letter)), own)


def _own_font(bold: bool) -> str:
    return str(_fonts() / ("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"))


@lru_cache(maxsize=1)
def _fonts() -> Path:
    """The folder of matplotlib's DejaVu fonts, found without importing matplotlib."""
    spec = find_spec("matplotlib")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("matplotlib, whose fonts pictures are set in, is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / "mpl-data" / "fonts" / "ttf"


@lru_cache(maxsize=1)
def _other_fonts() -> tuple[str, ...]:
    """Files of installed fonts with letters that DejaVu lacks."""
    from matplotlib.font_manager import fontManager

    there = sorted((entry.name, entry.fname) for entry in fontManager.ttflist if entry.weight in (400, "normal"))
    return tuple(file for start in _OTHERS for name, file in there if name.startswith(start))


def _has(file: str, letter: str) -> bool:
    """Whether a font has a letter: a missing letter looks the same as an unassigned code."""
    face = font(file, 24.0)
    drawn, missing = (face.getmask(code) for code in (letter, "\U0010ffff"))
    return drawn.size != missing.size or bytes(drawn) != bytes(missing)
