"""A graph as HTML: the photo with its boxes, each with its relations on hover, and the relations next to it.

For notebooks, and for a page with two graphs of each image side by side.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph
from scenegpi.graph_text import object_names
from scenegpi.viz.canvas import Canvas, data_uri
from scenegpi.viz.report.markup import Html, h

if TYPE_CHECKING:
    from scenegpi.evaluation.changes import Change, Triple

WIDTH, HEIGHT, SIDE, ROWS = 560, 420, 800, 15
BOX = "fill:#D04A02;fill-opacity:0.06;stroke:#D04A02;stroke-width:2;vector-effect:non-scaling-stroke"
STYLE = "body{font:15px sans-serif;margin:24px;color:#222}td{padding:0 8px 0 0}section{margin:0 0 32px}"
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
MOST_TRIPLES = 12


def notebook_html(graph: SceneGraph) -> str:
    """HTML that needs no script and no style sheet: tooltips are SVG titles."""
    names, triplets, canvas = object_names(graph), graph.triplets(), Canvas.of(graph, graph.photo)
    about: list[list[str]] = [[] for _ in names]
    for t in triplets:
        line = f"{names[t.subject_index]} {t.predicate} {names[t.object_index]}"
        for end in {t.subject_index, t.object_index}:
            about[end].append(line)
    whole: dict[str, Any] = {"x": 0, "y": 0, "width": canvas.width, "height": canvas.height}
    shapes = [h("rect", **whole, style="fill:#EEEEEE")]
    if canvas.pixels is not None:
        shapes = [h("image", href=data_uri(canvas.pixels, SIDE), **whole, preserveAspectRatio="none")]
    for i in canvas.largest_first():  # small boxes on top, where the mouse can reach them
        x1, y1, x2, y2 = canvas.boxes[i].tolist()
        words = ", ".join(word for word, _ in graph.attributes[i]) if graph.attributes else ""
        said = "\n".join([f"{names[i]} ({words})" if words else names[i], *about[i][:ROWS]])
        shapes.append(h("rect", h("title", said), x=x1, y=y1, width=x2 - x1, height=y2 - y1, style=BOX))
    width, height = canvas.size
    scale = min(WIDTH / width, HEIGHT / height)
    box = f"0 0 {width:g} {height:g}"
    picture = h("svg", shapes, viewBox=box, width=round(width * scale), height=round(height * scale))
    rows = [
        h("tr", h("td", names[t.subject_index]), h("td", t.predicate), h("td", names[t.object_index]), h("td", t.score))
        for t in triplets[:ROWS]
    ]
    more = h("div", f"and {len(triplets) - ROWS:,} more") if len(triplets) > ROWS else None
    side = h("div", h("table", rows), more)
    return h("div", picture, side, style="display:flex;gap:16px;align-items:flex-start")


def write_side_by_side(target: Path, names: tuple[str, str], lines: Iterable[str], most: Iterable[Change]) -> None:
    """One HTML file that needs no network: `lines` at its top, then the images."""
    head = [h("meta", charset="utf-8"), h("meta", http_equiv="Content-Security-Policy", content=POLICY)]
    head += [h("title", f"{names[0]} and {names[1]}"), h("style", Html(STYLE))]
    body = [h("h1", f"{names[0]} and {names[1]}"), *(h("p", line) for line in lines), *(_image(c, names) for c in most)]
    page = "<!doctype html>\n" + h("html", h("head", head), h("body", body), lang="en") + "\n"
    with whole_file(target) as part:
        part.write_text(page, encoding="utf-8")


def _image(change: Change, names: tuple[str, str]) -> Html:
    parts = []
    for name, graph, only in zip(names, (change.a, change.b), (change.only_a, change.only_b), strict=True):
        parts.append(h("div", h("h3", name), Html(notebook_html(graph)), h("p", f"only here: {_said(only)}")))
    columns = h("div", parts, style="display:flex;gap:40px;flex-wrap:wrap")
    return h("section", h("h2", f"{change.key}: {change.same} relations the same"), columns)


def _said(only: tuple[Triple, ...]) -> str:
    more = f" and {len(only) - MOST_TRIPLES} more" if len(only) > MOST_TRIPLES else ""
    return ("; ".join(" ".join(triple) for triple in only[:MOST_TRIPLES]) or "nothing") + more
