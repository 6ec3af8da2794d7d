"""Sheet: rectangles, lines, words and photos on white paper, written as PNG or SVG.

Positions are inches from the top left corner, or the units of a `Panel`, a part of the sheet that clips what
reaches beyond it. Line widths and text sizes are points. A shape is a call of one of the two pens (`viz.pens`), which
draw the same shapes in the same order. Pictures need no more than this, and importing a charting library takes longer
than drawing one.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scenegpi.files import whole_file

if TYPE_CHECKING:
    from PIL.Image import Image

    from scenegpi.viz.pens import PngPen, SvgPen

DPI = 130
LEVEL = 3
"""Compression level, 0 to 9: with a photo, the usual 6 takes twice the time for a file a few percent smaller."""
POINT = 1 / 72
"""Inches."""
Point = tuple[float, float]
Area = tuple[float, float, float, float]
"""x1, y1, x2, y2 in inches."""
Anchor = Literal["left", "middle", "right"]
Shape = Callable[["PngPen | SvgPen"], None]


class Panel:
    """A part of a sheet: `place` is its left, top, width and height in inches, `size` the same in its own units.

    Shapes are added to those of the sheet; with `clip`, rectangles and lines end at the border of the panel.
    """

    def __init__(self, shapes: list[Shape], place: Area, size: Point, clip: bool) -> None:
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
        """A rectangle x1, y1, x2, y2, filled or framed or both; `radius` of its corners in inches."""
        area = (*self._inches(np.asarray(box)[:2]), *self._inches(np.asarray(box)[2:]))
        self.shapes.append(lambda pen: pen.rect(area, fill, stroke, line, alpha, radius, dashed, self.clip))

    def line(self, start: ArrayLike, end: ArrayLike, colour: str, line: float = 1.0, alpha: float = 1.0) -> None:
        """A straight line with round ends."""
        ends = self._inches(start), self._inches(end)
        self.shapes.append(lambda pen: pen.line(*ends, colour, line, alpha, self.clip))

    def arrow(self, start: ArrayLike, end: ArrayLike, colour: str, line: float = 1.0) -> None:
        """A line with a head whose tip is at `end`."""
        tail, tip = np.array(self._inches(start)), np.array(self._inches(end))
        length = float(np.hypot(*(tip - tail)))
        if length < 1e-6:
            return
        along = (tip - tail) / length
        head = min(6.2 * POINT, length)
        base, side = tip - head * along, 2.6 * POINT * along[::-1] * [-1, 1]
        neck = (base + 0.2 * head * along).tolist()
        corners = [(float(x), float(y)) for x, y in (tip, base + side, base - side)]
        self.shapes.append(lambda pen: pen.line(tail.tolist(), neck, colour, line, 1.0, self.clip))
        self.shapes.append(lambda pen: pen.polygon(corners, colour))

    def text(
        self, at: ArrayLike, text: str, points: float, colour: str, *, bold: bool = False, anchor: Anchor = "left"
    ) -> None:
        """One line of words, centred on `at` from top to bottom; they may reach beyond the panel."""
        place = self._inches(at)
        self.shapes.append(lambda pen: pen.text(place, text, points, colour, bold, anchor))

    def photo(self, pixels: NDArray[np.uint8]) -> None:
        """Pixels (H, W, 3), stretched to fill the panel."""
        area = (*self._inches((0, 0)), *self._inches(self.size))
        self.shapes.append(lambda pen: pen.photo(area, pixels))

    def _inches(self, point: ArrayLike) -> Point:
        x, y = (self.origin + np.asarray(point) * self.scale).tolist()
        return x, y


class Sheet(Panel):
    """White paper of `width` x `height` inches."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__([], (0.0, 0.0, width, height), (width, height), clip=False)

    def panel(self, left: float, top: float, width: float, height: float, size: Point | None = None) -> Panel:
        """A part of the sheet, in inches or, if its `size` is given, in other units."""
        return Panel(self.shapes, (left, top, width, height), size or (width, height), clip=True)

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
        from scenegpi.viz.pens import PngPen

        pen = PngPen(*self.size, dpi)
        for shape in self.shapes:
            shape(pen)
        return pen.image

    def svg(self) -> str:
        """The picture as an SVG file."""
        from scenegpi.viz.pens import SvgPen

        pen = SvgPen()
        for shape in self.shapes:
            shape(pen)
        return pen.file(*self.size)
