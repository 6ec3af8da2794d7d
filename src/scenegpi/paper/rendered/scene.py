"""One rendered scene: a seed in, a picture and its scene graph out.

The graph holds what an annotator would write down: a tight box around the visible part of each thing, and some of the
relations.
"""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from scenegpi.graph import SceneGraph
from scenegpi.paper.rendered.grammar import imagine
from scenegpi.paper.rendered.paint import Painted, damage, paint
from scenegpi.paper.rendered.stage import Relation, SceneOptions, Stage
from scenegpi.paper.rendered.things import rendered_vocabulary

SEEN, SIDE = 0.22, 9  # a thing is annotated if this share of it is visible and its box is this wide and high, in pixels
Box = tuple[int, int, int, int]


def render_scene(seed: int, index: int = 0, options: SceneOptions | None = None) -> tuple[Image.Image, SceneGraph]:
    """The scene number `index` of a seed: an RGB picture and its graph. It depends on nothing else.

    Every scene has at least two boxes and one relation; otherwise it is drawn again.
    """
    options = options or SceneOptions()
    for attempt in range(100):
        rng = Random(f"scenegpi {seed} {index} {attempt}")
        stage = imagine(rng, options)
        painted = paint(stage, rng)
        boxes = visible_boxes(stage, painted)
        relations = annotate(stage, boxes, rng)
        if len(boxes) >= 3 and relations:
            break
    vocabulary = rendered_vocabulary()
    order = list(boxes)
    rng.shuffle(order)  # the order of the grammar must not reveal anything
    place = {thing: k for k, thing in enumerate(order)}
    labels = [stage.things[k].label for k in order]
    rows = sorted({(place[s], place[o], vocabulary.predicate_index[p]) for s, p, o in relations})
    about: dict[str, Any] = {"image_id": index + 1, "file": f"{index + 1}.jpg"}
    about["width"], about["height"] = stage.size
    graph = SceneGraph([boxes[k] for k in order], labels, vocabulary, rows, **about)
    return damage(painted.image, rng, options.damage), graph


def visible_boxes(stage: Stage, painted: Painted) -> dict[int, Box]:
    """Thing -> x1, y1, x2, y2 (x2, y2 just past the last pixel) of its visible part, with its own parts."""
    seen = np.bincount(painted.owner[painted.owner >= 0], minlength=len(stage.things))
    extents = {k: _extent(painted.owner == k) for k in np.flatnonzero(seen).tolist()}
    for thing in stage.things:
        if thing.part_of in extents and thing.number in extents:
            a, b = extents[thing.part_of], extents[thing.number]
            extents[thing.part_of] = (min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]))
    return {
        k: box
        for k, box in sorted(extents.items())
        if seen[k] >= SEEN * painted.full[k] and min(box[2] - box[0], box[3] - box[1]) >= SIDE
    }


def _extent(mask: NDArray[np.bool_]) -> Box:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def annotate(stage: Stage, boxes: dict[int, Box], rng: Random) -> list[tuple[int, str, int]]:
    """The annotated relations: most of those in the grammar, and a few of the visual ones (near, behind, ...)."""
    known = [r for r in stage.relations if r.subject in boxes and r.object in boxes]
    taken = {frozenset((r.subject, r.object)) for r in known}
    found = [r for r in _seen(stage, boxes, rng) if frozenset((r.subject, r.object)) not in taken]
    chosen = [r for r in known + found if rng.random() < r.weight]
    return [(s, p, o) for s, p, o, _ in chosen if _holds(p, boxes[s], boxes[o])]


def _common(a: Box, b: Box) -> tuple[int, int]:
    """Width and height that two boxes share; negative: how far they are apart."""
    return min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])


def _seen(stage: Stage, boxes: dict[int, Box], rng: Random) -> list[Relation]:
    """Visual relations. One of the two equivalent forms is drawn (A behind B, B in front of A)."""
    found = []
    for pair in combinations(boxes, 2):
        a, b = pair if rng.random() < 0.5 else pair[::-1]
        first, second = stage.things[a], stage.things[b]
        if first.part_of is not None or second.part_of is not None:
            continue
        metre = (first.frame.scale + second.frame.scale) / 2
        wide, high = _common(boxes[a], boxes[b])
        apart = (first.depth - second.depth) / metre
        if first.floating != second.floating:
            up, low = (a, b) if first.floating else (b, a)
            if wide > -0.4 * metre and -4 <= boxes[low][1] - boxes[up][3] < 1.5 * metre:
                found.append(Relation(*((up, "above", low) if rng.random() < 0.6 else (low, "under", up)), 0.3))
        elif abs(apart) > 0.28 and wide > 0.3 * min(boxes[k][2] - boxes[k][0] for k in pair) and high > 0:
            found.append(Relation(a, "in front of" if apart > 0 else "behind", b, 0.24))
        elif abs(apart) < 0.6 and max(-wide, -high) < 0.5 * metre:
            found.append(Relation(a, "near", b, 0.08))
    return found


def _holds(predicate: str, subject: Box, object_: Box) -> bool:
    """Whether the visible parts of the two boxes still show the relation."""
    wide, high = _common(subject, object_)
    lower = (subject[1] + subject[3]) - (object_[1] + object_[3])
    if predicate in ("near", "holding"):
        return True
    if predicate in ("above", "under"):
        return lower < 0 if predicate == "above" else lower > 0
    if predicate == "wearing":
        return wide > 0 and high > -6 and lower > 0
    if predicate in ("riding", "sitting on"):
        return wide > 0 and high > 0 and lower < 0
    return wide > 0 and high > (-4 if predicate == "on" else 0)
