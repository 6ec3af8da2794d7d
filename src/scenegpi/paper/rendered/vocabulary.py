"""The names of rendered scenes, and how large each thing is. The order never changes: files and models refer to it."""

from __future__ import annotations

from functools import cache

from scenegpi.vocabulary import Vocabulary

OBJECTS = (
    "ball",
    "balloon",
    "bag",
    "bench",
    "bike",
    "bird",
    "boat",
    "bowl",
    "box",
    "bucket",
    "building",
    "bush",
    "car",
    "child",
    "clock",
    "cup",
    "dog",
    "hat",
    "horse",
    "kite",
    "lamp",
    "person",
    "picture",
    "plate",
    "table",
    "tree",
    "umbrella",
    "wheel",
    "window",
)
PREDICATES = (
    "above",
    "behind",
    "has",
    "holding",
    "in",
    "in front of",
    "near",
    "on",
    "riding",
    "sitting on",
    "under",
    "wearing",
)


@cache
def rendered_vocabulary() -> Vocabulary:
    """29 things and 12 relations."""
    return Vocabulary(OBJECTS, PREDICATES, "rendered")
