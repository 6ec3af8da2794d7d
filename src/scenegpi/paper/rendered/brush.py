"""A thing is painted alone, on a small separate sheet, which is then laid over the picture.

The brush works in the thing's own units: metres, x to the right and y up from the point where the thing stands.
Sheets are painted twice as large and reduced, which smooths all edges; what the sheet covers is the thing's
exact mask. A drawing is what the brush does for one thing; the colours of things are here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from PIL import Image, ImageDraw

Point = tuple[float, float]
Colour = tuple[int, int, int]
TIMES = 2


def lighter(colour: Colour, share: float = 0.25) -> Colour:
    """Mixed with white; with black if the fraction is negative."""
    return mixed(colour, (255, 255, 255) if share > 0 else (0, 0, 0), abs(share))


def mixed(a: Colour, b: Colour, share: float) -> Colour:
    """`a` mixed with this fraction of `b`."""
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
        extent: how far it reaches; anything outside is cut off.
        size: width and height of the picture; nothing is painted outside.
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
        """A line with round ends and joints; `end` is its width at the last point, by default `width`."""
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


@dataclass(frozen=True)
class Drawing:
    """How to paint a thing in its own metres.

    `points` are named places on it (a hand, a seat, a roof) where other things are put.
    """

    extent: Extent
    paint: Callable[[Brush], None]
    points: dict[str, Point] = field(default_factory=dict)


def _rgb(text: str) -> tuple[Colour, ...]:
    return tuple((int(h[:2], 16), int(h[2:4], 16), int(h[4:], 16)) for h in text.split())


DARK = (52, 52, 58)
SKIN = _rgb("f6d3b3 eabf96 d9a273 b87d4f 8d5a3a 6b4129")
HAIR = _rgb("2b2320 4a2f22 7a4a2b b5793c d9b36a 8a8a8f 9c3f2a")
CLOTHES = _rgb("e4572e f2a65a f3c969 76b041 2a9d8f 3a86c8 6a5acd c05299 ef798a 264653 f4f1de 8d99ae")
TROUSERS = _rgb("264653 3d405b 4a5568 6b705c 7f5539 2b3a67 8d99ae a98467")
BRIGHT = _rgb("e63946 f3722c f9c74f 43aa8b 277da1 9b5de5 f15bb5 00bbf9")
ANY = _rgb("7f9bb8 c9a26b 8fb07c d0836b 8d83b8 5fa3a0 c78fa0 b9b06a e0b04f 4f86b5 d9694f e8e2d4")
"""Colours that any look-alike may have."""
CHINA = _rgb("f7f3ea e8eef2 f2e3d5 dfe9e0 d6e2ef")
WOOD = _rgb("a0673a 8b5a2b b98555 6f4a2f c49a6c 84624a")
COAT = _rgb("8a5a36 5b3d2a b98a5a 3c3230 d8c3a0 a39484")
LEAF = _rgb("4f9d5d 6bb36a 3f8f6b 86b95a 5aa27c a3b84d d9903d")
PAINT = _rgb("d62828 f77f00 2a9d8f 3a6ea5 fcbf49 6d597a 457b9d e9ecef")
