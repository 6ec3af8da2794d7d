"""A contact sheet of search results: each photo with the objects of its best match."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from scenegpi.errors import DataError, counted
from scenegpi.files import not_an_input
from scenegpi.graph import SceneGraph
from scenegpi.store.store import Answer, Hit, Store
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import INK, MUTED
from scenegpi.viz.panels import colours_of, draw_boxes, draw_canvas
from scenegpi.viz.picture import fitted, picture_file
from scenegpi.viz.sheet import Sheet
from scenegpi.viz.text import numbered, shortened

COLUMNS, CELL, EDGE, HEAD, FOOT = 4, (3.1, 2.5), 0.22, 0.62, 0.36


def draw_hits(store: Store, answer: Answer, target: str | Path) -> list[str]:
    """Writes the sheet, PNG or SVG; DataError if nothing was found.

    Returns the names of images whose photos have changed since they were indexed: these are drawn without boxes.
    """
    target = picture_file(target)
    if not answer.hits:
        raise DataError(target, "no matches, so there is nothing to draw")
    photos = {hit.image: store.photo(hit) for hit in answer.hits}
    not_an_input(target, *photos.values())
    changed = store.changed(photos)
    columns = min(COLUMNS, len(answer.hits))
    rows = -(-len(answer.hits) // columns)
    width = max(columns * (CELL[0] + EDGE) + EDGE, 2 * CELL[0])
    sheet = Sheet(width, HEAD + rows * (CELL[1] + FOOT + EDGE))
    sheet.text((EDGE, 0.22), shortened(str(answer.query), int(14 * width)), 12, INK, bold=True)
    first = f", the first {len(answer.hits):,}" if len(answer.hits) < answer.images else ""
    sheet.text((EDGE, 0.44), f"{counted(answer.images, 'image')}{first}", 9.5, MUTED)
    for k, hit in enumerate(answer.hits):
        left, top = EDGE + k % columns * (CELL[0] + EDGE), HEAD + k // columns * (CELL[1] + FOOT + EDGE)
        _draw_hit(sheet, (left, top), store.graph(hit.image), hit, photos[hit.image], hit.image in changed)
    sheet.save(target)
    return [hit.file or hit.key for hit in answer.hits if hit.image in changed]


def _draw_hit(
    sheet: Sheet, corner: tuple[float, float], graph: SceneGraph, hit: Hit, photo: Path | None, changed: bool
) -> None:
    left, top = corner
    matched = hit.matches[0].objects if hit.matches and not changed else ()
    shown = list(dict.fromkeys(i for i in matched if i is not None))
    try:
        canvas = Canvas.of(graph, photo)
    except DataError:  # a photo that can't be read
        canvas = Canvas.of(graph)
    wide, tall = fitted(*canvas.size, CELL)
    panel = sheet.panel(left + (CELL[0] - wide) / 2, top + (CELL[1] - tall) / 2, wide, tall, canvas.size)
    draw_canvas(panel, canvas)
    names = numbered(graph.names)
    part = replace(canvas, boxes=canvas.boxes[shown])
    draw_boxes(panel, part, [names[i] for i in shown], colours_of(range(len(shown))), points=8.5)
    name = f"{'changed: ' if changed else ''}{hit.file or hit.key}"
    sheet.text((left, top + CELL[1] + 0.16), shortened(name, 30), 8.5, INK)
    sheet.text((left + CELL[0], top + CELL[1] + 0.16), f"{hit.score:.2f}", 8.5, MUTED, anchor="right")
