"""The two panels of a picture: boxes on a canvas, and an arranged graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scenegpi.viz.arrange import Arrangement
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.name_tags import leaders, place_tags
from scenegpi.viz.palette import COLOURS, FAINT, INK, MUTED, text_on
from scenegpi.viz.sheet import Panel
from scenegpi.viz.text import shortened, text_sizes

QUIET = 0.8
"""Size of the name of a box without a relation, relative to others."""
BLANK, LINK, WHITE = "#F6F6F3", "#9AA0A6", "#FFFFFF"


def draw_canvas(panel: Panel, canvas: Canvas) -> None:
    """The photo, or an empty canvas; `panel` has the canvas's units."""
    if canvas.pixels is not None:
        panel.photo(canvas.pixels)
    else:
        panel.rect((0, 0, *canvas.size), fill=BLANK)


def draw_frame(panel: Panel, canvas: Canvas) -> None:
    """A thin line around the canvas, above what was drawn on it."""
    panel.rect((0, 0, *canvas.size), stroke="#C4C4C0", line=1.6)  # half of it lies outside


def draw_boxes(
    panel: Panel,
    canvas: Canvas,
    names: Sequence[str],
    colours: Sequence[str],
    points: float | None = None,
    quiet: Collection[int] = (),
) -> None:
    """Boxes with their names, in `colours`. Those in `quiet` are thin, with a small name."""
    boxes, n = canvas.boxes, len(names)
    points = points or tag_points(n)
    texts = [shortened(name, 30) for name in names]
    hushed = np.array([[i in quiet] for i in range(n)], dtype=bool).reshape(n, 1)
    sizes = np.where(hushed, tag_sizes(texts, QUIET * points), tag_sizes(texts, points)) / panel.scale
    corners = place_tags(canvas.inside, sizes, *canvas.size)
    wide = 2.0 if n <= 25 else 1.5
    for i in canvas.largest_first():
        if canvas.pixels is None:
            panel.rect(boxes[i], fill=colours[i], alpha=0.10)
        line, halo = (0.5 * wide, 0.6) if i in quiet else (wide, 1.6)
        panel.rect(boxes[i], stroke=WHITE, line=line + halo, alpha=0.9)
        panel.rect(boxes[i], stroke=colours[i], line=line)
    draw_frame(panel, canvas)
    for i, start, end in leaders(boxes, corners, sizes):
        panel.line(start, end, WHITE, 3.0)
        panel.line(start, end, colours[i], 1.4)
        panel.line(end, end, WHITE, 4.4)
        panel.line(end, end, colours[i], 3.2)
    for i in canvas.largest_first():
        if i in quiet:
            panel.rect((*corners[i], *(corners[i] + sizes[i])), fill=WHITE, alpha=0.75)
            panel.text(corners[i] + sizes[i] / 2, texts[i], QUIET * points, INK, anchor="middle")
        else:
            draw_tag(panel, texts[i], corners[i], sizes[i], colours[i], points)


def tag_sizes(texts: Sequence[str], points: float) -> NDArray[np.float64]:
    """(N, 2) inches of names on their colours."""
    return text_sizes(texts, points, bold=True) - np.array([0.02, 0.2 * points / 72])


def draw_tag(
    panel: Panel, text: str, corner: NDArray[np.float64], size: NDArray[np.float64], colour: str, points: float
) -> None:
    """A name on its colour."""
    panel.rect((*corner, *(corner + size)), fill=colour, stroke=WHITE, line=0.7)
    panel.text(corner + size / 2, text, points, text_on(colour), bold=True, anchor="middle")


def tag_points(n: int) -> float:
    """Size of names on boxes: smaller if there are many."""
    return 9.5 if n <= 12 else 8.0 if n <= 25 else 6.5 if n <= 48 else 5.5


@dataclass(frozen=True)
class NodeStyle:
    """How one node of a graph is drawn."""

    text: str
    face: str
    edge: str
    ink: str
    dashed: bool = False
    bold: bool = False
    line: float = 1.2


def draw_graph(
    panel: Panel, arranged: Arrangement, colours: Sequence[str], weak: Collection[tuple[int, int]] = ()
) -> None:
    """Entities in their boxes' colours, relations as pills between them, `weak` ones dashed; `panel` has inches."""
    styles = []
    for k, text in enumerate(arranged.texts):
        if k >= len(arranged.shown):
            guess = arranged.links[k - len(arranged.shown)] in weak
            styles.append(NodeStyle(text, WHITE, LINK, MUTED if guess else INK, dashed=guess))
            continue
        own = colours[arranged.shown[k]]
        if arranged.shown[k] not in arranged.linked:
            styles.append(NodeStyle(text, WHITE, own, MUTED, dashed=True))
        else:
            styles.append(NodeStyle(text, own, own, text_on(own), bold=True))
    draw_nodes(panel, arranged, styles, [FAINT if link in weak else LINK for link in arranged.links])
    if arranged.left_out:
        note = f"{arranged.left_out} objects without a relation shown are left out"
        panel.text((arranged.panel[0], arranged.panel[1] - 0.06), note, 8, MUTED, anchor="right")


def draw_nodes(panel: Panel, arranged: Arrangement, styles: Sequence[NodeStyle], lines: Sequence[str]) -> None:
    """The nodes of an arrangement by their `styles`, and the links in the colours `lines`."""
    for k, colour in enumerate(lines):
        tail, in_, out, tip = arranged.arrow(k)
        panel.line(tail, in_, colour, 1.3)
        panel.arrow(out, tip, colour, 1.3)
    for k, style in enumerate(styles):
        entity = k < len(arranged.shown)
        centre, half = arranged.at[k], arranged.sizes[k] / 2
        panel.rect(
            (*(centre - half), *(centre + half)), style.face, style.edge, style.line,
            radius=0.06 if entity else float(half[1]), dashed=style.dashed,
        )  # fmt: skip
        points = arranged.points * (1 if entity else 0.94)
        panel.text(centre, style.text, points, style.ink, bold=style.bold, anchor="middle")


def colours_of(numbers: Sequence[int]) -> list[str]:
    """Colour numbers -> colours."""
    return [COLOURS[number % len(COLOURS)] for number in numbers]
