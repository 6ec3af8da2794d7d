"""Small graphs for stores and servers."""

from __future__ import annotations

from scenegpi import SceneGraph, Vocabulary

WORDS = Vocabulary(["man", "horse", "car"], ["on", "near"])


def scene(number, labels=(0, 1), **fields) -> SceneGraph:
    """A man on a horse, or on what `labels` say."""
    boxes = [[10, 10, 60, 90], [20, 50, 95, 99]]
    about = {"image_id": number, "file": f"{number}.png", "width": 100, "height": 100}
    return SceneGraph(boxes, labels, WORDS, [[0, 1, 0]], **about | fields)
