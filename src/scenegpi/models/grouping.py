"""Images in a row, cut into groups by a budget of pairs: no padding, bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

Image = TypeVar("Image", bound=Sized)
PAIRS = 1 << 14
IMAGES = 256


def grouped(graphs: Iterable[Image], pairs: int = PAIRS, images: int = IMAGES) -> Iterator[list[Image]]:
    """Groups of at most `images` graphs with together at most `pairs` ordered pairs; one graph may have more."""
    some: list[Image] = []
    held = 0
    for graph in graphs:
        size = len(graph) * (len(graph) - 1)
        if some and (held + size > pairs or len(some) >= images):
            yield some
            some, held = [], 0
        some.append(graph)
        held += size
    if some:
        yield some
