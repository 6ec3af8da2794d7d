"""One rendered scene: a seed in, a picture and its scene graph out."""

from __future__ import annotations

from random import Random

from PIL import Image

from scenegpi.graph import SceneGraph
from scenegpi.paper.rendered.annotate import annotate, visible_boxes
from scenegpi.paper.rendered.grammar import imagine
from scenegpi.paper.rendered.paint import damage, paint
from scenegpi.paper.rendered.stage import SceneOptions
from scenegpi.paper.rendered.things import rendered_vocabulary


def render_scene(
    seed: int, index: int = 0, options: SceneOptions | None = None, image_id: int | None = None
) -> tuple[Image.Image, SceneGraph]:
    """The scene number `index` of a seed: an RGB picture and its graph. It depends on nothing else.

    Every scene has at least two boxes and one relation; where the dice give less they are thrown again.
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
    rng.shuffle(order)  # the order of the grammar must not tell anything
    place = {thing: k for k, thing in enumerate(order)}
    number = index + 1 if image_id is None else image_id
    graph = SceneGraph(
        [boxes[k] for k in order],
        [stage.things[k].label for k in order],
        vocabulary,
        sorted({(place[s], place[o], vocabulary.predicate_index[p]) for s, p, o in relations}),
        image_id=number,
        file=f"{number}.jpg",
        width=stage.size[0],
        height=stage.size[1],
    )
    return damage(painted.image, rng, options.damage), graph
