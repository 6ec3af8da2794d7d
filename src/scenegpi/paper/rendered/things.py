"""The things of rendered scenes: how they are drawn, their families of look-alikes, their names and relations.

A family is a set of things drawn by one function (round things, domes, tins, slabs, four-legged animals, ...). Each
member has its own ranges of shape, colour and detail; the shared look draws all of them from one common range and
leaves out the distinguishing detail, so that the picture of the box shows the family but not the member.

A drawing function takes a `Random`, a label, and whether the look is the one that the family shares; a thing stands on
its origin. Small things have a point "grip", where a hand holds them. The order of the names never changes: files and
models refer to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from random import Random

from scenegpi.paper.rendered import brush
from scenegpi.paper.rendered.brush import ANY, BRIGHT, CHINA, DARK, WOOD, Brush, Drawing, Extent, Point, arc, lighter
from scenegpi.vocabulary import Vocabulary

GLASS = (168, 208, 230)
LEGS: dict[str, tuple[Point, list[Point], list[Point]]] = {  # hip, then knee and foot of the near and the far leg
    "stand": ((0, 0.84), [(0.09, 0.44), (0.1, 0.05)], [(-0.09, 0.44), (-0.1, 0.05)]),
    "walk": ((0, 0.84), [(0.17, 0.46), (0.27, 0.07)], [(-0.08, 0.44), (-0.3, 0.1)]),
    "sit": ((0, 0.08), [(0.4, 0.08), (0.42, -0.41)], [(0.36, 0.06), (0.34, -0.41)]),
    "ride": ((0, 0.05), [(0.2, -0.24), (0.1, -0.62)], [(0.16, -0.2), (0.06, -0.5)]),
}
ARMS: dict[str, list[Point]] = {  # elbow and hand, from the shoulder
    "down": [(0.13, -0.26), (0.16, -0.52)],
    "forward": [(0.2, -0.24), (0.46, -0.26)],
    "up": [(0.24, 0.02), (0.34, 0.34)],
    "side": [(0.16, -0.24), (0.27, -0.5)],
}


def round_thing(rng: Random, label: str, shared: bool) -> Drawing:
    """A wheel, plate, ball or balloon."""
    r = y = rng.uniform(*{"wheel": (0.35, 0.37), "balloon": (0.2, 0.28)}.get(label, (0.16, 0.23)))
    turn = rng.uniform(0, math.pi)
    outer = rng.choice(ANY if shared else CHINA if label == "plate" else BRIGHT)
    ring, hub = rng.uniform(0.62, 0.74), rng.uniform(0.2, 0.32)
    second = lighter(outer, rng.choice((-0.25, 0.35)))

    def disc(b: Brush, *rings: tuple[float, tuple[int, int, int]]) -> None:
        for share, colour in rings:
            b.ellipse(0, y, share * r, share * r, colour)

    def paint(b: Brush) -> None:
        if shared:
            disc(b, (1, outer), (ring, second), (hub, outer))
        elif label == "wheel":
            disc(b, (1, DARK), (0.66, (196, 202, 210)))
            for k in range(5):
                c, s = math.cos(turn + math.tau * k / 5) * r, math.sin(turn + math.tau * k / 5) * r
                b.limb([(0, y), (0.55 * c, y + 0.55 * s)], 0.14 * r, (128, 136, 148))
            disc(b, (0.2, DARK))
        elif label == "plate":
            disc(b, (1, outer), (0.9, lighter(second, -0.2)), (0.83, outer), (0.6, lighter(outer, -0.1)))
        elif label == "ball":
            disc(b, (1, outer))
            c, s = 0.78 * r * math.cos(turn), 0.78 * r * math.sin(turn)
            b.limb([(-c, y - s), (c, y + s)], 0.42 * r, (250, 248, 242))
        else:
            b.polygon([(-0.14 * r, -0.12 * r), (0.14 * r, -0.12 * r), (0, 0.12 * r)], lighter(outer, -0.3))
            b.ellipse(0, y, 0.9 * r, r, outer)
            b.ellipse(-0.32 * r, y + 0.4 * r, 0.2 * r, 0.3 * r, lighter(outer, 0.55))

    return Drawing(Extent(-1.05 * r, 1.05 * r, -0.14 * r, 2.05 * r), paint, {"grip": (0, r)})


def dome(rng: Random, label: str, shared: bool) -> Drawing:
    """A hat or a bowl."""
    w = rng.uniform(0.4, 0.52) / 2
    colour = rng.choice(ANY if shared else WOOD + brush.CLOTHES if label == "hat" else CHINA + BRIGHT)
    second = lighter(colour, rng.choice((-0.3, 0.4)))
    h = w * rng.uniform(0.85, 1.05)

    def paint(b: Brush) -> None:
        if shared:
            b.half(0, 0.1 * h, 0.92 * w, 0.9 * h, colour)
            b.rectangle(-w, 0, w, 0.22 * h, second, 0.1 * h)
        elif label == "hat":
            b.rectangle(-0.6 * w, 0.12 * h, 0.6 * w, h, colour, 0.24 * h)
            b.rectangle(-0.6 * w, 0.16 * h, 0.6 * w, 0.38 * h, second)
            b.ellipse(0, 0.12 * h, w, 0.13 * h, lighter(colour, -0.12))
        else:
            b.half(0, h * 0.8, w, -0.78 * h, colour)
            b.rectangle(-0.35 * w, 0, 0.35 * w, 0.12 * h, lighter(colour, -0.2))
            b.ellipse(0, 0.8 * h, w, 0.16 * h, lighter(colour, 0.35))
            b.ellipse(0, 0.8 * h, 0.88 * w, 0.11 * h, second)

    return Drawing(Extent(-1.03 * w, 1.03 * w, -0.03 * h, 1.15 * h), paint, {"grip": (0, 0.1 * h)})


def tin(rng: Random, label: str, shared: bool) -> Drawing:
    """A cup or a bucket."""
    h = rng.uniform(*((0.26, 0.36) if label == "cup" else (0.3, 0.44)))
    w = h * rng.uniform(0.4, 0.46)
    colour = rng.choice(ANY if shared else CHINA + BRIGHT if label == "cup" else BRIGHT)
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
        else:
            b.limb(arc(0, 0.86 * h, w, 0.4 * h), 0.05 * h, lighter(colour, -0.35))
            b.polygon([(-0.7 * w, 0), (0.7 * w, 0), (1.05 * w, 0.9 * h), (-1.05 * w, 0.9 * h)], colour)
            b.rectangle(-1.1 * w, 0.82 * h, 1.1 * w, 0.95 * h, lighter(colour, 0.25), 0.04 * h)
            b.polygon([(-0.86 * w, 0.42 * h), (0.86 * w, 0.42 * h), (0.9 * w, 0.52 * h), (-0.9 * w, 0.52 * h)], second)

    return Drawing(Extent(-1.25 * w, 1.6 * w, -0.02 * h, 1.35 * h), paint, {"grip": (0, 0.5 * h)})


def slab(rng: Random, label: str, shared: bool) -> Drawing:
    """A table or a bench. Points: "left" and "right" end of the top."""
    w = rng.uniform(0.75, 0.95)
    h = rng.uniform(0.56, 0.66) if shared else {"table": 0.76, "bench": 0.5}[label]
    colour = rng.choice(WOOD)
    cloth = label == "table" and not shared
    back = label == "bench" and not shared
    linen = lighter(rng.choice(BRIGHT), 0.35)

    def paint(b: Brush) -> None:
        dark = lighter(colour, -0.3)
        if back:
            for y in (h + 0.16, h + 0.34):
                b.rectangle(-w, y, w, y + 0.12, lighter(colour, -0.12), 0.03)
        for x in (-w + 0.12, w - 0.22):
            b.rectangle(x, 0, x + 0.1, h + (0.44 if back else -0.04), dark)
            inner = x + (0.12 if x < 0 else -0.12)
            b.rectangle(inner, 0.08, inner + 0.08, h - 0.04, lighter(colour, -0.5))
        b.rectangle(-w, h - 0.1, w, h, colour, 0.03)
        b.rectangle(-w, h - 0.035, w, h, lighter(colour, 0.2), 0.02)
        if cloth:
            b.rectangle(-w * 0.98, h - 0.26, w * 0.98, h + 0.012, linen, 0.02)
            for k in range(-4, 5, 2):
                b.rectangle(w * (k - 0.4) / 5, h - 0.26, w * (k + 0.4) / 5, h + 0.012, lighter(linen, 0.5))

    extent = Extent(-w - 0.02, w + 0.02, -0.02, h + (0.5 if back else 0.03))
    return Drawing(extent, paint, {"left": (-w + 0.1, h), "right": (w - 0.1, h)})


def green(rng: Random, label: str, shared: bool) -> Drawing:
    """A tree or a bush."""
    h = rng.uniform(*{"tree": (2.1, 3.1), "bush": (0.95, 1.45)}[label])
    trunk = rng.uniform(0.16, 0.24) if shared else {"tree": 0.4, "bush": 0.04}[label]
    wide = rng.uniform(0.4, 0.5) * (1.6 if label == "bush" and not shared else 1)
    leaf, bark = rng.choice(brush.LEAF), rng.choice(WOOD)
    puffs = [(rng.uniform(-0.5, 0.5), rng.uniform(-0.5, 0.5), rng.uniform(0.42, 0.58)) for _ in range(5)]
    mid, rx, ry = (trunk + 1) / 2 * h, wide * h * 0.62, (1 - trunk) * h * 0.55

    def paint(b: Brush) -> None:
        t = 0.05 * h
        b.polygon([(-t, 0), (t, 0), (t * 0.6, mid), (-t * 0.6, mid)], bark)
        b.ellipse(0, mid, rx, ry * 0.9, lighter(leaf, -0.18))
        for x, y, r in puffs:
            b.ellipse(x * rx, mid + y * ry * 0.8, r * rx * 1.15, r * ry * 1.1, lighter(leaf, -0.06 + 0.1 * y))
        b.ellipse(-0.22 * rx, mid + 0.3 * ry, 0.6 * rx, 0.55 * ry, lighter(leaf, 0.1))
        b.ellipse(-0.32 * rx, mid + 0.45 * ry, 0.34 * rx, 0.28 * ry, lighter(leaf, 0.22))

    return Drawing(Extent(-1.5 * rx, 1.5 * rx, min(0.0, mid - 0.62 * (1 - trunk) * h), 1.06 * h), paint)


def car(rng: Random, label: str, shared: bool) -> Drawing:
    """A car without its wheels. Points: "wheel0", "wheel1"."""
    colour = rng.choice(brush.PAINT)
    roof, back = rng.choice(((1.38, -1.25), (1.38, -1.25), (1.62, -1.7)))  # the last is a van

    def paint(b: Brush) -> None:
        b.rectangle(-1.8, 0.34, 1.8, 0.9, colour, 0.2)
        b.polygon([(back, 0.88), (back + 0.28, roof), (0.45, roof), (1.0, 0.88)], lighter(colour, -0.04))
        b.polygon([(back + 0.24, 0.93), (back + 0.42, roof - 0.1), (-0.35, roof - 0.1), (-0.35, 0.93)], GLASS)
        b.polygon([(-0.25, 0.93), (-0.25, roof - 0.1), (0.38, roof - 0.1), (0.8, 0.93)], lighter(GLASS, 0.2))
        b.rectangle(-1.78, 0.3, 1.78, 0.42, lighter(colour, -0.35), 0.06)
        b.ellipse(1.68, 0.66, 0.1, 0.12, (255, 244, 200))
        b.rectangle(-1.82, 0.62, -1.7, 0.8, (190, 40, 40), 0.03)
        for x in (-1.08, 1.1):
            b.half(x, 0.3, 0.44, 0.44, DARK)

    return Drawing(Extent(-1.95, 1.95, 0.1, 1.72), paint, {"wheel0": (-1.08, 0.0), "wheel1": (1.1, 0.0)})


def person(rng: Random, label: str, shared: bool, pose: str = "stand", arm: str = "down") -> Drawing:
    """A person or a child. The origin is the ground under the hip, or the seat of those who sit or ride.

    Points: "hand" (the near one), "head" (top of the skull), "size" (of the body, of the head).
    """
    head = 0.165 * rng.uniform(*((1.12, 1.28) if shared else {"person": (0.95, 1.1), "child": (1.45, 1.7)}[label]))
    size = {"person": 1.0, "child": 0.62}[label] * rng.uniform(0.93, 1.07)
    hip, near, far = LEGS[pose]
    shoulder = (hip[0], hip[1] + 0.52)
    face = (shoulder[0] + 0.02, shoulder[1] + 0.05 + head * 0.86)
    near_arm = [(shoulder[0] + dx, shoulder[1] - 0.03 + dy) for dx, dy in ARMS[arm]]
    far_arm = [(shoulder[0] - dx, shoulder[1] - 0.03 + dy) for dx, dy in ARMS["down"]]
    skin, hair, top, trousers = (
        rng.choice(colours) for colours in (brush.SKIN, brush.HAIR, brush.CLOTHES, brush.TROUSERS)
    )
    long_hair = rng.random() < 0.45
    wide = rng.uniform(0.92, 1.12)

    def s(p: Point) -> Point:
        return p[0] * size, p[1] * size

    def paint(b: Brush) -> None:
        def leg(knee_foot: list[Point], dark: float) -> None:
            b.limb([s(hip), *map(s, knee_foot)], 0.17 * size * wide, lighter(trousers, dark), 0.12 * size)
            x, y = knee_foot[-1]
            b.ellipse(*s((x + 0.05, y - 0.005)), 0.115 * size, 0.05 * size, lighter(DARK, dark))

        def sleeve(joints: list[Point], dark: float) -> None:
            b.limb([s(shoulder), *map(s, joints)], 0.125 * size * wide, lighter(top, dark), 0.085 * size)
            b.ellipse(*s(joints[-1]), 0.055 * size, 0.055 * size, lighter(skin, dark / 2))

        def on_head(x: float, y: float, rx: float, ry: float, colour: tuple[int, int, int]) -> None:
            b.ellipse(
                (face[0] + x * head) * size, (face[1] + y * head) * size, rx * head * size, ry * head * size, colour
            )

        if long_hair:
            on_head(-0.3, -0.35, 1, 1.2, hair)
        sleeve(far_arm, -0.22)
        leg(far, -0.22)
        leg(near, 0)
        b.limb([s((shoulder[0], shoulder[1] - 0.06)), s(hip)], 0.33 * size * wide, top, 0.27 * size * wide)
        b.limb([s(shoulder), s(face)], 0.11 * size, lighter(skin, -0.12))
        on_head(0, 0, 0.94, 1, skin)
        b.half((face[0] - 0.03) * size, (face[1] + head * 0.22) * size, head * 0.98 * size, head * 0.84 * size, hair)
        on_head(-0.6, 0.1, 0.42, 0.5, hair)
        on_head(0.45, -0.05, 0.1, 0.13, (43, 35, 32))
        on_head(0.5, -0.5, 0.16, 0.06, lighter(skin, -0.4))
        sleeve(near_arm, -0.08)

    points = {"hand": s(near_arm[-1]), "head": s((face[0] - 0.01, face[1] + head * 0.45)), "size": (size, head / 0.165)}
    low = -0.03 if pose in ("stand", "walk") else -0.75
    return Drawing(Extent(-0.55 * size, 0.7 * size, low * size, (face[1] + 0.4) * size), paint, points)


def four_legs(rng: Random, label: str, shared: bool) -> Drawing:
    """A dog or a horse, looking right; the origin is the ground under its middle. Point: "back"."""
    s = {"horse": 1.35, "dog": 0.58}[label] * rng.uniform(0.92, 1.1)
    own = {"horse": (0.30, 0.52, 0.24), "dog": (0.17, 0.2, 0.15)}[label]
    nx, ny, muzzle = (rng.uniform(0.2, 0.27), rng.uniform(0.3, 0.4), rng.uniform(0.17, 0.21)) if shared else own
    tails = {"horse": [(-0.78, 0.7), (-0.8, 0.36)], "dog": [(-0.78, 1.05), (-0.72, 1.22)]}
    tail = [(-0.78, 0.74), (-0.8, 0.56)] if shared else tails[label]
    coat = rng.choice(brush.COAT)
    hair = lighter(coat, -0.45)
    step = rng.uniform(-0.1, 0.1)
    chest = (0.44, 0.84)
    px, py = chest[0] + nx, chest[1] + ny  # the poll, where head and neck meet

    def q(x: float, y: float) -> Point:
        return x * s, y * s

    def paint(b: Brush) -> None:
        for x, swing, dark in ((-0.42, -step, -0.3), (0.32, step, -0.3), (-0.54, step, 0), (0.44, -step, 0)):
            b.limb([q(x, 0.7), q(x + swing * 0.6, 0.38), q(x + swing, 0.05)], 0.17 * s, lighter(coat, dark), 0.1 * s)
            b.rectangle(*q(x + swing - 0.055, 0), *q(x + swing + 0.075, 0.07), lighter(hair, dark), 0.03 * s)
        b.limb([q(-0.61, 0.87), *(q(*p) for p in tail)], 0.11 * s, coat, 0.06 * s)
        b.limb([q(-0.5, 0.82), q(*chest)], 0.4 * s, coat)
        b.limb([q(chest[0] - 0.02, chest[1] + 0.02), q(px, py)], 0.32 * s, coat, 0.2 * s)
        if label == "horse" and not shared:
            b.limb([q(px - 0.08, py + 0.08), q(chest[0] - 0.13, chest[1] + 0.15)], 0.11 * s, hair, 0.08 * s)
        nose = py - 0.1 - muzzle * 0.25
        b.limb([q(px - 0.02, py + 0.02), q(px + muzzle, nose)], 0.22 * s, coat, 0.15 * s)
        b.ellipse(*q(px + muzzle + 0.045, nose), 0.035 * s, 0.04 * s, DARK)
        if label == "dog" and not shared:
            b.limb([q(px - 0.05, py + 0.06), q(px - 0.12, py - 0.12)], 0.11 * s, hair, 0.09 * s)
        else:
            b.polygon([q(px - 0.1, py + 0.05), q(px - 0.05, py + 0.24), q(px + 0.03, py + 0.08)], hair)
        b.ellipse(*q(px + 0.07, py + 0.03), 0.024 * s, 0.026 * s, DARK)

    return Drawing(Extent(-0.95 * s, 1.15 * s, -0.02 * s, 1.75 * s), paint, {"back": q(-0.08, 1.0)})


FAMILIES: dict[str, tuple[Callable[..., Drawing], tuple[str, ...]]] = {
    "round": (round_thing, ("wheel", "plate", "ball", "balloon")),
    "dome": (dome, ("hat", "bowl")),
    "tin": (tin, ("cup", "bucket")),
    "slab": (slab, ("table", "bench")),
    "four legs": (four_legs, ("dog", "horse")),
    "green": (green, ("tree", "bush")),
    "people": (person, ("person", "child")),
}
"""Look-alikes and the function that draws them. No other thing looks like a car."""
DRAW = {label: function for function, labels in FAMILIES.values() for label in labels} | {"car": car}
"""Label -> drawing function."""
SEEN = ("above", "behind", "in front of", "near", "under")
"""Relations visible in boxes and depths; the others come from the grammar alone."""
KNOWN = ("has", "holding", "on", "riding", "sitting on", "wearing")


@cache
def rendered_vocabulary() -> Vocabulary:
    """17 things and 11 relations, in the order of the alphabet."""
    return Vocabulary(sorted(DRAW), sorted(SEEN + KNOWN), "rendered")
