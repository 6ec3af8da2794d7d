"""Large things: slabs (table, bench), greens (tree, bush), panes (window, picture), and what has no look-alike."""

from __future__ import annotations

from random import Random

from scenegpi.paper.rendered.brush import Brush, Extent, Point
from scenegpi.paper.rendered.drawing import Drawing
from scenegpi.paper.rendered.palette import ANY, BRIGHT, FACADE, LEAF, PAINT, WOOD, lighter, mixed, pick

GLASS = (168, 208, 230)
DARK = (52, 52, 58)


def slab(rng: Random, label: str, shared: bool) -> Drawing:
    """A table or a bench. Points: "left" and "right" end of the top, "under"."""
    own = {"table": (rng.uniform(1.5, 1.9), 0.76), "bench": (rng.uniform(1.5, 1.9), 0.5)}
    width, h = own[label] if not shared else (rng.uniform(1.5, 1.9), rng.uniform(0.56, 0.66))
    w = width / 2
    colour = pick(rng, WOOD)
    cloth = label == "table" and not shared and rng.random() < 0.5
    linen = lighter(pick(rng, BRIGHT), 0.35)

    def paint(b: Brush) -> None:
        dark = lighter(colour, -0.3)
        if label == "bench" and not shared:
            for y in (h + 0.16, h + 0.34):
                b.rectangle(-w, y, w, y + 0.12, lighter(colour, -0.12), 0.03)
            for x in (-w + 0.14, w - 0.2):
                b.rectangle(x, h - 0.05, x + 0.07, h + 0.44, dark)
        for x in (-w + 0.12, w - 0.22):
            b.rectangle(x, 0, x + 0.1, h - 0.04, dark)
            b.rectangle(
                x + (0.12 if x < 0 else -0.12), 0.08, x + (0.2 if x < 0 else -0.04), h - 0.04, lighter(colour, -0.5)
            )
        b.rectangle(-w, h - 0.1, w, h, colour, 0.03)
        b.rectangle(-w, h - 0.035, w, h, lighter(colour, 0.2), 0.02)
        if cloth:
            b.rectangle(-w * 0.98, h - 0.26, w * 0.98, h + 0.012, linen, 0.02)
            for k in range(-4, 5, 2):
                b.rectangle(w * (k - 0.4) / 5, h - 0.26, w * (k + 0.4) / 5, h + 0.012, lighter(linen, 0.5))

    top = h + (0.5 if label == "bench" and not shared else 0.03)
    points: dict[str, Point] = {"left": (-w + 0.1, h), "right": (w - 0.1, h), "under": (0, 0)}
    return Drawing(Extent(-w - 0.02, w + 0.02, -0.02, top), paint, points)


def green(rng: Random, label: str, shared: bool) -> Drawing:
    """A tree or a bush. Points: "crown" (middle of the leaves) and "top"."""
    h = {"tree": rng.uniform(2.1, 3.1), "bush": rng.uniform(0.95, 1.45)}[label]
    trunk = {"tree": 0.4, "bush": 0.04}[label] if not shared else rng.uniform(0.16, 0.24)
    wide = rng.uniform(0.62, 0.8) if label == "bush" and not shared else rng.uniform(0.4, 0.5)
    leaf = pick(rng, LEAF)
    bark = pick(rng, WOOD)
    dots = not shared and rng.random() < 0.5
    dot = pick(rng, BRIGHT)
    mid = (trunk + 1) / 2
    puffs = [(rng.uniform(-0.5, 0.5), rng.uniform(-0.5, 0.5), rng.uniform(0.42, 0.58)) for _ in range(5)]
    spots = [(rng.uniform(-0.6, 0.6), rng.uniform(-0.6, 0.5)) for _ in range(7)]

    def paint(b: Brush) -> None:
        rx, ry = wide * h * 0.62, (1 - trunk) * h * 0.55
        if trunk > 0.1:
            t = 0.05 * h
            b.polygon([(-t, 0), (t, 0), (t * 0.6, mid * h), (-t * 0.6, mid * h)], bark)
            b.limb([(0, mid * h * 0.75), (rx * 0.5, mid * h * 1.05)], t * 0.8, bark, t * 0.4)
        b.ellipse(0, mid * h, rx, ry * 0.9, lighter(leaf, -0.18))
        for x, y, r in puffs:
            b.ellipse(x * rx, mid * h + y * ry * 0.8, r * rx * 1.15, r * ry * 1.1, lighter(leaf, -0.06 + 0.1 * y))
        b.ellipse(-0.22 * rx, mid * h + 0.3 * ry, 0.6 * rx, 0.55 * ry, lighter(leaf, 0.1))
        b.ellipse(-0.32 * rx, mid * h + 0.45 * ry, 0.34 * rx, 0.28 * ry, lighter(leaf, 0.22))
        if dots:
            for x, y in spots:
                b.ellipse(x * rx, mid * h + y * ry, 0.022 * h + 0.01, 0.022 * h + 0.01, dot)

    points = {"crown": (0.0, mid * h), "top": (0.0, h * 0.99), "side": (wide * h * 0.5, mid * h)}
    reach = wide * h * 0.95
    return Drawing(Extent(-reach, reach, min(0.0, mid * h - 0.62 * (1 - trunk) * h), 1.06 * h), paint, points)


def pane(rng: Random, label: str, shared: bool, width: float, height: float) -> Drawing:
    """A window or a picture; the origin is the middle of its lower side."""
    w, h = width / 2, height
    frame = pick(rng, ANY if shared else WOOD)
    edge = 0.1 * min(width, height)
    sky = mixed(GLASS, pick(rng, ANY), 0.6 if shared else 0.15)
    colour = pick(rng, LEAF)

    def paint(b: Brush) -> None:
        b.rectangle(-w, 0, w, h, frame, 0.02)
        b.rectangle(-w + edge, edge, w - edge, h - edge, sky)
        if shared:
            b.polygon([(-w + edge, h * 0.45), (0, h - edge), (-w + edge, h - edge)], lighter(sky, 0.3))
        elif label == "window":
            b.polygon([(-w + edge, h * 0.35), (w * 0.3, h - edge), (-w + edge, h - edge)], lighter(sky, 0.35))
            b.rectangle(-edge / 3, 0, edge / 3, h, frame)
            b.rectangle(-w, h / 2 - edge / 3, w, h / 2 + edge / 3, frame)
            b.rectangle(-w - edge * 0.6, -edge * 0.3, w + edge * 0.6, edge * 0.8, lighter(frame, 0.4))
        else:
            b.half(-0.2 * w, edge, 0.75 * w - edge, 0.5 * h, lighter(colour, -0.2))
            b.half(0.35 * w, edge, 0.6 * w - edge, 0.32 * h, colour)
            b.ellipse(0.35 * w, 0.68 * h, 0.2 * w, 0.2 * w, (250, 205, 110))

    return Drawing(Extent(-w - edge, w + edge, -edge, h + 0.01), paint)


def building(rng: Random) -> Drawing:
    """A house front. Points: "w0" .. "w5" places of windows (lower middle), "clock", "roof"."""
    floors, rows = rng.randrange(2, 4), rng.randrange(2, 4)
    w, h = rows * 0.85, floors * 1.5 + 0.4
    wall, roof = pick(rng, FACADE), pick(rng, WOOD)
    gable = rng.random() < 0.6
    door = pick(rng, PAINT)

    def paint(b: Brush) -> None:
        b.rectangle(-w, 0, w, h, wall)
        b.rectangle(w * 0.55, 0, w, h, lighter(wall, -0.07))
        b.rectangle(-w, 0, w, 0.25, lighter(wall, -0.25))
        for k in range(1, floors):
            b.rectangle(-w, k * 1.5 + 0.28, w, k * 1.5 + 0.34, lighter(wall, 0.25))
        if gable:
            b.polygon([(-w - 0.2, h), (w + 0.2, h), (0, h + 1.0)], roof)
            b.polygon([(0, h + 1.0), (w + 0.2, h), (w * 0.3, h)], lighter(roof, -0.15))
        else:
            b.rectangle(-w - 0.12, h, w + 0.12, h + 0.22, roof)
        b.rectangle(-0.34, 0, 0.34, 1.25, lighter(door, -0.2), 0.04)
        b.rectangle(-0.27, 0, 0.27, 1.18, door, 0.04)
        b.ellipse(0.17, 0.55, 0.04, 0.04, (240, 220, 160))

    slots = [(-w + 0.85 + 1.7 * i, 0.62 + 1.5 * k) for k in range(floors) for i in range(rows)]
    slots = [(x, y) for x, y in slots if abs(x) > 0.7 or y > 1.5]
    points = {f"w{i}": slot for i, slot in enumerate(slots)}
    points |= {
        "roof": (w * 0.3, h + (0.7 if gable else 0.22)),
        "clock": (0, h + 0.1 if gable else h - 0.35),
    }
    return Drawing(Extent(-w - 0.22, w + 0.22, -0.01, h + 1.02), paint, points)


def car(rng: Random) -> Drawing:
    """A car without its wheels. Points: "wheel0", "wheel1", "roof", "seat" (in its window)."""
    colour = pick(rng, PAINT)
    van = rng.random() < 0.3

    def paint(b: Brush) -> None:
        roof = 1.62 if van else 1.38
        b.blob([(-1.75, 0.36), (-1.8, 0.75), (-1.6, 0.95), (0, 1.0), (1.5, 0.86), (1.8, 0.66), (1.75, 0.34)], colour)
        back = -1.7 if van else -1.25
        b.polygon([(back, 0.9), (back + 0.28, roof), (0.45, roof), (1.0, 0.9)], lighter(colour, -0.04))
        b.rectangle(back + 0.3, roof - 0.05, 0.45, roof + 0.05, colour, 0.05)
        b.polygon([(back + 0.24, 0.93), (back + 0.42, roof - 0.1), (-0.35, roof - 0.1), (-0.35, 0.93)], GLASS)
        b.polygon([(-0.25, 0.93), (-0.25, roof - 0.1), (0.38, roof - 0.1), (0.8, 0.93)], lighter(GLASS, 0.2))
        b.rectangle(-1.78, 0.3, 1.78, 0.42, lighter(colour, -0.35), 0.06)
        b.rectangle(-0.15, 0.68, 0.05, 0.73, lighter(colour, -0.3), 0.02)
        b.ellipse(1.68, 0.66, 0.1, 0.12, (255, 244, 200))
        b.rectangle(-1.82, 0.62, -1.7, 0.8, (190, 40, 40), 0.03)
        for x in (-1.08, 1.1):
            b.half(x, 0.3, 0.44, 0.44, DARK)

    points = {"wheel0": (-1.08, 0.0), "wheel1": (1.1, 0.0), "roof": (-0.5, 1.68 if van else 1.43), "seat": (0.1, 0.9)}
    return Drawing(Extent(-1.95, 1.95, 0.1, 1.72), paint, points)


def bike(rng: Random) -> Drawing:
    """A bicycle without its wheels. Points: "wheel0", "wheel1", "saddle"."""
    colour = pick(rng, PAINT)

    def paint(b: Brush) -> None:
        rear, front, crank = (-0.52, 0.34), (0.52, 0.34), (-0.05, 0.36)
        seat, bar = (-0.2, 0.86), (0.36, 0.88)
        for ends in (
            [rear, crank],
            [crank, seat],
            [rear, (-0.17, 0.76)],
            [(-0.17, 0.76), (0.34, 0.8)],
            [crank, (0.34, 0.8)],
            [front, bar],
        ):
            b.limb(ends, 0.055, colour)
        b.limb([(-0.32, 0.9), (-0.1, 0.9)], 0.08, DARK)
        b.limb([bar, (0.3, 0.98), (0.42, 1.0)], 0.05, DARK)
        b.ellipse(*crank, 0.08, 0.08, DARK)

    points = {"wheel0": (-0.52, 0.0), "wheel1": (0.52, 0.0), "saddle": (-0.2, 0.92), "bar": (0.38, 0.98)}
    return Drawing(Extent(-0.65, 0.65, 0.25, 1.05), paint, points)


def boat(rng: Random) -> Drawing:
    """A small boat on the water line. Points: "seat0", "seat1", "rim", below which the hull hides what is in it."""
    colour = pick(rng, PAINT)
    mast = rng.random() < 0.45
    cloth = lighter(pick(rng, BRIGHT), 0.5)

    def paint(b: Brush) -> None:
        if mast:
            b.limb([(0.1, 0.3), (0.1, 2.5)], 0.07, WOOD[3])
            b.polygon([(0.18, 0.85), (0.18, 2.45), (1.2, 0.85)], cloth)
            b.polygon([(0.02, 0.95), (0.02, 2.2), (-0.7, 0.95)], lighter(cloth, -0.08))
        b.polygon([(-1.6, 0.6), (1.75, 0.6), (1.3, 0.0), (-1.25, 0.0)], colour)
        b.polygon([(-1.6, 0.6), (1.75, 0.6), (1.67, 0.48), (-1.55, 0.48)], lighter(colour, 0.5))
        b.polygon([(-1.36, 0.17), (1.43, 0.17), (1.3, 0.0), (-1.25, 0.0)], lighter(colour, -0.35))

    return Drawing(
        Extent(-1.62, 1.77, 0, 2.55 if mast else 0.65),
        paint,
        {"seat0": (-0.75, 0.2), "seat1": (0.75, 0.2), "rim": (0, 0.6)},
    )
