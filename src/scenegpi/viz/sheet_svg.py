"""Shapes -> SVG, in points. Words stay words, to be searched and copied, and are as long as they were measured."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import numpy as np
from numpy.typing import NDArray

from scenegpi.viz.canvas import data_uri
from scenegpi.viz.report.markup import Html, h, number
from scenegpi.viz.sheet import Anchor, Area, Point
from scenegpi.viz.text import BASELINE, FAMILIES, width

QUALITY = 90


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
        self.body.append(h("rect", **_frame(area), rx=72 * radius if radius else None, **look))

    def line(self, start: Point, end: Point, colour: str, line: float, alpha: float, clip: Area | None) -> None:
        look = self._look(line, alpha, clip)
        (x1, y1), (x2, y2) = start, end
        place = {"x1": 72 * x1, "y1": 72 * y1, "x2": 72 * x2, "y2": 72 * y2}
        self.body.append(h("line", **place, stroke=colour, stroke_linecap="round", **look))

    def polygon(self, corners: Iterable[Point], colour: str) -> None:
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
        self.body.append(h("image", **_frame(area), preserveAspectRatio="none", href=photo))

    def _look(self, line: float, alpha: float, clip: Area | None) -> dict[str, object]:
        if clip is not None and clip not in self._clips:
            self._clips[clip] = f"clip{len(self._clips)}"
            self.body.append(h("clipPath", h("rect", **_frame(clip)), id=self._clips[clip]))
        name = None if clip is None else f"url(#{self._clips[clip]})"
        return {"clip_path": name, "stroke_width": line, "opacity": alpha if alpha < 1 else None}


def _frame(area: Area) -> dict[str, float]:
    x1, y1, x2, y2 = (72 * side for side in area)
    return {"x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1}
