"""What a drawing is, and the colours of things.

A family is a set of things drawn by one function (round things, domes, tins, cases, slabs, four-legged animals, ...).
Each member has its own ranges of shape, colour and detail; the shared look draws all of them from one common range and
leaves the telling detail out, so that the picture of the box says which family it is but not which member.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from scenegpi.paper.rendered.brush import Brush, Colour, Extent, Point


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
