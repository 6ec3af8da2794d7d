"""The two panels of a picture, drawn on matplotlib axes: boxes on a canvas, and an arranged graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.viz.arrange import Arrangement
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import COLOURS, INK, MUTED, text_on
from scenegpi.viz.tags import leaders, place_tags
from scenegpi.viz.text import set_text, text_sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLANK, LINK = "#F6F6F3", "#9AA0A6"


def draw_canvas(axes: Axes, canvas: Canvas) -> None:
    """The photo, or an empty canvas, in a thin frame."""
    if canvas.pixels is not None:
        axes.imshow(canvas.pixels, extent=(0, canvas.width, canvas.height, 0), aspect="auto")
    else:
        axes.set_facecolor(BLANK)
    axes.set_xlim(0, canvas.width)
    axes.set_ylim(canvas.height, 0)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color("#C4C4C0")
        spine.set_linewidth(0.8)


def draw_boxes(
    axes: Axes,
    canvas: Canvas,
    names: Sequence[str],
    colours: Sequence[str],
    inches: tuple[float, float],
    points: float | None = None,
    order: NDArray[np.intp] | None = None,
) -> None:
    """Boxes with their names; `inches` is how large the axes are on paper, `colours` one for each box."""
    from matplotlib.patches import Rectangle

    boxes, n = canvas.boxes, len(names)
    points = points or tag_points(n)
    unit = np.array([canvas.width / inches[0], canvas.height / inches[1]])
    texts = [set_text(name, 30) for name in names]
    sizes = (text_sizes(texts, points, "bold") - [0.02, 0.2 * points / 72]) * unit
    corners = place_tags(np.clip(boxes, 0, [canvas.width, canvas.height] * 2), sizes, canvas.width, canvas.height)
    largest_first = np.argsort(-np.prod(boxes[:, 2:] - boxes[:, :2], axis=1), kind="stable")
    line = 2.0 if n <= 25 else 1.5
    for i in largest_first.tolist():
        x1, y1, x2, y2 = boxes[i].tolist()
        frame: dict[str, Any] = {"xy": (x1, y1), "width": x2 - x1, "height": y2 - y1}
        if canvas.pixels is None:
            axes.add_patch(Rectangle(**frame, facecolor=colours[i], alpha=0.10, linewidth=0))
        axes.add_patch(Rectangle(**frame, fill=False, edgecolor="white", linewidth=line + 1.6, alpha=0.9))
        axes.add_patch(Rectangle(**frame, fill=False, edgecolor=colours[i], linewidth=line))
    for i, start, end in leaders(boxes, corners, sizes):
        for width, colour in ((3.0, "white"), (1.4, colours[i])):
            axes.plot(*zip(start, end, strict=True), color=colour, linewidth=width, zorder=3, solid_capstyle="round")
        axes.plot(*end, "o", color=colours[i], markersize=3.5, markeredgecolor="white", markeredgewidth=0.6, zorder=3)
    for i in largest_first.tolist():
        draw_tag(axes, texts[i], corners[i], sizes[i], colours[i], points)


def draw_tag(
    axes: Axes, text: str, corner: NDArray[np.float64], size: NDArray[np.float64], colour: str, points: float
) -> None:
    """A name on its colour."""
    from matplotlib.patches import Rectangle

    (x, y), (w, h) = corner.tolist(), size.tolist()
    axes.add_patch(Rectangle((x, y), w, h, facecolor=colour, edgecolor="white", linewidth=0.7, zorder=4))
    ink = {"color": text_on(colour), "fontsize": points, "weight": "bold", "zorder": 5}
    axes.text(x + w / 2, y + h * 0.52, text, ha="center", va="center_baseline", **ink)  # type: ignore[arg-type]


def tag_points(n: int) -> float:
    """Size of names on boxes: smaller in a crowd."""
    return 9.5 if n <= 12 else 8.0 if n <= 25 else 6.5 if n <= 48 else 5.5


@dataclass(frozen=True)
class NodeLook:
    """How one node of a graph is set."""

    text: str
    face: str
    edge: str
    ink: str
    dashed: bool = False
    bold: bool = False
    line: float = 1.2


def draw_graph(axes: Axes, arranged: Arrangement, colours: Sequence[str]) -> None:
    """Entities in their boxes' colours, relations as pills between them."""
    looks = []
    for k, text in enumerate(arranged.texts):
        if k >= len(arranged.shown):
            looks.append(NodeLook(text, "white", LINK, INK))
            continue
        own = colours[arranged.shown[k]]
        lonely = arranged.shown[k] not in arranged.linked
        looks.append(NodeLook(text, "white" if lonely else own, own, own if lonely else text_on(own), lonely, True))
    draw_nodes(axes, arranged, looks, [LINK] * len(arranged.links))
    if arranged.left_out:
        note = f"{arranged.left_out} objects without a relation shown are left out"
        axes.text(*arranged.panel, note, fontsize=8, color=MUTED, ha="right", va="bottom")


def draw_nodes(axes: Axes, arranged: Arrangement, looks: Sequence[NodeLook], lines: Sequence[str]) -> None:
    """The nodes of an arrangement as `looks` say, one a node, and their links in the colours `lines`."""
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    axes.set_xlim(0, arranged.panel[0])
    axes.set_ylim(arranged.panel[1], 0)
    axes.axis("off")
    for k, colour in enumerate(lines):
        tail, in_, out, tip = arranged.arrow(k)
        line: dict[str, Any] = {"color": colour, "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0, "zorder": 1}
        axes.add_patch(FancyArrowPatch(tuple(tail), tuple(in_), arrowstyle="-", **line))
        axes.add_patch(FancyArrowPatch(tuple(out), tuple(tip), arrowstyle="-|>", mutation_scale=9, **line))
    for k, look in enumerate(looks):
        entity = k < len(arranged.shown)
        (x, y), (w, h) = arranged.at[k].tolist(), arranged.sizes[k].tolist()
        axes.add_patch(
            FancyBboxPatch(
                (x - w / 2, y - h / 2), w, h, boxstyle=f"round,pad=0,rounding_size={0.06 if entity else h / 2}",
                facecolor=look.face, edgecolor=look.edge, linewidth=look.line,
                linestyle="--" if look.dashed else "-", zorder=3,
            )
        )  # fmt: skip
        axes.text(
            x, y, look.text.replace("$", r"\$"), fontsize=arranged.points * (1 if entity else 0.94), color=look.ink,
            weight="bold" if look.bold else "normal", ha="center", va="center_baseline", zorder=4,
        )  # fmt: skip


def colours_of(numbers: Sequence[int]) -> list[str]:
    """Colour numbers -> colours."""
    return [COLOURS[number % len(COLOURS)] for number in numbers]
