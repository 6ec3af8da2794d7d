"""Shapes -> SVG, in points. Words stay words, to be searched and copied, and are as long as they were measured."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from scenegpi.viz.canvas import data_uri
from scenegpi.viz.report.markup import Html, h, number
from scenegpi.viz.sheet import Area, Line, Rect, Shape, Triangle, Words
from scenegpi.viz.text import BASELINE, FAMILIES, width

QUALITY = 90


def svg(shapes: Sequence[Shape], width: float, height: float) -> str:
    """An SVG file of a sheet of `width` x `height` inches."""
    clips: dict[Area, str] = {}
    body = [h("rect", width="100%", height="100%", fill="#FFFFFF")]
    for shape in shapes:
        clip = shape.clip if isinstance(shape, Rect | Line) else None
        if clip is not None and clip not in clips:
            clips[clip] = f"clip{len(clips)}"
            body.append(h("clipPath", h("rect", **_frame(clip)), id=clips[clip]))
        body.append(_drawn(shape, None if clip is None else f"url(#{clips[clip]})"))
    size = {"width": f"{width:.4f}in", "height": f"{height:.4f}in"}
    size["viewBox"] = f"0 0 {number(72 * width)} {number(72 * height)}"
    lines = Html("\n".join(["", *body, ""]))
    whole = h("svg", lines, xmlns="http://www.w3.org/2000/svg", **size, font_family=FAMILIES)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{whole}\n'


def _drawn(shape: Shape, clip: str | None) -> Html:
    look: dict[str, Any] = {"clip_path": clip}
    if isinstance(shape, Rect | Line):
        look |= {"stroke_width": shape.line, "opacity": shape.alpha if shape.alpha < 1 else None}
    if isinstance(shape, Rect):
        dash = f"{number(3.7 * shape.line)} {number(1.6 * shape.line)}" if shape.dashed else None
        look |= {"fill": shape.fill or "none", "stroke": shape.stroke, "stroke_dasharray": dash}
        return h("rect", **_frame(shape.area), rx=72 * shape.radius if shape.radius else None, **look)
    if isinstance(shape, Line):
        ends = zip(("x1", "y1", "x2", "y2"), (*shape.start, *shape.end), strict=True)
        place = {name: 72 * value for name, value in ends}
        return h("line", **place, stroke=shape.colour, stroke_linecap="round", **look)
    if isinstance(shape, Triangle):
        points = " ".join(f"{number(72 * x)},{number(72 * y)}" for x, y in shape.corners)
        return h("polygon", points=points, fill=shape.colour)
    if isinstance(shape, Words):
        return h(
            "text", Html(escape(shape.text, quote=False)), x=72 * shape.at[0],
            y=72 * shape.at[1] + BASELINE * shape.points, fill=shape.colour, font_size=shape.points,
            font_weight="bold" if shape.bold else None, lengthAdjust="spacingAndGlyphs",
            textLength=shape.points * width(shape.text, shape.bold),
            text_anchor={"left": None, "middle": "middle", "right": "end"}[shape.anchor],
        )  # fmt: skip
    photo = data_uri(shape.pixels, quality=QUALITY)
    return h("image", **_frame(shape.area), preserveAspectRatio="none", href=photo)


def _frame(area: Area) -> dict[str, float]:
    x1, y1, x2, y2 = (72 * side for side in area)
    return {"x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1}
