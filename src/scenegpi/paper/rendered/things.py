"""The things of rendered scenes, their families of look-alikes, and their relations. The order of the names never
changes: files and models refer to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from scenegpi.paper.rendered.drawing import Drawing
from scenegpi.paper.rendered.living import four_legs, person
from scenegpi.paper.rendered.objects import car, dome, green, round_thing, slab, tin
from scenegpi.vocabulary import Vocabulary

FAMILIES: dict[str, tuple[Callable[..., Drawing], tuple[str, ...]]] = {
    "round": (round_thing, ("wheel", "plate", "ball", "balloon")),
    "dome": (dome, ("hat", "bowl")),
    "tin": (tin, ("cup", "bucket")),
    "slab": (slab, ("table", "bench")),
    "four legs": (four_legs, ("dog", "horse")),
    "green": (green, ("tree", "bush")),
    "people": (person, ("person", "child")),
}
"""Look-alikes and the function that draws them. A car looks like nothing else."""
DRAW = {label: function for function, labels in FAMILIES.values() for label in labels} | {"car": car}
"""Label -> function of a `Random`, the label, and whether the look is the one that the family shares."""
SEEN = ("above", "behind", "in front of", "near", "under")
"""Relations that the boxes and depths show; the others only the grammar knows."""
KNOWN = ("has", "holding", "on", "riding", "sitting on", "wearing")


@cache
def rendered_vocabulary() -> Vocabulary:
    """17 things and 11 relations, in the order of the alphabet."""
    return Vocabulary(sorted(DRAW), sorted(SEEN + KNOWN), "rendered")
