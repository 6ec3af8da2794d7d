"""The grammar: which gatherings a setting has. A scene is a stage and two to five of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from scenegpi.paper.rendered.company import cyclist, rider, walker
from scenegpi.paper.rendered.places import flock, gathering, grove, house, mooring, parking, wall
from scenegpi.paper.rendered.stage import SceneOptions, Stage, open_stage

Group = Callable[[Stage], object]
table, bench = partial(gathering, label="table"), partial(gathering, label="bench")

ALWAYS: dict[str, tuple[tuple[Group, float], ...]] = {  # with their chance
    "park": ((grove, 0.9), (flock, 0.3)),
    "street": ((house, 0.85), (flock, 0.2)),
    "room": ((wall, 0.9),),
    "shore": ((mooring, 0.85), (flock, 0.3)),
    "farm": ((house, 0.4), (grove, 0.6), (flock, 0.25)),
}
CHOICES: dict[str, tuple[tuple[Group, float], ...]] = {  # with their weight
    "park": ((walker, 3.0), (bench, 2.2), (table, 2.2), (rider, 1.0), (cyclist, 1.0), (grove, 0.6)),
    "street": ((walker, 2.5), (parking, 2.6), (bench, 1.2), (table, 1.0), (cyclist, 1.2), (grove, 0.8)),
    "room": ((table, 3.0), (bench, 1.6), (walker, 2.0), (cyclist, 0.2)),
    "shore": ((walker, 2.5), (bench, 1.5), (table, 1.4), (mooring, 0.8), (cyclist, 0.3)),
    "farm": ((rider, 3.0), (walker, 2.0), (bench, 0.9), (table, 1.0), (parking, 0.5)),
}


def imagine(rng: Random, options: SceneOptions) -> Stage:
    """A whole scene, not yet painted."""
    stage = open_stage(rng, options)
    for group, chance in ALWAYS[stage.setting]:
        if rng.random() < chance:
            group(stage)
    groups, weights = zip(*CHOICES[stage.setting], strict=True)
    wanted = rng.choices((6, 8, 10, 12, 15), (2, 4, 4, 2, 1))[0]
    least = 3 if stage.scale(stage.near) < 0.28 * stage.size[1] else 2  # a wide view has room for more
    for k, group in enumerate(rng.choices(groups, weights, k=6)):
        if k >= least and len([t for t in stage.things if t.label]) >= wanted - 2:
            break
        group(stage)
    return stage
