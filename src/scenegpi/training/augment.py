"""What is done to a training image, anew each epoch: it is mirrored, and boxes are left out."""

from __future__ import annotations

import numpy as np

from scenegpi.features.arrays import image_size
from scenegpi.graph import SceneGraph


def mirror_image(graph: SceneGraph) -> SceneGraph:
    """Left and right are swapped: x becomes W - x."""
    width, _ = image_size(graph)
    boxes = graph.boxes.copy()
    boxes[:, [0, 2]] = width - graph.boxes[:, [2, 0]]
    return graph.with_fields(boxes=boxes)


def drop_boxes(graph: SceneGraph, rng: np.random.Generator, most: float) -> SceneGraph:
    """In half of the images, boxes are left out, and their relations, at a rate drawn from 0 to `most`.

    At least two boxes are kept, and one relation if there was one.
    """
    dropped, rate = rng.random() < 0.5, most * rng.random()
    if not dropped or len(graph) <= 2:
        return graph
    kept = rng.random(len(graph)) >= rate
    if len(graph.relations) and not kept[graph.relations[:, :2]].all(1).any():
        kept[graph.relations[rng.integers(len(graph.relations)), :2]] = True
    if kept.sum() < 2:
        kept[rng.choice(len(graph), 2, replace=False)] = True
    return graph if kept.all() else graph.subset(kept)
