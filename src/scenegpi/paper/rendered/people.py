"""A person or a child: a skeleton for each pose, then clothes. A child is smaller; its own look has a large head."""

from __future__ import annotations

from random import Random

from scenegpi.paper.rendered.brush import Brush, Extent, Point
from scenegpi.paper.rendered.drawing import Drawing
from scenegpi.paper.rendered.palette import CLOTHES, HAIR, SHOES, SKIN, TROUSERS, lighter, pick

HEIGHT = {"person": 1.7, "child": 1.05}
LEGS: dict[str, tuple[Point, list[Point], list[Point]]] = {  # hip, then knee and foot of the near and the far leg
    "stand": ((0, 0.84), [(0.09, 0.44), (0.1, 0.05)], [(-0.09, 0.44), (-0.1, 0.05)]),
    "walk": ((0, 0.84), [(0.17, 0.46), (0.27, 0.07)], [(-0.08, 0.44), (-0.3, 0.1)]),
    "sit": ((0, 0.54), [(0.4, 0.54), (0.42, 0.05)], [(0.36, 0.52), (0.34, 0.05)]),
    "ride": ((0, 0.05), [(0.2, -0.24), (0.1, -0.62)], [(0.16, -0.2), (0.06, -0.5)]),
    "cycle": ((0, 0.05), [(0.3, -0.14), (0.14, -0.55)], [(0.2, -0.26), (0.26, -0.62)]),
}
ARMS: dict[str, list[Point]] = {  # elbow and hand, from the shoulder
    "down": [(0.13, -0.26), (0.16, -0.52)],
    "forward": [(0.2, -0.24), (0.46, -0.26)],
    "up": [(0.24, 0.02), (0.34, 0.34)],
    "side": [(0.16, -0.24), (0.27, -0.5)],
    "reins": [(0.18, -0.24), (0.44, -0.2)],
}


def person(rng: Random, label: str, shared: bool, pose: str, arm: str = "down") -> Drawing:
    """A person or child. The origin is the ground under the hip, or the saddle for the riding poses.

    Points: "hand" (the near one), "head" (top of the skull), "face" (its centre), "hip".
    """
    ranges = {"person": (0.95, 1.1), "child": (1.45, 1.7)}
    head = 0.165 * rng.uniform(*((1.12, 1.28) if shared else ranges[label]))
    size = HEIGHT[label] / 1.7 * rng.uniform(0.93, 1.07)
    lean = {"ride": 0.03, "cycle": 0.16}.get(pose, 0.0)
    hip, near, far = LEGS[pose]
    shoulder = (hip[0] + lean, hip[1] + 0.52)
    neck = (shoulder[0] + lean * 0.4, shoulder[1] + 0.05)
    face = (neck[0] + 0.02, neck[1] + head * 0.86)
    hand_arm = [(shoulder[0] + dx, shoulder[1] - 0.03 + dy) for dx, dy in ARMS[arm]]
    other = "down" if pose in ("stand", "walk", "sit") else arm
    far_arm = [(shoulder[0] + dx * (-1 if other == "down" else 0.9), shoulder[1] - 0.03 + dy) for dx, dy in ARMS[other]]
    skin, hair, top = pick(rng, SKIN), pick(rng, HAIR), pick(rng, CLOTHES)
    trousers, shoes = pick(rng, TROUSERS), pick(rng, SHOES)
    skirt = rng.random() < 0.3 and pose in ("stand", "walk")
    long_hair, sleeve = rng.random() < 0.45, rng.random() < 0.6
    wide = rng.uniform(0.92, 1.12)

    def s(p: Point) -> Point:
        return p[0] * size, p[1] * size

    def paint(b: Brush) -> None:
        def leg(knee_foot: list[Point], dark: float) -> None:
            cloth = lighter(skin if skirt else trousers, dark)
            b.limb([s(hip), *map(s, knee_foot)], 0.17 * size * wide, cloth, 0.12 * size)
            x, y = knee_foot[-1]
            b.ellipse((x + 0.05) * size, (y - 0.005) * size, 0.115 * size, 0.05 * size, lighter(shoes, dark))

        def sleeved(joints: list[Point], dark: float) -> None:
            cloth = lighter(top, dark)
            b.limb([s(shoulder), *map(s, joints)], 0.125 * size * wide, cloth if sleeve else skin, 0.085 * size)
            if not sleeve:
                b.limb([s(shoulder), s(joints[0])], 0.135 * size * wide, cloth, 0.12 * size)
            b.ellipse(*s(joints[-1]), 0.055 * size, 0.055 * size, lighter(skin, dark / 2))

        if long_hair:
            b.ellipse((face[0] - 0.05) * size, (face[1] - head * 0.35) * size, head * size, head * 1.2 * size, hair)
        sleeved(far_arm, -0.22)
        leg(far, -0.22)
        leg(near, 0)
        b.limb([s((shoulder[0], shoulder[1] - 0.06)), s(hip)], 0.33 * size * wide, top, 0.27 * size * wide)
        if skirt:
            low = hip[1] - 0.32
            b.polygon([s((-0.15, hip[1] + 0.08)), s((0.15, hip[1] + 0.08)), s((0.27, low)), s((-0.27, low))], trousers)
        b.limb([s(shoulder), s(neck)], 0.11 * size, lighter(skin, -0.12))
        b.ellipse(*s(face), head * 0.94 * size, head * size, skin)
        hx, hy = face[0] * size, face[1] * size
        b.half(hx - 0.03 * size, hy + head * 0.22 * size, head * 0.98 * size, head * 0.84 * size, hair)
        b.ellipse(hx - head * 0.6 * size, hy + head * 0.1 * size, head * 0.42 * size, head * 0.5 * size, hair)
        if b.frame.scale * size > 70:
            b.ellipse(hx + head * 0.45 * size, hy - head * 0.05 * size, 0.016 * size, 0.022 * size, (43, 35, 32))
            b.limb(
                [(hx + head * 0.3 * size, hy - head * 0.5 * size), (hx + head * 0.62 * size, hy - head * 0.44 * size)],
                0.02 * size,
                lighter(skin, -0.4),
            )
            b.ellipse(hx + head * 0.2 * size, hy - head * 0.3 * size, 0.04 * size, 0.028 * size, lighter(skin, -0.1))
        sleeved(hand_arm, -0.08)

    low = -0.75 if pose in ("ride", "cycle") else -0.03
    points = {
        "hand": s(hand_arm[-1]),
        "head": s((face[0] - 0.01, face[1] + head * 0.45)),
        "hip": s(hip),
        "face": s(face),
    }
    points["size"] = (size, head / 0.165)
    return Drawing(Extent(-0.55 * size, 0.7 * size, low * size, (face[1] + 0.4) * size), paint, points)
