"""A scene while it is being put together: a place seen through a camera, the things in it, and what was done with them.

Perspective: what stands at height y of the picture has (y - horizon) / camera pixels per metre. Camera and horizon
differ from scene to scene, so the size of a box alone does not tell the size of the thing; the sizes of its
neighbours do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, log
from random import Random

from scenegpi.paper.rendered.brush import Frame, Point
from scenegpi.paper.rendered.drawing import Drawing
from scenegpi.paper.rendered.palette import Colour

SIZES = ((640, 480), (640, 480), (640, 427), (480, 640), (512, 512), (640, 400))
SETTINGS = ("park", "street", "room", "shore", "farm")


@dataclass(frozen=True)
class SceneOptions:
    """How hard the scenes are.

    Args:
        lookalike: share of the things of a family that are drawn in the look all its members share.
        damage: share of the things that are out of focus; also scales blur and noise of the whole picture.
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

    label: str
    drawing: Drawing
    frame: Frame
    order: float
    depth: float
    shadow: float = 0.0
    part_of: int | None = None
    floating: bool = False


@dataclass
class Line:
    """A string, a pole, a cord: painted, not annotated. It fades towards its end."""

    start: Point
    end: Point
    width: float
    colour: Colour
    order: float
    fades: bool = False


@dataclass
class Relation:
    """What the grammar knows about two things; `weight` is how likely an annotator is to write it down."""

    subject: int
    predicate: str
    object: int
    weight: float


@dataclass
class Stage:
    """The scene so far."""

    rng: Random
    options: SceneOptions
    size: tuple[int, int]
    setting: str
    horizon: float
    camera: float
    near: float
    far: float
    things: list[Thing] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    taken: list[tuple[float, float, float]] = field(default_factory=list)

    def scale(self, y: float) -> float:
        """Pixels per metre for what stands at height y."""
        return max((y - self.horizon) / self.camera, 8.0)

    def shared(self, more: float = 0.0) -> bool:
        """Whether the next thing is drawn in its family's shared look."""
        return self.rng.random() < min(self.options.lookalike + more, 1.0)

    def spot(self, width: float, near: float | None = None, far: float | None = None) -> Frame:
        """A free place on the ground for something of this width in metres: a few are tried, the emptiest is taken."""
        far, near = self.far if far is None else far, self.near if near is None else near
        best, least = None, float("inf")
        for _ in range(7):
            y = far + (near - far) * self.rng.random() ** 0.75
            scale = self.scale(y)
            half = width * scale / 2
            w = self.size[0]
            x = w / 2 if 2 * half > w * 0.9 else self.rng.uniform(half * 0.92, w - half * 0.92)
            crowd = sum(_overlap(x - half, x + half, a, b) / (0.4 + abs(y - d) / 60) for a, b, d in self.taken)
            crowd /= 2 * half
            if crowd < least:
                best, least = (x, y, scale, half), crowd
        assert best is not None
        x, y, scale, half = best
        self.taken.append((x - half, x + half, y))
        return Frame(x, y, scale, self.rng.random() < 0.5)

    def add(self, label: str, drawing: Drawing, frame: Frame, **given: float | int | bool | None) -> int:
        """Puts a thing on the stage and returns its number."""
        depth = given.pop("depth", None)
        order = given.pop("order", None)
        depth = frame.y if depth is None else float(depth)
        self.things.append(
            Thing(label, drawing, frame, depth if order is None else float(order), depth, **given)  # type: ignore[arg-type]
        )
        return len(self.things) - 1

    def relate(self, subject: int, predicate: str, object_: int, weight: float = 0.92) -> None:
        """Notes a relation."""
        self.relations.append(Relation(subject, predicate, object_, weight))

    def point(self, thing: int, name: str) -> Point:
        """A named place on a thing, in pixels."""
        t = self.things[thing]
        return t.frame.at(*t.drawing.points[name])


def _overlap(a: float, b: float, c: float, d: float) -> float:
    return max(min(b, d) - max(a, c), 0.0)


def open_stage(rng: Random, options: SceneOptions) -> Stage:
    """An empty stage: a size, a setting, a camera."""
    size = SIZES[rng.randrange(len(SIZES))]
    setting = rng.choices(SETTINGS, (3, 3, 4, 2, 2))[0]
    h = size[1]
    zoom = exp(rng.uniform(log(98), log(235))) * h / 480  # pixels a metre for what is nearest
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
