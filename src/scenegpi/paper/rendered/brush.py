"""A thing is painted alone, on a small sheet of its own, and the sheet is then laid on the picture.

The brush works in the thing's own units: metres, x to the right and y up from the point where the thing stands.
Sheets are painted twice as large and reduced, which smooths all edges; what the sheet covers is the thing's
exact mask.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from PIL import Image, ImageDraw

Point = tuple[float, float]
Colour = tuple[int, int, int]
TIMES = 2


def lighter(colour: Colour, share: float = 0.25) -> Colour:
    """Towards white; a negative share goes towards black."""
    return mixed(colour, (255, 255, 255) if share > 0 else (0, 0, 0), abs(share))


def mixed(a: Colour, b: Colour, share: float) -> Colour:
    """`a` with this share of `b`."""
    r, g, b_ = (round(x + (y - x) * share) for x, y in zip(a, b, strict=True))
    return r, g, b_


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


class Brush:
    """Paints one thing. All coordinates in metres; colours are opaque.

    Args:
        frame: where the thing is.
        extent: how far it reaches; what lies outside is cut.
        size: width and height of the picture; what lies outside is not painted.
    """

    def __init__(self, frame: Frame, extent: Extent, size: tuple[int, int]) -> None:
        (xa, y2), (xb, y1) = frame.at(extent.left, extent.bottom), frame.at(extent.right, extent.top)
        self.left = min(max(math.floor(min(xa, xb)) - 1, 0), size[0] - 1)
        self.top = min(max(math.floor(y1) - 1, 0), size[1] - 1)
        width = max(min(math.ceil(max(xa, xb)) + 1, size[0]) - self.left, 1)
        height = max(min(math.ceil(y2) + 1, size[1]) - self.top, 1)
        self.frame = frame
        self.sheet = Image.new("RGBA", (width * TIMES, height * TIMES))
        self._draw = ImageDraw.Draw(self.sheet)

    def _at(self, x: float, y: float) -> Point:
        px, py = self.frame.at(x, y)
        return (px - self.left) * TIMES, (py - self.top) * TIMES

    def polygon(self, points: Sequence[Point], colour: Colour) -> None:
        """A filled polygon."""
        self._draw.polygon([self._at(*p) for p in points], fill=colour)

    def ellipse(self, x: float, y: float, rx: float, ry: float, colour: Colour) -> None:
        """An ellipse about (x, y)."""
        (x1, y1), (x2, y2) = self._at(x - rx, y + ry), self._at(x + rx, y - ry)
        self._draw.ellipse((min(x1, x2), y1, max(x1, x2), y2), fill=colour)

    def half(self, x: float, y: float, rx: float, ry: float, colour: Colour) -> None:
        """Half an ellipse on the line through (x, y): the upper one, or the lower one if ry is negative."""
        self.polygon(arc(x, y, rx, ry), colour)

    def rectangle(self, x1: float, y1: float, x2: float, y2: float, colour: Colour, radius: float = 0) -> None:
        """A rectangle between two corners, which a radius makes round."""
        (a, b), (c, d) = self._at(x1, y1), self._at(x2, y2)
        box = (min(a, c), min(b, d), max(a, c), max(b, d))
        r = min(radius * self.frame.scale * TIMES, (box[2] - box[0]) / 2, (box[3] - box[1]) / 2)
        self._draw.rounded_rectangle(box, r, fill=colour)

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

    def finish(self) -> Image.Image:
        """The sheet in the picture's size."""
        return self.sheet.reduce(TIMES)


def arc(x: float, y: float, rx: float, ry: float) -> list[Point]:
    """Points along half an ellipse on the line through (x, y)."""
    return [(x + rx * math.cos(t / 16 * math.pi), y + ry * math.sin(t / 16 * math.pi)) for t in range(17)]
