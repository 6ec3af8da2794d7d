"""A picture of one scene graph: the photo (or an empty canvas) with its boxes, and the graph beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scenegpi.errors import DataError
from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph
from scenegpi.viz.arrange import arrange, best_links
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import INK, MUTED, deal_colours
from scenegpi.viz.panels import colours_of, draw_boxes, draw_canvas, draw_graph
from scenegpi.viz.text import font_families, named, set_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 130
WIDE, TALL, LOW = 7.0, 8.0, 3.9
"""Inches of a panel: how wide at most, how tall at most, how tall at least."""
_EDGE, _HEAD, _GAP = 0.12, 0.42, 0.3


def draw(graph: SceneGraph, target: str | Path, photo: str | Path | None = None, top: int = 20) -> Path:
    """Writes the picture (PNG or SVG, by the suffix); `top` is how many relations the graph shows."""
    target = picture_file(target)
    canvas = Canvas.of(graph, photo)
    colours = colours_of(deal_colours(canvas.boxes))
    shown = fitted(canvas.width, canvas.height, (WIDE if len(graph) <= 20 else 1.25 * WIDE, TALL))
    links = best_links(graph, top)
    crowd = len(graph) + len(links) if len(graph) <= 40 else 2 * len(links)
    tall = max(shown[1], LOW, min(TALL, 0.11 * crowd))
    sheet = (shown[0] + WIDE + _GAP + 2 * _EDGE, tall + _HEAD + _EDGE)
    with drawing() as new_figure:
        figure = new_figure(sheet)
        top_left = (_EDGE, _EDGE + (tall - shown[1]))
        axes = figure.add_axes(part(sheet, *top_left, *shown))
        draw_canvas(axes, canvas)
        draw_boxes(axes, canvas, [named(name, i) for i, name in enumerate(graph.names)], colours, shown)
        panel = (WIDE, tall)
        right = figure.add_axes(part(sheet, _EDGE + shown[0] + _GAP, _EDGE, *panel))
        if len(graph):
            centres = (canvas.boxes[:, :2] + canvas.boxes[:, 2:]) / 2 / np.array([canvas.width, canvas.height])
            draw_graph(right, arrange(graph.names, centres, links, panel), colours)
        else:
            right.axis("off")
            right.text(0.5, 0.5, "no objects", ha="center", va="center", color=MUTED)
        _heading(figure, graph, sheet)
        save(figure, target)
    return target


def picture_file(target: str | Path) -> Path:
    """The path, if a picture can be written to it."""
    target = Path(target)
    if target.suffix.lower() not in (".png", ".svg"):
        raise DataError(target, "a picture is a .png or .svg file")
    return target


def fitted(width: float, height: float, most: tuple[float, float] = (WIDE, TALL)) -> tuple[float, float]:
    """Inches of a canvas that keeps its shape within `most`; of a mere strip, so much that it can be seen."""
    scale = min(most[0] / width, most[1] / height)
    return max(width * scale, 0.15 * most[0]), max(height * scale, 0.12 * most[1])


def part(
    sheet: tuple[float, float], left: float, bottom: float, width: float, height: float
) -> tuple[float, float, float, float]:
    """Inches -> fractions of the sheet."""
    return left / sheet[0], bottom / sheet[1], width / sheet[0], height / sheet[1]


@contextmanager
def drawing() -> Iterator[Any]:
    """Settings for all pictures, and a function that makes a figure of so many inches."""
    import warnings

    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    settings: Any = {"font.family": font_families(), "svg.hashsalt": "scenegpi", "path.simplify": False}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # names in scripts that no font here has show as boxes
        yield lambda inches: Figure(figsize=inches, facecolor="white")


def save(figure: Figure, target: Path, dpi: int = DPI) -> None:
    """Whole or not at all, and the same bytes each time."""
    kind = target.suffix.lower()[1:]
    metadata: Any = {"Date": None} if kind == "svg" else {"Software": None}
    with whole_file(target) as new:
        figure.savefig(new, format=kind, dpi=dpi, metadata=metadata)


def _heading(figure: Figure, graph: SceneGraph, sheet: tuple[float, float]) -> None:
    name = set_text(str(graph.file or graph.image_id or "scene"), 60)
    y = 1 - 0.21 / sheet[1]
    figure.text(_EDGE / sheet[0], y, name, fontsize=12, weight="bold", color=INK, va="center")
    boxes, relations = len(graph), len(graph.relations)
    count = f"{boxes} {'box' if boxes == 1 else 'boxes'}, {relations} {'relation' if relations == 1 else 'relations'}"
    figure.text(1 - _EDGE / sheet[0], y, count, fontsize=10.5, color=MUTED, ha="right", va="center")
