"""The two pens of a sheet, which draw the same shapes: pixels by Pillow, and SVG.

PngPen draws shapes SCALE times as large and reduces them, so that their edges are smooth; straight frames lie on whole
pixels, so that their lines are sharp. SvgPen writes points; text stays text, to be searched and copied, at its measured
length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw

from scenegpi.viz.canvas import data_uri
from scenegpi.viz.report.markup import Html, h, number
from scenegpi.viz.sheet import POINT, Anchor, Area, Point
from scenegpi.viz.text import BASELINE, FAMILIES, font, runs, width

Array = NDArray[np.float64]
Draw = Callable[[Any, Array, float], None]
"""Draws with a pen at points, `half` a line's width around them, all in small pixels."""
SCALE = 4
QUALITY = 90


class PngPen:
    """Draws on an image of `width` x `height` inches; the first shape is at the bottom."""

    def __init__(self, width: float, height: float, dpi: int) -> None:
        self.dpi = dpi
        self.image = Image.new("RGB", (max(round(width * dpi), 1), max(round(height * dpi), 1)), "white")

    def rect(
        self, area: Area, fill: str | None, stroke: str | None, line: float, alpha: float, radius: float, dashed: bool,
        clip: Area | None,
    ) -> None:  # fmt: skip
        sharp = not (radius or dashed)
        x1, y1, x2, y2 = np.array(self._whole(area)) / self.dpi if sharp else area
        corners = ((x1, y1), (x2, y2))
        radius = min(radius, (x2 - x1) / 2, (y2 - y1) / 2) * self.dpi * SCALE
        if fill:
            self._ink(corners, 0.0, fill, alpha, clip, partial(_frame, radius=radius, filled=True))
        if stroke:
            draw: Callable[..., None] = _dashes if dashed else _frame
            self._ink(corners, line * POINT * self.dpi / 2, stroke, alpha, clip, partial(draw, radius=radius))

    def line(self, start: Point, end: Point, colour: str, line: float, alpha: float, clip: Area | None) -> None:
        self._ink((start, end), line * POINT * self.dpi / 2, colour, alpha, clip, _stroke)

    def polygon(self, corners: Sequence[Point], colour: str) -> None:
        self._ink(corners, 0.0, colour, 1.0, None, _polygon)

    def text(self, at: Point, text: str, points: float, colour: str, bold: bool, anchor: Anchor) -> None:
        size = points * POINT * self.dpi
        pieces = [(piece, font(file, size)) for piece, file in runs(text, bold)]
        lengths = [face.getlength(piece) for piece, face in pieces]
        left = at[0] * self.dpi - {"left": 0.0, "middle": 0.5, "right": 1.0}[anchor] * sum(lengths)
        baseline, pen = round(at[1] * self.dpi + BASELINE * size), ImageDraw.Draw(self.image)
        for (piece, face), length in zip(pieces, lengths, strict=True):
            pen.text((left, baseline), piece, colour, face, anchor="ls")  # already smooth
            left += length

    def photo(self, area: Area, pixels: NDArray[np.uint8]) -> None:
        x1, y1, x2, y2 = self._whole(area)
        size = (max(x2 - x1, 1), max(y2 - y1, 1))
        small = Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
        self.image.paste(small, (x1, y1))

    def _ink(self, points: ArrayLike, half: float, colour: str, alpha: float, clip: Area | None, draw: Draw) -> None:
        """Puts a colour where `draw` draws: at points (n, 2) in inches, and `half` a line's width around them."""
        at = np.asarray(points) * self.dpi
        limits = (0, 0, *self.image.size) if clip is None else self._whole(clip)
        low = np.maximum(np.floor(at.min(axis=0) - half), limits[:2]).astype(int)
        high = np.minimum(np.ceil(at.max(axis=0) + half), [*limits[2:]]).astype(int)
        if (high > low).all():
            mask = Image.new("L", (*(SCALE * (high - low)).tolist(),))
            draw(ImageDraw.Draw(mask), SCALE * (at - low), SCALE * half)
            mask = mask.reduce(SCALE)
            self.image.paste(colour, (*low.tolist(),), mask if alpha == 1 else mask.point(lambda share: share * alpha))

    def _whole(self, area: Area) -> tuple[int, int, int, int]:
        x1, y1, x2, y2 = np.floor(np.array(area) * self.dpi + 0.5).astype(int).tolist()
        return x1, y1, x2, y2


class SvgPen:
    """Writes one element per shape; the first is at the bottom."""

    def __init__(self) -> None:
        self.body = [h("rect", width="100%", height="100%", fill="#FFFFFF")]
        self._clips: dict[Area, str] = {}

    def file(self, width: float, height: float) -> str:
        """The file of a sheet of `width` x `height` inches."""
        size = {"width": f"{width:.4f}in", "height": f"{height:.4f}in"}
        size["viewBox"] = f"0 0 {number(72 * width)} {number(72 * height)}"
        lines = Html("\n".join(["", *self.body, ""]))
        whole = h("svg", lines, xmlns="http://www.w3.org/2000/svg", **size, font_family=FAMILIES)
        return f'<?xml version="1.0" encoding="utf-8"?>\n{whole}\n'

    def rect(
        self, area: Area, fill: str | None, stroke: str | None, line: float, alpha: float, radius: float, dashed: bool,
        clip: Area | None,
    ) -> None:  # fmt: skip
        dash = f"{number(3.7 * line)} {number(1.6 * line)}" if dashed else None
        look = {**self._look(line, alpha, clip), "fill": fill or "none", "stroke": stroke, "stroke_dasharray": dash}
        self.body.append(h("rect", **_area(area), rx=72 * radius if radius else None, **look))

    def line(self, start: Point, end: Point, colour: str, line: float, alpha: float, clip: Area | None) -> None:
        look = self._look(line, alpha, clip)
        (x1, y1), (x2, y2) = start, end
        place = {"x1": 72 * x1, "y1": 72 * y1, "x2": 72 * x2, "y2": 72 * y2}
        self.body.append(h("line", **place, stroke=colour, stroke_linecap="round", **look))

    def polygon(self, corners: Sequence[Point], colour: str) -> None:
        points = " ".join(f"{number(72 * x)},{number(72 * y)}" for x, y in corners)
        self.body.append(h("polygon", points=points, fill=colour))

    def text(self, at: Point, text: str, points: float, colour: str, bold: bool, anchor: Anchor) -> None:
        words = h(
            "text", Html(escape(text, quote=False)), x=72 * at[0], y=72 * at[1] + BASELINE * points, fill=colour,
            font_size=points, font_weight="bold" if bold else None, lengthAdjust="spacingAndGlyphs",
            textLength=points * width(text, bold),
            text_anchor={"left": None, "middle": "middle", "right": "end"}[anchor],
        )  # fmt: skip
        self.body.append(words)

    def photo(self, area: Area, pixels: NDArray[np.uint8]) -> None:
        photo = data_uri(pixels, quality=QUALITY)
        self.body.append(h("image", **_area(area), preserveAspectRatio="none", href=photo))

    def _look(self, line: float, alpha: float, clip: Area | None) -> dict[str, object]:
        if clip is not None and clip not in self._clips:
            self._clips[clip] = f"clip{len(self._clips)}"
            self.body.append(h("clipPath", h("rect", **_area(clip)), id=self._clips[clip]))
        name = None if clip is None else f"url(#{self._clips[clip]})"
        return {"clip_path": name, "stroke_width": line, "opacity": alpha if alpha < 1 else None}


def _area(area: Area) -> dict[str, float]:
    x1, y1, x2, y2 = (72 * side for side in area)
    return {"x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1}


def _polygon(pen: Any, points: Array, half: float) -> None:
    pen.polygon([*map(tuple, points)], fill=255)


def _stroke(pen: Any, points: Array, half: float) -> None:
    pen.line([*map(tuple, points)], fill=255, width=max(round(2 * half), 1))
    _dots(pen, points, half)


def _dots(pen: Any, points: Array, half: float) -> None:
    for point in points:
        pen.ellipse([*(point - half), *(point + half - 1)], fill=255)


def _frame(pen: Any, points: Array, half: float, radius: float, filled: bool = False) -> None:
    """A rectangle between two corners, or the line around it."""
    area = [*(points[0] - half), *np.maximum(points[1] + half - 1, points[0] - half)]
    inside = {"fill": 255} if filled else {"outline": 255, "width": round(2 * half)}
    pen.rounded_rectangle(area, radius and radius + half, **inside)


def _dashes(pen: Any, points: Array, half: float, radius: float) -> None:
    """The line around a rectangle with round corners: 3.7 line widths of ink, then 1.6 of gap, or nearly."""
    turn, inner = np.linspace(0, np.pi / 2, 7), (points[0] + radius, points[1] - radius)
    corners = ((inner[1][0], inner[0][1], -0.5), (*inner[1], 0), (inner[0][0], inner[1][1], 0.5), (*inner[0], 1))
    path = np.concatenate([
        np.column_stack([x + radius * np.cos(turn + start * np.pi), y + radius * np.sin(turn + start * np.pi)])
        for x, y, start in corners
    ])  # fmt: skip
    path = np.concatenate([path, path[:1]])
    run = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    count = max(round(run[-1] / (10.6 * half)), 1)
    ink = np.linspace(0.5, 3.2, 9) * 2 * half  # round ends reach half a line further on either side
    at = (np.linspace(0, run[-1], count, endpoint=False)[:, None] + ink).ravel()
    _dots(pen, np.column_stack([np.interp(at, run, path[:, k]) for k in (0, 1)]), half)
