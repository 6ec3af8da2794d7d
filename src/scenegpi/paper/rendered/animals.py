"""Four-legged animals (dog, horse) and what flies (bird, kite)."""

from __future__ import annotations

from random import Random

from scenegpi.paper.rendered.brush import Brush, Extent, Point
from scenegpi.paper.rendered.drawing import Drawing
from scenegpi.paper.rendered.palette import ANY, BRIGHT, COAT, lighter, pick

WITHERS = {"horse": 1.35, "dog": 0.58}
DARK = (40, 34, 34)


def four_legs(rng: Random, label: str, shared: bool) -> Drawing:
    """A dog or a horse, looking right; the origin is the ground under its middle. Point: "back"."""
    s = WITHERS[label] * rng.uniform(0.92, 1.1)
    own = {"horse": (0.30, 0.52, 0.24), "dog": (0.17, 0.2, 0.15)}
    nx, ny, muzzle = (
        own[label] if not shared else (rng.uniform(0.2, 0.27), rng.uniform(0.3, 0.4), rng.uniform(0.17, 0.21))
    )
    mane = label == "horse" and not shared
    ear = "flop" if label == "dog" and not shared else "up"
    tail = {"horse": "long", "dog": "curl"}[label] if not shared else "plain"
    coat = pick(rng, COAT)
    hair = lighter(coat, -0.45)
    spotted = rng.random() < 0.25
    step = rng.uniform(-0.1, 0.1)
    hip, chest = (-0.5, 0.82), (0.44, 0.84)
    poll = (chest[0] + nx, chest[1] + ny)

    def q(x: float, y: float) -> Point:
        return x * s, y * s

    def paint(b: Brush) -> None:
        for x, swing, dark in ((-0.42, -step, -0.3), (0.32, step, -0.3), (-0.54, step, 0), (0.44, -step, 0)):
            leg = lighter(coat, dark)
            b.limb([q(x, 0.7), q(x + swing * 0.6, 0.38), q(x + swing, 0.05)], 0.17 * s, leg, 0.1 * s)
            b.rectangle(*q(x + swing - 0.055, 0), *q(x + swing + 0.075, 0.07), lighter(hair, dark), 0.03 * s)
        ends = {
            "long": [(-0.62, 0.88), (-0.78, 0.7), (-0.8, 0.36)],
            "curl": [(-0.6, 0.86), (-0.78, 1.05), (-0.72, 1.22)],
            "plain": [(-0.62, 0.87), (-0.78, 0.74), (-0.8, 0.56)],
        }
        b.limb([q(*p) for p in ends[tail]], (0.13 if tail == "long" else 0.1) * s, hair if mane else coat, 0.06 * s)
        b.limb([q(*hip), q(*chest)], 0.4 * s, coat)
        b.limb([q(chest[0] - 0.02, chest[1] + 0.02), q(*poll)], 0.32 * s, coat, 0.2 * s)
        if spotted:
            for x, y, r in ((-0.3, 0.9, 0.1), (0.05, 0.8, 0.12), (-0.45, 0.75, 0.06)):
                b.ellipse(*q(x, y), r * s, r * 0.8 * s, lighter(coat, 0.45))
        if mane:
            b.limb([q(poll[0] - 0.08, poll[1] + 0.08), q(chest[0] - 0.13, chest[1] + 0.15)], 0.11 * s, hair, 0.08 * s)
        head = [q(poll[0] - 0.02, poll[1] + 0.02), q(poll[0] + muzzle, poll[1] - 0.1 - muzzle * 0.25)]
        b.limb(head, 0.22 * s, coat, 0.15 * s)
        b.ellipse(*q(poll[0] + muzzle + 0.045, poll[1] - 0.1 - muzzle * 0.25), 0.035 * s, 0.04 * s, DARK)
        if ear == "up":
            b.polygon(
                [
                    q(poll[0] - 0.1, poll[1] + 0.05),
                    q(poll[0] - 0.05, poll[1] + 0.24),
                    q(poll[0] + 0.03, poll[1] + 0.08),
                ],
                hair,
            )
        else:
            b.limb([q(poll[0] - 0.05, poll[1] + 0.06), q(poll[0] - 0.12, poll[1] - 0.12)], 0.11 * s, hair, 0.09 * s)
        b.ellipse(*q(poll[0] + 0.07, poll[1] + 0.03), 0.024 * s, 0.026 * s, DARK)

    return Drawing(Extent(-0.95 * s, 1.15 * s, -0.02 * s, 1.75 * s), paint, {"back": q(-0.08, 1.0)})


def flyer(rng: Random, label: str, shared: bool) -> Drawing:
    """A bird in flight or a kite in the air, about its middle. Point: "tie", where a kite's line ends."""
    s = {"bird": 0.5, "kite": 0.55}[label] * rng.uniform(0.85, 1.2)
    tilt = rng.uniform(-0.2, 0.2)

    def q(x: float, y: float) -> Point:
        return (x - tilt * y) * s, (y + tilt * x) * s

    if shared:
        colour, second = pick(rng, ANY), pick(rng, ANY)
        top, low = rng.uniform(0.35, 0.5), rng.uniform(0.6, 0.75)

        def paint(b: Brush) -> None:  # a swept shape that either might be
            b.polygon([q(0, top), q(0.95, 0.12), q(0.14, -low), q(-0.14, -low), q(-0.95, 0.12)], colour)
            b.polygon([q(0, top), q(0.95, 0.12), q(0, -0.15)], lighter(colour, 0.2))
            b.polygon([q(0.02, -low * 0.6), q(0.2, -low - 0.25), q(-0.16, -low - 0.25)], second)
    elif label == "kite":
        colour, second = pick(rng, BRIGHT), pick(rng, BRIGHT)

        def paint(b: Brush) -> None:
            tail = [(0, -0.9), (0.12, -1.15), (-0.08, -1.4), (0.1, -1.65)]
            b.limb([q(*p) for p in tail], 0.04 * s, lighter(second, -0.2))
            for x, y in tail[1:]:
                b.polygon([q(x, y), q(x + 0.15, y + 0.08), q(x + 0.15, y - 0.08)], second)
                b.polygon([q(x, y), q(x - 0.15, y + 0.08), q(x - 0.15, y - 0.08)], colour)
            b.polygon([q(0, 1), q(0.72, 0.15), q(0, -0.95), q(-0.72, 0.15)], colour)
            b.polygon([q(0, 1), q(0.72, 0.15), q(0, 0.15)], second)
            b.polygon([q(0, -0.95), q(-0.72, 0.15), q(0, 0.15)], second)
    else:
        colour = lighter(pick(rng, ((70, 78, 92), (238, 240, 242), (120, 110, 104))), rng.uniform(-0.1, 0.1))

        def paint(b: Brush) -> None:
            b.blob([q(-0.05, 0), q(0.3, 0.32), q(1, 0.42), q(0.5, 0.0), q(0.12, -0.2)], lighter(colour, -0.12))
            b.blob([q(0.05, 0), q(-0.3, 0.38), q(-0.95, 0.5), q(-0.5, 0.02), q(-0.12, -0.18)], colour)
            b.limb([q(-0.25, -0.22), q(0.18, -0.04)], 0.2 * s, lighter(colour, 0.1), 0.17 * s)
            b.ellipse(*q(0.28, 0), 0.11 * s, 0.1 * s, colour)
            b.polygon([q(0.36, 0.05), q(0.52, -0.02), q(0.36, -0.06)], (242, 156, 56))
            b.polygon([q(-0.25, -0.16), q(-0.62, -0.3), q(-0.55, -0.42), q(-0.22, -0.3)], lighter(colour, -0.2))

    return Drawing(Extent(-1.2 * s, 1.2 * s, -1.9 * s, 1.2 * s), paint, {"tie": q(0, -0.5)})


def perched_bird(rng: Random) -> Drawing:
    """A bird that sits; the origin is under its feet."""
    s = 0.34 * rng.uniform(0.85, 1.2)
    colour = pick(rng, ((70, 88, 112), (190, 92, 70), (96, 128, 96), (90, 84, 88)))

    def q(x: float, y: float) -> Point:
        return x * s, y * s

    def paint(b: Brush) -> None:
        for x in (-0.05, 0.1):
            b.limb([q(x, 0.25), q(x, 0.02)], 0.05 * s, (205, 140, 60))
        b.polygon([q(-0.3, 0.55), q(-0.85, 0.3), q(-0.75, 0.16), q(-0.2, 0.3)], lighter(colour, -0.3))
        b.ellipse(*q(0, 0.48), 0.4 * s, 0.3 * s, colour, 0.3)
        b.ellipse(*q(0.08, 0.4), 0.24 * s, 0.18 * s, lighter(colour, 0.5), 0.3)
        b.ellipse(*q(0.3, 0.78), 0.2 * s, 0.19 * s, colour)
        b.polygon([q(0.46, 0.84), q(0.68, 0.76), q(0.46, 0.7)], (242, 156, 56))
        b.ellipse(*q(0.35, 0.82), 0.035 * s, 0.035 * s, DARK)
        b.ellipse(*q(-0.1, 0.5), 0.24 * s, 0.14 * s, lighter(colour, -0.2), 0.35)

    return Drawing(Extent(-0.95 * s, 0.75 * s, -0.03 * s, 1.05 * s), paint)
