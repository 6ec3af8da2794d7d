"""A picture of one scene graph: the photo (or an empty canvas) with its boxes, and the graph next to it."""

from __future__ import annotations

from pathlib import Path

from scenegpi.errors import DataError, counted
from scenegpi.files import not_an_input
from scenegpi.graph import SceneGraph
from scenegpi.viz.arrange import arrange, best_links
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import INK, MUTED, deal_colours
from scenegpi.viz.panels import colours_of, draw_boxes, draw_canvas, draw_graph
from scenegpi.viz.sheet import Sheet
from scenegpi.viz.text import numbered, shortened

WIDE, TALL, LOW = 7.0, 8.0, 2.6
"""Inches: a panel's maximum width, maximum height and minimum height."""
NARROW, SHORT, FEW = 3.4, 5.5, 12
"""Inches: the graph's minimum width, and the photo's maximum height if the graph has at most FEW nodes."""
_EDGE, _HEAD, _GAP = 0.12, 0.42, 0.3


def draw(graph: SceneGraph, target: str | Path, photo: str | Path | bytes | None = None, top: int = 20) -> Path:
    """Writes the picture (PNG or SVG, by the suffix), with at most `top` relations."""
    target = picture_file(target)
    not_an_input(target, photo, graph.photo)
    picture(graph, photo, top).save(target)
    return target


def picture(graph: SceneGraph, photo: str | Path | bytes | None = None, top: int = 20) -> Sheet:
    """The picture; `photo` is by default the one that the graph was predicted from, if that file still exists."""
    if photo is None and graph.photo is not None and Path(graph.photo).is_file():
        photo = graph.photo
    canvas = Canvas.of(graph, photo)
    colours = colours_of(deal_colours(canvas.boxes))
    names = numbered(graph.names)
    links, weak = best_links(graph, top)
    linked = {end for pair in links for end in pair}
    crowd = len(graph) + len(links) if len(graph) <= 40 else 2 * len(links)
    nodes = len(linked) + len(links)
    most = WIDE if len(graph) <= 20 else 1.25 * WIDE, TALL if nodes > FEW else SHORT
    shown = fitted(*canvas.size, most)
    tall = max(shown[1], LOW, min(TALL, 0.11 * crowd))
    wide = min(max(NARROW, 2.0 + 0.4 * nodes), WIDE)  # white space in proportion
    sheet = Sheet(shown[0] + wide + _GAP + 2 * _EDGE, tall + _HEAD + _EDGE)
    left = sheet.panel(_EDGE, _HEAD, *shown, size=canvas.size)
    draw_canvas(left, canvas)
    draw_boxes(left, canvas, names, colours, quiet=set(range(len(graph))) - linked if linked else ())
    right = sheet.panel(_EDGE + shown[0] + _GAP, _HEAD, wide, tall)
    if len(graph):
        draw_graph(right, arrange(names, canvas.centres, links, (wide, tall)), colours, weak)
    else:
        right.text((wide / 2, tall / 2), "no objects", 10, MUTED, anchor="middle")
    name = shortened(str(graph.file or graph.image_id or "scene"), 60)
    sheet.text((_EDGE, _HEAD / 2), name, 12, INK, bold=True)
    count = f"{counted(len(graph), 'box')}, {counted(len(graph.relations), 'relation')}"
    sheet.text((sheet.size[0] - _EDGE, _HEAD / 2), count, 10.5, MUTED, anchor="right")
    return sheet


def picture_file(target: str | Path) -> Path:
    """The path, if a picture can be written to it."""
    target = Path(target)
    if target.suffix.lower() not in (".png", ".svg"):
        raise DataError(target, "expected a .png or .svg file")
    return target


def fitted(width: float, height: float, most: tuple[float, float] = (WIDE, TALL)) -> tuple[float, float]:
    """Inches of a canvas that keeps its shape within `most`; a narrow strip is widened until it is visible."""
    scale = min(most[0] / width, most[1] / height)
    return max(width * scale, 0.15 * most[0]), max(height * scale, 0.12 * most[1])
