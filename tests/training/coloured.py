"""Photos whose labels are colours: what a tiny photo model learns from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from scenegpi.data import write_jsonl
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (40, 60, 220)}
VOCABULARY = Vocabulary(list(COLOURS), ["left of", "on"], "colours")


def coloured_scene(rng: np.random.Generator, name: str) -> tuple[Image.Image, SceneGraph]:
    """Coloured squares on grey; the label of a box is its colour."""
    pixels = rng.integers(100, 140, (96, 128, 3)).astype(np.uint8)
    n = int(rng.integers(2, 5))
    left, top = rng.integers(0, 90, n), rng.integers(0, 60, n)
    labels = rng.integers(0, 3, n)
    boxes = np.stack([left, top, left + 30, top + 30], 1)
    for (x1, y1, x2, y2), label in zip(boxes, labels, strict=True):
        pixels[y1:y2, x1:x2] = COLOURS[VOCABULARY.objects[label]]
    relations = [[i, j, 0] for i in range(n) for j in range(n) if left[i] < left[j] - 5] or [[0, 1, 1]]
    return Image.fromarray(pixels), SceneGraph(
        boxes, labels, VOCABULARY, relations, width=128, height=96, file=name, image_id=name
    )


def write_scenes(folder: Path, images: int, photos: int) -> Path:
    """data.jsonl with so many images, and photos of the first ones in images/; gives the folder."""
    (folder / "images").mkdir()
    rng, graphs = np.random.default_rng(0), []
    for k in range(images):
        photo, graph = coloured_scene(rng, f"{k}.png")
        graphs.append(graph)
        if k < photos:
            photo.save(folder / "images" / graph.file)
    write_jsonl(folder / "data.jsonl", graphs)
    return folder
