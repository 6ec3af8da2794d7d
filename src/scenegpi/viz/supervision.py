"""Relations on pictures that supervision draws: an annotator with the same single method as supervision's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from scenegpi.graph import SceneGraph
from scenegpi.viz.text import shortened

if TYPE_CHECKING:
    from supervision import Detections

Scene = TypeVar("Scene")
MARGIN, SIZE = 3, 14


class RelationAnnotator:
    """Draws the best relations of a graph as arrows between its boxes, with the predicate in the middle.

    `annotate(scene, detections, graph)` follows supervision's annotators: `scene` is a BGR array (height, width, 3) or
    a Pillow image and is drawn on; `detections` are the graph's objects, in the same order.

    Args:
        top: keep at most this many relations.
        color: red, green, blue of the arrows.
    """

    def __init__(self, top: int = 10, color: tuple[int, int, int] = (208, 74, 2)) -> None:
        self.top, self.color = top, color

    def annotate(self, scene: Scene, detections: Detections, graph: SceneGraph) -> Scene:
        """The scene with arrows; ValueError if the graph has another number of boxes."""
        from PIL import Image, ImageDraw

        if len(detections) != len(graph):
            raise ValueError(f"the graph has {len(graph)} objects, but there are {len(detections)} detections")
        given: Any = scene
        image = given if isinstance(given, Image.Image) else Image.fromarray(np.ascontiguousarray(given[:, :, ::-1]))
        draw = ImageDraw.Draw(image)
        boxes = np.asarray(detections.xyxy, dtype=float)
        middles = (boxes[:, :2] + boxes[:, 2:]) / 2
        for t in reversed(graph.triplets(self.top)):  # the best on top
            self._arrow(draw, middles[t.subject_index], middles[t.object_index], shortened(t.predicate))
        if image is not given:
            given[:, :, ::-1] = np.asarray(image)
        return scene

    def _arrow(self, draw: Any, start: Any, end: Any, text: str) -> None:
        along = end - start
        length = float(np.hypot(*along))
        draw.line([*start, *end], fill=self.color, width=2)
        if length > 2 * SIZE:
            unit = along / length
            side = np.array([-unit[1], unit[0]])
            base = end - unit * SIZE
            draw.polygon([tuple(end), tuple(base + side * SIZE / 3), tuple(base - side * SIZE / 3)], fill=self.color)
        x1, y1, x2, y2 = draw.textbbox(tuple((start + end) / 2), text, anchor="mm")
        draw.rectangle([x1 - MARGIN, y1 - MARGIN, x2 + MARGIN, y2 + MARGIN], fill=self.color)
        draw.text(tuple((start + end) / 2), text, fill=(255, 255, 255), anchor="mm")
