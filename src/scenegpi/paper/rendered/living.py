"""People (person, child) and four-legged animals (dog, horse)."""

from __future__ import annotations

from random import Random

from scenegpi.paper.rendered.brush import Brush, Extent, Point, lighter
from scenegpi.paper.rendered.drawing import CLOTHES, COAT, DARK, HAIR, SKIN, TROUSERS, Drawing

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
    skin, hair, top, trousers = (rng.choice(colours) for colours in (SKIN, HAIR, CLOTHES, TROUSERS))
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
    coat = rng.choice(COAT)
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
