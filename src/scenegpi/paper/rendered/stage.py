"""A scene under construction: a place seen through a camera, the things in it, and their relations.

Perspective: what stands at height y of the picture has (y - horizon) / camera pixels per metre. Camera and horizon
differ from scene to scene, so the size of a box alone does not tell the size of the thing; the sizes of its
neighbours do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, log
from random import Random
from typing import NamedTuple

from scenegpi.paper.rendered.brush import Drawing, Frame, Point
from scenegpi.paper.rendered.things import DRAW

SIZES = ((640, 480), (640, 480), (640, 427), (480, 640), (512, 512), (640, 400))
SETTINGS = ("park", "street", "room")


@dataclass(frozen=True)
class SceneOptions:
    """The difficulty of the scenes.

    Args:
        lookalike: fraction of a family's things that are drawn in the look shared by all its members.
        damage: fraction of the things that are out of focus; also scales blur and noise of the whole picture.
    """

    lookalike: float = 0.85
    damage: float = 0.3

    def __post_init__(self) -> None:
        for name in ("lookalike", "damage"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}: expected a number from 0 to 1, found {getattr(self, name)}")


@dataclass
class Thing:
    """One thing to be painted. `order`: greater is nearer; `depth`: the y where it stands; `part_of`: its whole."""

    number: int
    label: str
    drawing: Drawing
    frame: Frame
    order: float
    depth: float
    grounded: bool
    floating: bool = False
    part_of: int | None = None

    def point(self, name: str) -> Point:
        """A named place on it, in pixels."""
        return self.frame.at(*self.drawing.points[name])


class Relation(NamedTuple):
    """Two things by number; `weight` is how likely an annotator is to write it down."""

    subject: int
    predicate: str
    object: int
    weight: float


@dataclass
class Stage:
    """The scene so far. `strings` are painted, not annotated: from one end to the other, with their order."""

    rng: Random
    options: SceneOptions
    size: tuple[int, int]
    setting: str
    horizon: float
    camera: float
    near: float
    far: float
    things: list[Thing] = field(default_factory=list)
    strings: list[tuple[Point, Point, float]] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    taken: list[tuple[float, float, float]] = field(default_factory=list)

    def frame(self, x: float, y: float) -> Frame:
        """The frame of a thing that stands at (x, y), facing left or right at random."""
        return Frame(x, y, max((y - self.horizon) / self.camera, 8.0), self.rng.random() < 0.5)

    def spot(self, width: float) -> Frame:
        """A free place on the ground for something of this width in metres: a few are tried, the emptiest is taken."""

        def crowd(frame: Frame) -> float:
            half = width * frame.scale / 2
            left, right = frame.x - half, frame.x + half
            common = ((max(min(right, b) - max(left, a), 0.0), abs(frame.y - y)) for a, b, y in self.taken)
            return sum(wide / (0.4 + apart / 60) for wide, apart in common) / half

        tried = []
        for _ in range(7):
            frame = self.frame(self.size[0] / 2, self.far + (self.near - self.far) * self.rng.random() ** 0.75)
            room = max(self.size[0] / 2 - 0.46 * width * frame.scale, 0)
            tried.append(Frame(frame.x + self.rng.uniform(-room, room), frame.y, frame.scale, frame.flip))
        best = min(tried, key=crowd)
        half = width * best.scale / 2
        self.taken.append((best.x - half, best.x + half, best.y))
        return best

    def add(self, label: str, frame: Frame, on: Thing | None = None, nearer: float = 0.05, **pose: str) -> Thing:
        """Puts a thing on the ground, or on (at, in the hand of) another one and a little nearer than that."""
        shared = self.rng.random() < self.options.lookalike
        drawing = DRAW[label](self.rng, label, shared, **pose)
        depth, order = (frame.y, frame.y) if on is None else (on.depth, on.order + nearer)
        self.things.append(Thing(len(self.things), label, drawing, frame, order, depth, on is None))
        return self.things[-1]

    def relate(self, subject: Thing, predicate: str, object_: Thing, weight: float = 0.92) -> None:
        """Notes a relation."""
        self.relations.append(Relation(subject.number, predicate, object_.number, weight))


def open_stage(rng: Random, options: SceneOptions) -> Stage:
    """An empty stage: a size, a setting, a camera."""
    size = rng.choice(SIZES)
    setting = rng.choice(SETTINGS)
    h = size[1]
    zoom = exp(rng.uniform(log(98), log(235))) * h / 480  # pixels per metre for what is nearest
    near = h * rng.uniform(0.9, 0.97)
    if setting == "room":
        floor = h * rng.uniform(0.56, 0.68)
        at_wall = zoom / rng.uniform(1.35, 1.8)
        camera = (near - floor) / (zoom - at_wall)
        return Stage(rng, options, size, setting, floor - camera * at_wall, camera, near, floor + 12)
    horizon = h * rng.uniform(0.36, 0.56)
    camera = (near - horizon) / zoom
    far = horizon + max(zoom * rng.uniform(0.4, 0.55), 48.0) * camera
    return Stage(rng, options, size, setting, horizon, camera, near, min(far, near - 30))
