"""The paper's qualitative figure: input, ground truth, baseline, GPI; what context corrects or spoils is marked.

Right is blue with a tick, wrong is vermilion, dashed, with a cross: colour, line and sign say the same. A filled pill
is a label that context changed from wrong to right, or from right to wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scenegpi.viz.arrange import Arrangement, arrange
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.compare import Compared
from scenegpi.viz.palette import INK, MUTED, RIGHT, WRONG, deal_colours, text_on
from scenegpi.viz.panels import LINK, NodeLook, colours_of, draw_boxes, draw_canvas, draw_nodes
from scenegpi.viz.picture import drawing, fitted, part, picture_file, save
from scenegpi.viz.text import named, set_text, shortened, text_sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL = (4.55, 3.6)
_EDGE, _HEAD, _FOOT, _ROW = 0.24, 0.55, 0.75, 0.42
TICK, CROSS = "✓", "✗"


def draw_qualitative(
    rows: Sequence[Compared],
    photos: Sequence[Any],
    target: str | Path,
    columns: tuple[str, str] = ("baseline", "GPI"),
    totals: Mapping[str, int] | None = None,
) -> Path:
    """Writes the figure, PNG or SVG: a row for each image, on its photo (a path, an array, or None).

    `totals` are the counts of `pick`, for the line at the foot.
    """
    target = picture_file(target)
    width = 4 * PANEL[0] + 5 * _EDGE
    height = len(rows) * (PANEL[1] + _ROW) + _HEAD + _FOOT
    sheet = (width, height)
    with drawing() as new_figure:
        figure = new_figure(sheet)
        for k, title in enumerate(("input", "ground truth", *columns)):
            left = _EDGE + k * (PANEL[0] + _EDGE)
            figure.text(left / width, 1 - 0.3 / height, title, fontsize=15, weight="bold", color=INK, va="center")
            if k:
                x = (left - _EDGE / 2) / width
                figure.add_artist(_rule((x, x), (_FOOT / height, 1 - 0.12 / height)))
        for r, (row, photo) in enumerate(zip(rows, photos, strict=True)):
            bottom = height - _HEAD - (r + 1) * (PANEL[1] + _ROW) + _ROW / 2
            _draw_row(figure, sheet, bottom, row, photo)
            if r:
                y = (bottom + PANEL[1] + _ROW / 2) / height
                figure.add_artist(_rule((_EDGE / width, 1 - _EDGE / width), (y, y)))
        _legend(figure, sheet, totals)
        save(figure, target)
    return target


def _draw_row(figure: Figure, sheet: tuple[float, float], bottom: float, row: Compared, photo: Any) -> None:
    truth, names = row.truth, row.truth.vocabulary
    canvas = Canvas.of(truth, photo)
    colours = colours_of(deal_colours(canvas.boxes))
    shown = fitted(canvas.width, canvas.height, (PANEL[0], PANEL[1] - 0.3))
    axes = figure.add_axes(part(sheet, _EDGE, bottom + PANEL[1] - shown[1] - 0.02, *shown))
    draw_canvas(axes, canvas)
    given = bool(row.label_first.all() and row.label_second.all())
    tags = [named(name, i) for i, name in enumerate(truth.names)] if given else [str(i) for i in range(len(truth))]
    draw_boxes(axes, canvas, tags, colours, shown, points=8.0)
    title = set_text(str(truth.file or truth.image_id or ""), 40)
    change = f"{row.corrected} corrected, {row.spoiled} spoiled"
    figure.text(
        _EDGE / sheet[0], (bottom + PANEL[1] - shown[1] - 0.18) / sheet[1], f"{title}   {change}".strip(),
        fontsize=9, color=MUTED, va="center",
    )  # fmt: skip
    said: dict[tuple[int, int], list[str]] = {}
    for s, o, p in truth.relations.tolist():
        if s != o and names.predicates[p] not in said.setdefault((s, o), []):
            said[s, o].append(names.predicates[p])
    words = {
        (s, o): [
            max((" / ".join(said[s, o]), f"{TICK} " + names.predicates[a], f"{TICK} " + names.predicates[b]), key=len)
        ]
        for (s, o), a, b in zip(map(tuple, row.pairs.tolist()), row.first.tolist(), row.second.tolist(), strict=True)
    }
    longest = [
        max(trio, key=len) for trio in zip(truth.names, row.first_graph.names, row.second_graph.names, strict=True)
    ]
    longest = longest if given else [f"{CROSS} {name}" for name in longest]
    centres = (canvas.boxes[:, :2] + canvas.boxes[:, 2:]) / 2 / np.array([canvas.width, canvas.height])
    nodes = arrange(longest, centres, words, PANEL, points=8.6 if len(truth) + len(words) <= 18 else 7.4, everyone=True)
    plain = [[shortened(" / ".join(said[pair])) for pair in nodes.links], truth.names]
    for k, looks in enumerate(
        (
            _truth_looks(nodes, colours, plain[0], plain[1]),
            *(_said_looks(nodes, colours, row, which) for which in (0, 1)),
        )
    ):
        axes = figure.add_axes(part(sheet, _EDGE + (k + 1) * (PANEL[0] + _EDGE), bottom, *PANEL))
        lines = [look.edge if k else LINK for look in looks[len(nodes.shown) :]]
        draw_nodes(axes, nodes, looks, lines)


def _truth_looks(nodes: Arrangement, colours: list[str], said: list[str], names: list[str]) -> list[NodeLook]:
    looks = [_entity(named(names[i], i), colours[i], i not in nodes.linked) for i in nodes.shown]
    return looks + [NodeLook(text, "white", LINK, INK) for text in said]


def _said_looks(nodes: Arrangement, colours: list[str], row: Compared, which: int) -> list[NodeLook]:
    """The nodes as the first (0) or second (1) model labels them."""
    graph = (row.first_graph, row.second_graph)[which]
    label_right, right = ((row.label_first, row.right_first), (row.label_second, row.right_second))[which]
    looks = []
    for i in nodes.shown:
        text = named(graph.names[i], i)
        if label_right[i] and row.label_first[i]:
            looks.append(_entity(text, colours[i], i not in nodes.linked))
        else:
            looks.append(_judged(text, bool(label_right[i]), bool(which and row.label_first[i] != label_right[i])))
    said = (row.first, row.second)[which]
    for k, predicate in enumerate(said.tolist()):
        changed = bool(which and row.right_first[k] != row.right_second[k])
        looks.append(_judged(graph.vocabulary.predicates[predicate], bool(right[k]), changed))
    return looks


def _entity(text: str, colour: str, lonely: bool) -> NodeLook:
    if lonely:
        return NodeLook(text, "white", colour, INK, dashed=True, bold=True)
    return NodeLook(text, colour, colour, text_on(colour), bold=True)


def _judged(text: str, right: bool, changed: bool) -> NodeLook:
    colour = RIGHT if right else WRONG
    look = NodeLook(f"{TICK if right else CROSS} {shortened(text)}", "white", colour, INK, dashed=not right)
    return replace(look, face=colour, ink=text_on(colour), dashed=False, bold=True) if changed else look


def _legend(figure: Figure, sheet: tuple[float, float], totals: Mapping[str, int] | None) -> None:
    entries = (
        (f"{TICK} right", "white", RIGHT, False),
        (f"{CROSS} wrong", "white", WRONG, True),
        (f"{TICK} corrected by context", RIGHT, RIGHT, False),
        (f"{CROSS} spoiled by context", WRONG, WRONG, False),
    )
    x = _EDGE
    for text, face, edge, dashed in entries:
        style = {"boxstyle": "round,pad=0.3,rounding_size=0.8", "facecolor": face, "edgecolor": edge, "linewidth": 1.4}
        ink = INK if face == "white" else text_on(face)
        figure.text(
            (x + 0.1) / sheet[0], 0.47 / sheet[1], text, fontsize=10, color=ink, va="center",
            bbox={**style, "linestyle": "--" if dashed else "-"},
        )  # fmt: skip
        x += float(text_sizes([text], 10)[0, 0]) + 0.4
    note = "of every annotated pair, the most probable predicate"
    if totals is not None:
        note += (
            f"; in all {totals['images']:,} images looked at, context corrects {_labels(totals['corrected'])} "
            f"and spoils {totals['spoiled']:,}, of {totals['pairs']:,} annotated pairs"
        )
    figure.text(_EDGE / sheet[0], 0.14 / sheet[1], note, fontsize=9.5, color=MUTED, va="center")


def _labels(count: int) -> str:
    return f"{count:,} label{'' if count == 1 else 's'}"


def _rule(xs: tuple[float, float], ys: tuple[float, float]) -> Any:
    from matplotlib.lines import Line2D

    return Line2D(xs, ys, color="#E3E3E0", linewidth=0.9)
