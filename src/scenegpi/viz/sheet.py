"""Sheet: rectangles, lines, words and photos on white paper, written as PNG or SVG.

Positions are inches from the top left corner, or the units of a `Panel`, a part of the sheet that cuts off what
reaches beyond it. Line widths and text sizes are points. Shapes are kept in the order in which they were drawn; the two
writers (`sheet_png`, `sheet_svg`) show the same list. A picture needs no more than this, and to import a library for
charts takes longer than to draw one.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scenegpi.files import whole_file

if TYPE_CHECKING:
    from PIL.Image import Image

DPI = 130
LEVEL = 3
"""Of compression, 0 to 9: with a photo, the usual 6 takes twice the time for a file a few percent smaller."""
POINT = 1 / 72
"""Inches."""

Area = tuple[float, float, float, float]
"""x1, y1, x2, y2 in inches."""
Anchor = Literal["left", "middle", "right"]


@dataclass(frozen=True)
class Rect:
    """A rectangle, perhaps with round corners, filled or framed or both."""

    area: Area
    fill: str | None
    stroke: str | None
    line: float
    alpha: float
    radius: float
    dashed: bool
    clip: Area | None


@dataclass(frozen=True)
class Line:
    """A straight line with round ends."""

    start: tuple[float, float]
    end: tuple[float, float]
    colour: str
    line: float
    alpha: float
    clip: Area | None


@dataclass(frozen=True)
class Triangle:
    """Three corners, filled."""

    corners: tuple[tuple[float, float], ...]
    colour: str


@dataclass(frozen=True)
class Words:
    """One line of text whose letters are centred on `at` from top to bottom; `anchor` says where it starts."""

    at: tuple[float, float]
    text: str
    points: float
    colour: str
    bold: bool
    anchor: Anchor


@dataclass(frozen=True, eq=False)
class Photo:
    """Pixels (H, W, 3) stretched to an area."""

    area: Area
    pixels: NDArray[np.uint8]


Shape = Rect | Line | Triangle | Words | Photo


class Panel:
    """A part of a sheet: `place` is its left, top, width and height in inches, `size` the same in its own units.

    Args:
        shapes: of the sheet; what is drawn here goes there.
        clip: whether rectangles and lines end at its border.
    """

    def __init__(self, shapes: list[Shape], place: Area, size: tuple[float, float], clip: bool) -> None:
        left, top, width, height = place
        self.shapes, self.size = shapes, size
        self.origin, self.scale = np.array([left, top]), np.array([width / size[0], height / size[1]])
        self.clip = (left, top, left + width, top + height) if clip else None

    def rect(
        self,
        box: ArrayLike,
        fill: str | None = None,
        stroke: str | None = None,
        line: float = 1.0,
        *,
        alpha: float = 1.0,
        radius: float = 0.0,
        dashed: bool = False,
    ) -> None:
        """A rectangle x1, y1, x2, y2; `radius` of its corners in inches."""
        x1, y1, x2, y2 = (*self._inches(np.asarray(box)[:2]), *self._inches(np.asarray(box)[2:]))
        self.shapes.append(Rect((x1, y1, x2, y2), fill, stroke, line, alpha, radius, dashed, self.clip))

    def line(self, start: ArrayLike, end: ArrayLike, colour: str, line: float = 1.0, alpha: float = 1.0) -> None:
        """A line from point to point."""
        self.shapes.append(Line(self._inches(start), self._inches(end), colour, line, alpha, self.clip))

    def arrow(self, start: ArrayLike, end: ArrayLike, colour: str, line: float = 1.0) -> None:
        """A line with a head whose tip is at `end`."""
        tail, tip = np.array(self._inches(start)), np.array(self._inches(end))
        way = tip - tail
        length = float(np.hypot(*way))
        if length < 1e-6:
            return
        along = way / length
        head = min(6.2 * POINT, length)
        base, side = tip - head * along, 2.6 * POINT * along[::-1] * [-1, 1]
        corners = tuple((float(x), float(y)) for x, y in (tip, base + side, base - side))
        x, y = (base + 0.2 * head * along).tolist()
        self.shapes.append(Line(self._inches(start), (x, y), colour, line, 1.0, self.clip))
        self.shapes.append(Triangle(corners, colour))

    def text(
        self, at: ArrayLike, text: str, points: float, colour: str, *, bold: bool = False, anchor: Anchor = "left"
    ) -> None:
        """One line of words; they may reach beyond the panel."""
        self.shapes.append(Words(self._inches(at), text, points, colour, bold, anchor))

    def photo(self, pixels: NDArray[np.uint8]) -> None:
        """Pixels that fill the panel."""
        area = (*self._inches((0, 0)), *self._inches(self.size))
        self.shapes.append(Photo(area, pixels))

    def _inches(self, point: ArrayLike) -> tuple[float, float]:
        x, y = (self.origin + np.asarray(point) * self.scale).tolist()
        return x, y


class Sheet(Panel):
    """White paper of `width` x `height` inches."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__([], (0.0, 0.0, width, height), (width, height), clip=False)

    def panel(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        size: Sequence[float] | None = None,
        clip: bool = True,
    ) -> Panel:
        """A part of the sheet, with units of its own where `size` is given."""
        units = (width, height) if size is None else (float(size[0]), float(size[1]))
        return Panel(self.shapes, (left, top, width, height), units, clip)

    def save(self, target: Path) -> None:
        """Writes .png or .svg, whole or not at all, and the same bytes each time."""
        data = self.svg().encode() if target.suffix.lower() == ".svg" else self.png()
        with whole_file(target) as new:
            new.write_bytes(data)

    def png(self, dpi: int = DPI) -> bytes:
        """The picture as a PNG file."""
        out = io.BytesIO()
        self.image(dpi).save(out, "PNG", compress_level=LEVEL)
        return out.getvalue()

    def image(self, dpi: int = DPI) -> Image:
        """The picture as pixels."""
        from scenegpi.viz.sheet_png import image

        return image(self.shapes, *self.size, dpi)

    def svg(self) -> str:
        """The picture as an SVG file."""
        from scenegpi.viz.sheet_svg import svg

        return svg(self.shapes, *self.size)
