"""Small things: round ones, domes, tins, cases. Each function draws a whole family (see `drawing`)."""

from __future__ import annotations

import math
from random import Random

from scenegpi.paper.rendered.brush import Brush, Extent, Point
from scenegpi.paper.rendered.drawing import Drawing
from scenegpi.paper.rendered.palette import ANY, BRIGHT, CHINA, CLOTHES, METAL, WOOD, Colour, lighter, pick

DARK = (52, 52, 58)
WHITE = (250, 248, 242)


def round_thing(rng: Random, label: str, shared: bool, radius: float) -> Drawing:
    """A wheel, plate, ball, clock or balloon of this radius, standing on its origin."""
    r, y = radius, radius
    turn = rng.uniform(0, math.pi)
    outer = pick(rng, ANY) if shared else pick(rng, {"plate": CHINA}.get(label, BRIGHT))
    ring, hub = rng.uniform(0.62, 0.74), rng.uniform(0.2, 0.32)
    second = lighter(outer, rng.choice((-0.25, 0.35)))

    def spokes(b: Brush, count: int, inner: float, reach: float, width: float, colour: Colour) -> None:
        for k in range(count):
            c, s = math.cos(turn + math.tau * k / count), math.sin(turn + math.tau * k / count)
            b.limb([(c * inner * r, y + s * inner * r), (c * reach * r, y + s * reach * r)], width * r, colour)

    def paint(b: Brush) -> None:
        if shared:
            b.ellipse(0, y, r, r, outer)
            b.ellipse(0, y, ring * r, ring * r, second)
            b.ellipse(0, y, hub * r, hub * r, outer)
        elif label == "wheel":
            b.ellipse(0, y, r, r, DARK)
            b.ellipse(0, y, 0.66 * r, 0.66 * r, (196, 202, 210))
            spokes(b, 5, 0.1, 0.55, 0.14, (128, 136, 148))
            b.ellipse(0, y, 0.2 * r, 0.2 * r, DARK)
        elif label == "plate":
            b.ellipse(0, y, r, r, outer)
            b.ellipse(0, y, 0.9 * r, 0.9 * r, lighter(pick(Random(int(turn * 1e6)), BRIGHT), 0.3))
            b.ellipse(0, y, 0.83 * r, 0.83 * r, outer)
            b.ellipse(0, y, 0.6 * r, 0.6 * r, lighter(outer, -0.1))
        elif label == "ball":
            b.ellipse(0, y, r, r, outer)
            c, s = math.cos(turn), math.sin(turn)
            b.limb([(-c * 0.78 * r, y - s * 0.78 * r), (c * 0.78 * r, y + s * 0.78 * r)], 0.42 * r, WHITE)
            b.ellipse(-0.35 * r, y + 0.42 * r, 0.2 * r, 0.14 * r, lighter(outer, 0.6), 0.6)
        elif label == "clock":
            b.ellipse(0, y, r, r, DARK)
            b.ellipse(0, y, 0.84 * r, 0.84 * r, WHITE)
            spokes(b, 12, 0.66, 0.72, 0.07, DARK)
            b.limb([(0, y), (0.5 * r * math.cos(turn), y + 0.5 * r * math.sin(turn))], 0.1 * r, DARK)
            b.limb([(0, y), (0, y + 0.6 * r)], 0.07 * r, (200, 60, 50))
        else:
            b.polygon([(-0.14 * r, -0.12 * r), (0.14 * r, -0.12 * r), (0, 0.12 * r)], lighter(outer, -0.3))
            b.ellipse(0, y, 0.92 * r, r, outer)
            b.ellipse(-0.32 * r, y + 0.4 * r, 0.2 * r, 0.3 * r, lighter(outer, 0.55), -0.5)

    return Drawing(Extent(-1.05 * r, 1.05 * r, -0.14 * r, 2.05 * r), paint, {"tie": (0, 0), "top": (0, 2 * r)})


def dome(rng: Random, label: str, shared: bool, width: float) -> Drawing:
    """A hat, bowl or umbrella of this width; the origin is the middle of its lower side. Points: "top"."""
    w = width / 2
    colour = pick(rng, ANY) if shared else pick(rng, {"bowl": CHINA + BRIGHT, "hat": WOOD + CLOTHES}.get(label, BRIGHT))
    second = lighter(colour, rng.choice((-0.3, 0.4)))
    h = w * rng.uniform(0.85, 1.05)

    def paint(b: Brush) -> None:
        if shared:  # a cap, a bowl turned over, a plain umbrella
            b.half(0, 0.1 * h, w * 0.92, h * 0.9, colour)
            b.rectangle(-w, 0, w, 0.24 * h, second, 0.1 * h)
        elif label == "hat":
            b.polygon([(-0.6 * w, 0.1 * h), (-0.5 * w, 0.85 * h), (0.5 * w, 0.85 * h), (0.6 * w, 0.1 * h)], colour)
            b.ellipse(0, 0.85 * h, 0.5 * w, 0.14 * h, lighter(colour, 0.15))
            b.rectangle(-0.6 * w, 0.16 * h, 0.6 * w, 0.38 * h, second)
            b.ellipse(0, 0.12 * h, w, 0.13 * h, lighter(colour, -0.12))
        elif label == "bowl":
            b.half(0, h * 0.8, w, -0.78 * h, colour)
            b.rectangle(-0.35 * w, 0, 0.35 * w, 0.12 * h, lighter(colour, -0.2))
            b.ellipse(0, 0.8 * h, w, 0.16 * h, lighter(colour, 0.35))
            b.ellipse(0, 0.8 * h, 0.88 * w, 0.11 * h, second)
        else:
            b.half(0, 0.12 * h, w, 0.88 * h, colour)
            for k, x in enumerate((-0.66, 0, 0.66)):
                b.half(x * w, 0.13 * h, w / 3, -0.13 * h, colour if k != 1 else second)
            b.polygon([(0, h), (-0.33 * w, 0.12 * h), (0.33 * w, 0.12 * h)], second)
            b.limb([(0, 0.98 * h), (0, 1.1 * h)], 0.05 * w, DARK)

    return Drawing(Extent(-1.03 * w, 1.03 * w, -0.03 * h, 1.15 * h), paint, {"top": (0, h), "grip": (0, 0.1 * h)})


def tin(rng: Random, label: str, shared: bool, height: float) -> Drawing:
    """A cup, bucket or (hanging or standing) lamp of this height; the origin is the middle of its foot."""
    h, w = height, height * rng.uniform(0.4, 0.46)
    colour = (
        pick(rng, ANY) if shared else pick(rng, {"bucket": METAL + BRIGHT, "cup": CHINA + BRIGHT}.get(label, BRIGHT))
    )
    second = lighter(colour, rng.choice((-0.25, 0.35)))

    def paint(b: Brush) -> None:
        if shared:
            b.rectangle(-w, 0, w, h, colour, 0.12 * h)
            b.rectangle(-w, 0.62 * h, w, 0.76 * h, second)
            b.rectangle(-w, 0.2 * h, w, 0.3 * h, second)
        elif label == "cup":
            b.ellipse(w * 0.95, 0.52 * h, 0.24 * h, 0.26 * h, lighter(colour, -0.15))
            b.ellipse(w * 0.95, 0.52 * h, 0.13 * h, 0.15 * h, lighter(colour, -0.5))
            b.polygon([(-0.72 * w, 0), (0.72 * w, 0), (w, 0.94 * h), (-w, 0.94 * h)], colour)
            b.ellipse(0, 0.93 * h, w, 0.07 * h, lighter(colour, 0.3))
            b.ellipse(0, 0.93 * h, 0.85 * w, 0.045 * h, (112, 72, 48))
        elif label == "bucket":
            arc = [(w * math.cos(t / 12 * math.pi), 0.86 * h + 0.4 * h * math.sin(t / 12 * math.pi)) for t in range(13)]
            b.limb(arc, 0.05 * h, lighter(colour, -0.35))
            b.polygon([(-0.7 * w, 0), (0.7 * w, 0), (1.05 * w, 0.9 * h), (-1.05 * w, 0.9 * h)], colour)
            b.rectangle(-1.1 * w, 0.82 * h, 1.1 * w, 0.95 * h, lighter(colour, 0.25), 0.04 * h)
            b.polygon([(-0.86 * w, 0.42 * h), (0.86 * w, 0.42 * h), (0.9 * w, 0.52 * h), (-0.9 * w, 0.52 * h)], second)
        else:
            b.rectangle(-0.5 * w, 0, 0.5 * w, 0.08 * h, WOOD[3], 0.03 * h)
            b.rectangle(-0.1 * w, 0, 0.1 * w, 0.5 * h, WOOD[3])
            b.polygon([(-1.05 * w, 0.38 * h), (1.05 * w, 0.38 * h), (0.6 * w, h), (-0.6 * w, h)], (252, 226, 150))
            b.polygon(
                [(-1.05 * w, 0.38 * h), (1.05 * w, 0.38 * h), (0.98 * w, 0.46 * h), (-0.98 * w, 0.46 * h)], colour
            )

    return Drawing(Extent(-1.25 * w, 1.6 * w, -0.02 * h, 1.35 * h), paint, {"top": (0, h), "grip": (0, 0.5 * h)})


def case(rng: Random, label: str, shared: bool, width: float) -> Drawing:
    """A bag or a box of this width, standing on its origin. Points: "grip" and "top"."""
    w, h = width / 2, width * rng.uniform(0.68, 0.8)
    colour = pick(rng, ANY) if shared else pick(rng, WOOD if label == "box" else CLOTHES + WOOD)
    second = lighter(colour, rng.choice((-0.3, 0.3)))

    def paint(b: Brush) -> None:
        if shared:
            b.rectangle(-w, 0, w, h, colour, 0.1 * h)
            b.rectangle(-w, 0.68 * h, w, 0.76 * h, second)
            b.rectangle(-0.16 * w, 0.56 * h, 0.16 * w, 0.86 * h, second, 0.04 * h)
        elif label == "bag":
            arc = [
                (0.5 * w * math.cos(t / 12 * math.pi), 0.8 * h + 0.5 * h * math.sin(t / 12 * math.pi))
                for t in range(13)
            ]
            b.limb(arc, 0.1 * h, lighter(colour, -0.35))
            b.blob(
                [
                    (-0.95 * w, 0.02 * h),
                    (-w, 0.4 * h),
                    (-0.72 * w, 0.92 * h),
                    (0.72 * w, 0.92 * h),
                    (w, 0.4 * h),
                    (0.95 * w, 0.02 * h),
                ],
                colour,
            )
            b.rectangle(-0.6 * w, 0.16 * h, 0.6 * w, 0.52 * h, second, 0.1 * h)
        else:
            b.rectangle(-w, 0, w, 0.86 * h, colour)
            b.polygon([(-w, 0.86 * h), (-0.84 * w, h), (1.0 * w, h), (w, 0.86 * h)], lighter(colour, 0.25))
            b.rectangle(-0.12 * w, 0.4 * h, 0.12 * w, 0.86 * h, lighter(colour, 0.5))
            b.rectangle(0.35 * w, 0.12 * h, 0.8 * w, 0.34 * h, lighter(colour, -0.25))

    grip: Point = (0, 0.72 * h if shared else 1.25 * h if label == "bag" else 0.5 * h)
    return Drawing(Extent(-1.08 * w, 1.08 * w, -0.04 * h, 1.4 * h), paint, {"grip": grip, "top": (0, 0.95 * h)})
