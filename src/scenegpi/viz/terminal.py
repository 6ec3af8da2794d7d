"""One image's graph in the terminal: a heading, and its relations in words."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scenegpi.errors import counted, printable
from scenegpi.graph import SceneGraph
from scenegpi.viz.text import numbered

STYLES = ("cyan", "yellow", "green", "magenta", "blue", "red", "white")


def render(graph: SceneGraph, top: int = 20) -> RenderableType:
    """What `data show` prints; at most `top` relations."""
    size = f", {graph.width} x {graph.height}" if graph.width else ""
    count = f"{counted(len(graph), 'box')}, {counted(len(graph.relations), 'relation')}"
    head = Text(f"image {printable(str(graph.file or graph.image_id))}{size}: {count}", style="bold")
    names = [Text(name, STYLES[k % len(STYLES)]) for k, name in enumerate(numbered(graph.names, 60))]
    scored = graph.scores is not None or graph.relation_scores is not None
    table = Table(box=None, pad_edge=False, show_header=False)
    for t in graph.triplets(top=top):
        row = (names[t.subject_index], Text(printable(t.predicate), "italic"), names[t.object_index])
        table.add_row(*row, *([f"{t.score:.3f}"] if scored else []))
    if len(graph.relations) > top:
        table.add_row(f"... and {len(graph.relations) - top} more")
    objects = Text("objects: ") + Text(", ").join(names)
    return Group(head, objects, table)
