"""The paper's qualitative figure: input, ground truth, baseline, GPI; what context corrects or spoils is marked.

Right is blue with a tick, wrong is vermilion, dashed, with a cross: colour, line and sign say the same. A filled pill
is a label that context changed from wrong to right, or from right to wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.errors import counted
from scenegpi.graph import SceneGraph
from scenegpi.paper.figures.compare import Compared
from scenegpi.viz.arrange import Arrangement, arrange
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import INK, MUTED, RIGHT, WRONG, deal_colours, text_on
from scenegpi.viz.panels import LINK, WHITE, NodeStyle, colours_of, draw_boxes, draw_canvas, draw_nodes
from scenegpi.viz.picture import fitted, picture_file
from scenegpi.viz.sheet import Sheet
from scenegpi.viz.text import numbered, shortened, text_sizes

PANEL = (4.55, 3.6)
_EDGE, _HEAD, _FOOT, _ROW = 0.24, 0.55, 0.75, 0.42
_RULE = "#E3E3E0"
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
    sheet = Sheet(width, height)
    for k, title in enumerate(("input", "ground truth", *columns)):
        left = _EDGE + k * (PANEL[0] + _EDGE)
        sheet.text((left, 0.3), title, 15, INK, bold=True)
        if k:
            x = left - _EDGE / 2
            sheet.line((x, 0.12), (x, height - _FOOT), _RULE, 0.9)
    for r, (row, photo) in enumerate(zip(rows, photos, strict=True)):
        top = _HEAD + r * (PANEL[1] + _ROW) + _ROW / 2
        _draw_row(sheet, top, row, photo)
        if r:
            y = top - _ROW / 2
            sheet.line((_EDGE, y), (width - _EDGE, y), _RULE, 0.9)
    _legend(sheet, totals)
    sheet.save(target)
    return target


def _draw_row(sheet: Sheet, top: float, row: Compared, photo: Any) -> None:
    truth, names = row.truth, row.truth.vocabulary
    canvas = Canvas.of(truth, photo)
    colours = colours_of(deal_colours(canvas.boxes))
    shown = fitted(canvas.width, canvas.height, (PANEL[0], PANEL[1] - 0.3))
    panel = sheet.panel(_EDGE, top + 0.02, *shown, size=(canvas.width, canvas.height))
    draw_canvas(panel, canvas)
    given = bool(row.labels_right.all())
    draw_boxes(panel, canvas, _names(truth, given) if given else [str(i + 1) for i in range(len(truth))], colours, 8.0)
    title = shortened(str(truth.file or truth.image_id or ""), 40)
    change = f"{row.corrected} corrected, {row.spoiled} spoiled"
    sheet.text((_EDGE, top + shown[1] + 0.18), f"{title}   {change}".strip(), 9, MUTED)
    said: dict[tuple[int, int], list[str]] = {}
    for s, o, p in truth.relations.tolist():
        if s != o and names.predicates[p] not in said.setdefault((s, o), []):
            said[s, o].append(names.predicates[p])
    words = {
        (s, o): [
            max((" / ".join(said[s, o]), f"{TICK} " + names.predicates[a], f"{TICK} " + names.predicates[b]), key=len)
        ]
        for (s, o), a, b in zip(map(tuple, row.pairs.tolist()), *row.said.tolist(), strict=True)
    }
    columns = [_names(graph, given) for graph in (truth, *row.graphs)]
    longest = [max(trio, key=len) for trio in zip(*columns, strict=True)]
    longest = longest if given else [f"{CROSS} {name}" for name in longest]
    centres = (canvas.boxes[:, :2] + canvas.boxes[:, 2:]) / 2 / np.array([canvas.width, canvas.height])
    nodes = arrange(longest, centres, words, PANEL, points=8.6 if len(truth) + len(words) <= 18 else 7.4, everyone=True)
    plain = [shortened(" / ".join(said[pair])) for pair in nodes.links]
    for k, styles in enumerate(
        (
            _truth_styles(nodes, colours, plain, columns[0]),
            *(_predicted_styles(nodes, colours, row, which, columns[1 + which]) for which in (0, 1)),
        )
    ):
        panel = sheet.panel(_EDGE + (k + 1) * (PANEL[0] + _EDGE), top, *PANEL)
        lines = [style.edge if k else LINK for style in styles[len(nodes.shown) :]]
        draw_nodes(panel, nodes, styles, lines)


def _names(graph: SceneGraph, given: bool) -> list[str]:
    """What boxes are called: as in other pictures, or with the box's own number where columns name it differently."""
    return numbered(graph.names) if given else [f"{shortened(name)} {i + 1}" for i, name in enumerate(graph.names)]


def _truth_styles(nodes: Arrangement, colours: list[str], said: list[str], names: list[str]) -> list[NodeStyle]:
    styles = [_entity(names[i], colours[i], i not in nodes.linked) for i in nodes.shown]
    return styles + [NodeStyle(text, WHITE, LINK, INK) for text in said]


def _predicted_styles(
    nodes: Arrangement, colours: list[str], row: Compared, which: int, names: list[str]
) -> list[NodeStyle]:
    """The nodes as the first (0) or second (1) model labels them."""
    styles = []
    for i in nodes.shown:
        before, right = row.labels_right[0, i], row.labels_right[which, i]
        if right and before:
            styles.append(_entity(names[i], colours[i], i not in nodes.linked))
        else:
            styles.append(_judged(names[i], bool(right), bool(before != right)))
    words = row.graphs[which].vocabulary.predicates
    for predicate, before, right in zip(row.said[which].tolist(), row.right[0], row.right[which], strict=True):
        styles.append(_judged(words[predicate], bool(right), bool(before != right)))
    return styles


def _entity(text: str, colour: str, lonely: bool) -> NodeStyle:
    if lonely:
        return NodeStyle(text, WHITE, colour, INK, dashed=True, bold=True)
    return NodeStyle(text, colour, colour, text_on(colour), bold=True)


def _judged(text: str, right: bool, changed: bool) -> NodeStyle:
    colour = RIGHT if right else WRONG
    style = NodeStyle(f"{TICK if right else CROSS} {shortened(text)}", WHITE, colour, INK, dashed=not right)
    return replace(style, face=colour, ink=text_on(colour), dashed=False, bold=True) if changed else style


def _legend(sheet: Sheet, totals: Mapping[str, int] | None) -> None:
    entries = (
        (f"{TICK} right", WHITE, RIGHT, False),
        (f"{CROSS} wrong", WHITE, WRONG, True),
        (f"{TICK} corrected by context", RIGHT, RIGHT, False),
        (f"{CROSS} spoiled by context", WRONG, WRONG, False),
    )
    x, y = _EDGE, sheet.size[1] - 0.47
    for text, face, edge, dashed in entries:
        wide, high = (text_sizes([text], 10)[0] + np.array([0.08, 0.0])).tolist()
        sheet.rect((x, y - high / 2, x + wide, y + high / 2), face, edge, 1.4, radius=high / 2, dashed=dashed)
        sheet.text((x + wide / 2, y), text, 10, INK if face == WHITE else text_on(face), anchor="middle")
        x += wide + 0.2
    note = "of every annotated pair, the most probable predicate"
    if totals is not None:
        note += (
            f"; in all {totals['images']:,} images compared, context corrects {counted(totals['corrected'], 'label')} "
            f"and spoils {totals['spoiled']:,}, of {totals['pairs']:,} annotated pairs"
        )
    sheet.text((_EDGE, sheet.size[1] - 0.14), note, 9.5, MUTED)
