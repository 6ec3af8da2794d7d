"""Shapes -> SVG, in points. Words stay words, to be searched and copied, and are as long as they were measured."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from PIL import Image

from scenegpi.viz.sheet import Area, Line, Photo, Rect, Shape, Triangle, Words
from scenegpi.viz.text import BASELINE, FAMILIES, width

QUALITY = 90


def svg(shapes: Sequence[Shape], width: float, height: float) -> str:
    """An SVG file of a sheet of `width` x `height` inches."""
    clips: dict[Area, str] = {}
    body = []
    for shape in shapes:
        clip = shape.clip if isinstance(shape, Rect | Line) else None
        if clip is not None and clip not in clips:
            clips[clip] = f"clip{len(clips)}"
            body.append(f'<clipPath id="{clips[clip]}">{_tag("rect", **_frame(clip))}</clipPath>')
        body.append(_drawn(shape, {} if clip is None else {"clip_path": f"url(#{clips[clip]})"}))
    size = f'width="{width:.4f}in" height="{height:.4f}in" viewBox="0 0 {_number(72 * width)} {_number(72 * height)}"'
    paper = _tag("rect", width="100%", height="100%", fill="#FFFFFF")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family={quoteattr(FAMILIES)}>'
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', head, paper, *body, "</svg>", ""])


def _drawn(shape: Shape, clip: dict[str, str]) -> str:
    if isinstance(shape, Rect):
        dash = f"{_number(3.7 * shape.line)} {_number(1.6 * shape.line)}" if shape.dashed else None
        stroke = {"stroke": shape.stroke, "stroke_width": shape.line} if shape.stroke else {}
        radius = {"rx": 72 * shape.radius} if shape.radius else {}
        alpha = {"opacity": shape.alpha} if shape.alpha < 1 else {}
        fill = shape.fill or "none"
        return _tag("rect", **_frame(shape.area), **radius, fill=fill, **stroke, stroke_dasharray=dash, **alpha, **clip)
    if isinstance(shape, Line):
        (x1, y1), (x2, y2) = shape.start, shape.end
        ends = {"x1": 72 * x1, "y1": 72 * y1, "x2": 72 * x2, "y2": 72 * y2}
        alpha = {"opacity": shape.alpha} if shape.alpha < 1 else {}
        look = {"stroke": shape.colour, "stroke_width": shape.line, "stroke_linecap": "round"}
        return _tag("line", **ends, **look, **alpha, **clip)
    if isinstance(shape, Triangle):
        points = " ".join(f"{_number(72 * x)},{_number(72 * y)}" for x, y in shape.corners)
        return _tag("polygon", points=points, fill=shape.colour)
    if isinstance(shape, Words):
        return _words(shape)
    return _tag("image", **_frame(shape.area), preserveAspectRatio="none", href=_jpeg(shape))


def _words(shape: Words) -> str:
    x, y = (72 * value for value in shape.at)
    look = {
        "text_anchor": {"left": None, "middle": "middle", "right": "end"}[shape.anchor],
        "font_size": shape.points,
        "font_weight": "bold" if shape.bold else None,
        "fill": shape.colour,
        "textLength": shape.points * width(shape.text, shape.bold),
        "lengthAdjust": "spacingAndGlyphs",
    }
    return _tag("text", x=x, y=y + BASELINE * shape.points, **look)[:-2] + f">{escape(shape.text)}</text>"


def _frame(area: Area) -> dict[str, float]:
    x1, y1, x2, y2 = (72 * side for side in area)
    return {"x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1}


def _jpeg(shape: Photo) -> str:
    out = io.BytesIO()
    Image.fromarray(shape.pixels).save(out, "JPEG", quality=QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()


def _tag(name: str, **attributes: object) -> str:
    words = (f" {key.replace('_', '-')}={quoteattr(_value(v))}" for key, v in attributes.items() if v is not None)
    return f"<{name}{''.join(words)}/>"


def _value(value: object) -> str:
    return _number(value) if isinstance(value, int | float) else str(value)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
