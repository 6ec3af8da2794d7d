"""What a drawing is, and the two ways to draw a thing: in its own look, or in the look its family shares.

A family is a set of things drawn by one function (round things, domes, tins, cases, slabs, four-legged animals, ...).
Each member has its own ranges of shape, colour and detail; the shared look draws all of them from one common range and
leaves the telling detail out, so that the picture of the box says which family it is but not which member.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from scenegpi.paper.rendered.brush import Brush, Extent, Point


@dataclass(frozen=True)
class Drawing:
    """How to paint a thing in its own metres.

    `points` are named places on it (a hand, a seat, a roof) where other things are put.
    """

    extent: Extent
    paint: Callable[[Brush], None]
    points: dict[str, Point] = field(default_factory=dict)


FAMILIES: dict[str, tuple[str, ...]] = {
    "round": ("wheel", "plate", "ball", "clock", "balloon"),
    "dome": ("hat", "bowl", "umbrella"),
    "tin": ("cup", "bucket", "lamp"),
    "case": ("bag", "box"),
    "slab": ("table", "bench"),
    "four legs": ("dog", "horse"),
    "flyer": ("bird", "kite"),
    "pane": ("window", "picture"),
    "green": ("tree", "bush"),
    "people": ("person", "child"),
}
"""The look-alikes. A car, a boat, a bike and a building look like nothing else."""
