"""Graphs in a row, cut into groups by a budget of pairs: no padding, bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from scenegpi.graph import SceneGraph

PAIRS = 1 << 14
IMAGES = 256


def grouped(graphs: Iterable[SceneGraph], pairs: int = PAIRS, images: int = IMAGES) -> Iterator[list[SceneGraph]]:
    """Groups of at most `images` graphs with together at most `pairs` ordered pairs; one graph may have more."""
    some: list[SceneGraph] = []
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
