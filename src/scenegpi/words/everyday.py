"""Everyday names beyond a model's own labels: Visual Genome's 150 include no couch, and call every tv a screen.

Each everyday name has a label that stands for it where only labels are used: its broader one ("tv" is a screen), or
else the label that is used most similarly ("couch": a chair). Conversely, `COCO` lists the labels that a box of COCO's
80 kinds may have.
"""

from __future__ import annotations

from collections.abc import Sequence

_BROADER = """
traffic light: light; stop sign: sign; backpack, handbag, suitcase: bag; snowboard: board; baseball glove: glove;
wine glass: glass; apple: fruit; broccoli, carrot: vegetable; sandwich, hot dog, donut, cake: food; tv: screen;
teddy bear: bear
"""
_ALIKE = """
fire hydrant, parking meter: post; frisbee: plate; sports ball: fruit; baseball bat: racket;
knife, spoon, scissors: fork; couch: chair; mouse, remote: phone; keyboard: laptop;
microwave, oven, toaster, refrigerator: cabinet; hair drier, toothbrush: handle
"""
_COCO = """
person: person man woman boy girl child kid guy lady men people player skier; bicycle: bike; car: car vehicle;
motorcycle: motorcycle bike; airplane: airplane plane; bus: bus vehicle; truck: truck vehicle; bench: bench seat;
bird: bird animal; cat: cat animal; dog: dog animal; horse: horse animal; sheep: sheep animal; cow: cow animal;
elephant: elephant animal; bear: bear animal; zebra: zebra animal; giraffe: giraffe animal; skis: ski;
skateboard: skateboard board; surfboard: surfboard board; tennis racket: racket; cup: cup glass;
banana: banana fruit; orange: orange fruit; pizza: pizza food; chair: chair seat; potted plant: plant;
dining table: table desk counter; cell phone: phone
"""


def _entries(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for entry in text.replace("\n", " ").split(";"):
        names, _, labels = entry.partition(":")
        found |= {name.strip(): tuple(labels.split()) for name in names.split(",")}
    return found


BROADER = {name: label for name, (label,) in _entries(_BROADER).items()}
"""Everyday name -> the label that it is a kind of."""
STANDS_FOR = {**BROADER, **{name: label for name, (label,) in _entries(_ALIKE).items()}}
"""Everyday name -> the label that stands for it."""
COCO = _entries(_COCO)
"""COCO's name -> labels that its boxes may have, if not just that name."""


def everyday_names(labels: Sequence[str]) -> tuple[str, ...]:
    """The everyday names that are not among these labels, though the label that stands for them is."""
    have = set(labels)
    return tuple(name for name, label in STANDS_FOR.items() if name not in have and label in have)


def may_be(name: str, names: Sequence[str]) -> tuple[str, ...]:
    """The names, among labels and everyday names, that a box may have which another annotation calls `name`."""
    return tuple(each for each in COCO.get(name, (name,)) if each in set(names))


def includes(label: str, names: Sequence[str]) -> tuple[str, ...]:
    """The names that a box annotated with a label may have: the label itself and its kinds."""
    return tuple(each for each in names if each == label or BROADER.get(each) == label)
