"""A thing is painted alone, on a small sheet of its own, and the sheet is then laid on the picture.

The brush works in the thing's own units: metres, x to the right and y up from the point where the thing stands.
Sheets are painted twice or three times as large and reduced, which smooths all edges; what the sheet covers is the
thing's exact mask.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from PIL import Image, ImageChops, ImageDraw

from scenegpi.paper.rendered.palette import Colour

Point = tuple[float, float]
SMALL = 150 * 150  # pixels; smaller sheets are painted three times as large, others twice


@dataclass(frozen=True)
class Frame:
    """From a thing's metres to the picture: its origin in pixels, pixels per metre, and whether it faces left."""

    x: float
    y: float
    scale: float
    flip: bool = False

    def at(self, x: float, y: float) -> Point:
        """Metres of the thing -> pixels of the picture."""
        return self.x + (-x if self.flip else x) * self.scale, self.y - y * self.scale


@dataclass(frozen=True)
class Extent:
    """How far a drawing reaches, in metres from its origin."""

    left: float
    right: float
    bottom: float
    top: float

    def pixels(self, frame: Frame) -> tuple[float, float, float, float]:
        """x1, y1, x2, y2 in the picture."""
        (xa, ya), (xb, yb) = frame.at(self.left, self.bottom), frame.at(self.right, self.top)
        return min(xa, xb), min(ya, yb), max(xa, xb), max(ya, yb)


class Brush:
    """Paints one thing. All coordinates in metres; colours are opaque.

    Args:
        frame: where the thing is.
        extent: how far it reaches; what lies outside is cut.
        size: width and height of the picture; what lies outside is not painted.
    """

    def __init__(self, frame: Frame, extent: Extent, size: tuple[int, int]) -> None:
        x1, y1, x2, y2 = extent.pixels(frame)
        self.left = min(max(math.floor(x1) - 1, 0), size[0] - 1)
        self.top = min(max(math.floor(y1) - 1, 0), size[1] - 1)
        width = max(min(math.ceil(x2) + 1, size[0]) - self.left, 1)
        height = max(min(math.ceil(y2) + 1, size[1]) - self.top, 1)
        self.times = 3 if width * height < SMALL else 2
        self.frame = frame
        self.sheet = Image.new("RGBA", (width * self.times, height * self.times))
        self._draw = ImageDraw.Draw(self.sheet)

    def _at(self, x: float, y: float) -> Point:
        px, py = self.frame.at(x, y)
        return (px - self.left) * self.times, (py - self.top) * self.times

    def _length(self, metres: float) -> float:
        return metres * self.frame.scale * self.times

    def polygon(self, points: Sequence[Point], colour: Colour) -> None:
        """A filled polygon."""
        self._draw.polygon([self._at(*p) for p in points], fill=colour)

    def blob(self, points: Sequence[Point], colour: Colour) -> None:
        """A filled shape with a smooth outline through the points (Catmull-Rom)."""
        self.polygon(smooth(points), colour)

    def ellipse(self, x: float, y: float, rx: float, ry: float, colour: Colour, angle: float = 0) -> None:
        """An ellipse about (x, y), turned by `angle` radians."""
        if angle:
            c, s = math.cos(angle), math.sin(angle)
            circle = [(rx * math.cos(t / 14 * math.pi), ry * math.sin(t / 14 * math.pi)) for t in range(28)]
            self.polygon([(x + c * u - s * v, y + s * u + c * v) for u, v in circle], colour)
            return
        (x1, y1), (x2, y2) = self._at(x - rx, y + ry), self._at(x + rx, y - ry)
        self._draw.ellipse((min(x1, x2), y1, max(x1, x2), y2), fill=colour)

    def half(self, x: float, y: float, rx: float, ry: float, colour: Colour) -> None:
        """Half an ellipse on the line through (x, y): the upper one, or the lower one if ry is negative."""
        arc = [(x + rx * math.cos(t / 16 * math.pi), y + ry * math.sin(t / 16 * math.pi)) for t in range(17)]
        self.polygon(arc, colour)

    def rectangle(self, x1: float, y1: float, x2: float, y2: float, colour: Colour, radius: float = 0) -> None:
        """A rectangle between two corners, with round corners if there is a radius."""
        (a, b), (c, d) = self._at(x1, y1), self._at(x2, y2)
        box = (min(a, c), min(b, d), max(a, c), max(b, d))
        r = min(self._length(radius), (box[2] - box[0]) / 2, (box[3] - box[1]) / 2)
        if r >= 1:
            self._draw.rounded_rectangle(box, r, fill=colour)
        else:
            self._draw.rectangle(box, fill=colour)

    def limb(self, points: Sequence[Point], width: float, colour: Colour, end: float | None = None) -> None:
        """A line with round ends and joints; `end` is its width at the last point, if another."""
        end = width if end is None else end
        steps = len(points) - 1
        for k, ((x1, y1), (x2, y2)) in enumerate(pairwise(points)):
            w1, w2 = width + (end - width) * k / steps, width + (end - width) * (k + 1) / steps
            length = math.hypot(x2 - x1, y2 - y1) or 1
            nx, ny = -(y2 - y1) / length / 2, (x2 - x1) / length / 2
            ends = [(x1 + nx * w1, y1 + ny * w1), (x2 + nx * w2, y2 + ny * w2)]
            self.polygon([*ends, (x2 - nx * w2, y2 - ny * w2), (x1 - nx * w1, y1 - ny * w1)], colour)
            for x, y, w in ((x1, y1, w1), (x2, y2, w2)):
                self.ellipse(x, y, w / 2, w / 2, colour)

    def finish(self, light: float = 0.82) -> Image.Image:
        """The sheet in the picture's size, darker towards the lower right by the factor `light`."""
        sheet = self.sheet.reduce(self.times)
        if light >= 1:
            return sheet
        slope = _slope(round(light * 255)).resize(sheet.size, Image.Resampling.BILINEAR)
        alpha = sheet.getchannel("A")
        shaded = ImageChops.multiply(sheet.convert("RGB"), Image.merge("RGB", (slope, slope, slope)))
        shaded.putalpha(alpha)
        return shaded


def smooth(points: Sequence[Point], steps: int = 5) -> list[Point]:
    """A closed curve through the points (Catmull-Rom)."""
    n = len(points)
    curve = []
    for i in range(n):
        p0, p1, p2, p3 = (points[(i + k) % n] for k in (-1, 0, 1, 2))
        for step in range(steps):
            t = step / steps
            a, b, c, d = _weights(t)
            curve.append((a * p0[0] + b * p1[0] + c * p2[0] + d * p3[0], a * p0[1] + b * p1[1] + c * p2[1] + d * p3[1]))
    return curve


def _weights(t: float) -> tuple[float, float, float, float]:
    return (
        ((-t + 2) * t - 1) * t / 2,
        ((3 * t - 5) * t * t + 2) / 2,
        ((-3 * t + 4) * t + 1) * t / 2,
        (t - 1) * t * t / 2,
    )


@cache
def _slope(dark: int) -> Image.Image:
    """Light from the upper left on a sheet: 255 there, `dark` in the lower right corner."""
    middle = (255 * 2 + dark) // 3
    corners = [[255, middle], [middle, dark]]
    image = Image.new("L", (2, 2))
    image.putdata([value for row in corners for value in row])
    return image.resize((16, 16), Image.Resampling.BILINEAR)
