"""One image's graph in the terminal: the boxes as characters, then its objects and relations in words."""

from __future__ import annotations

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scenegpi.errors import printable
from scenegpi.graph import SceneGraph
from scenegpi.viz.canvas import largest_first
from scenegpi.viz.text import numbered

STYLES = ("cyan", "yellow", "green", "magenta", "blue", "red", "white")


def render(graph: SceneGraph, columns: int = 78, top: int = 20) -> RenderableType:
    """What `data show` prints: a heading, the canvas, a table of objects, the `top` relations."""
    image = printable(str(graph.file or graph.image_id))
    size = f", {graph.width} x {graph.height}" if graph.width else ""
    head = Text(f"image {image}{size}: {len(graph)} boxes, {len(graph.relations)} relations", style="bold")
    parts: list[RenderableType] = [head]
    if len(graph):
        parts += [canvas(graph, columns), _relations(graph, top)]
    return Group(*parts)


def canvas(graph: SceneGraph, columns: int = 78) -> Text:
    """Boxes drawn with lines, larger ones first, each named at its top left corner."""
    reach = graph.boxes[:, 2:].max(axis=0)
    width, height = graph.width or max(reach[0], 1.0), graph.height or max(reach[1], 1.0)
    # a character is about twice as high as it is wide
    rows = int(np.clip(columns * height / width / 2, 8, 36))
    characters = np.full((rows, columns), " ", dtype="<U1")
    owner = np.full((rows, columns), -1)
    scale = np.array([(columns - 1) / width, (rows - 1) / height])
    cells = np.round(graph.boxes.reshape(-1, 2, 2) * scale).astype(int)
    cells = np.clip(cells, 0, [columns - 1, rows - 1])
    order = largest_first(graph.boxes).tolist()
    for i in order:
        (x1, y1), (x2, y2) = cells[i].tolist()
        for y in {y1, y2}:
            characters[y, x1 : x2 + 1] = "─"
            owner[y, x1 : x2 + 1] = i
        for x in {x1, x2}:
            characters[y1 : y2 + 1, x] = "│"
            owner[y1 : y2 + 1, x] = i
        for x, y, corner in ((x1, y1, "┌"), (x2, y1, "┐"), (x1, y2, "└"), (x2, y2, "┘")):
            characters[y, x] = corner
    taken = np.zeros((rows, columns), dtype=bool)
    names = numbered(graph.names, 60)
    for i in order:
        _name(i, names[i], cells[i].tolist(), characters, owner, taken)
    text = Text()
    for y in range(rows):
        for x in range(columns):
            style = STYLES[owner[y, x] % len(STYLES)] if owner[y, x] >= 0 else ""
            text.append(characters[y, x], style=style)
        text.append("\n")
    return text


def _name(
    i: int, name: str, cell: list[list[int]], characters: np.ndarray, owner: np.ndarray, taken: np.ndarray
) -> None:
    """Writes a name at the first spot near the box's top left corner that no other name has."""
    (x1, y1), (_, y2) = cell
    rows, columns = characters.shape
    name = name[:columns]
    x = max(min(x1 + 1, columns - len(name)), 0)
    near = [*range(y1, y2 + 1), *range(y1 - 1, -1, -1), *range(y2 + 1, rows)]
    y = next((y for y in near if not taken[y, max(x - 1, 0) : x + len(name) + 1].any()), y1)
    characters[y, x : x + len(name)] = list(name)
    owner[y, x : x + len(name)] = i
    taken[y, x : x + len(name)] = True


def _relations(graph: SceneGraph, top: int) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    names = numbered(graph.names, 60)
    scored = graph.scores is not None or graph.relation_scores is not None
    for triplet in graph.triplets(top=top):
        row = [
            Text(names[triplet.subject_index], STYLES[triplet.subject_index % len(STYLES)]),
            Text(printable(triplet.predicate), "italic"),
            Text(names[triplet.object_index], STYLES[triplet.object_index % len(STYLES)]),
        ]
        table.add_row(*row, *([f"{triplet.score:.3f}"] if scored else []))
    if len(graph.relations) > top:
        table.add_row(f"... and {len(graph.relations) - top} more")
    return table
