"""The two drawings of an image in the gallery, as SVG: boxes on the photo, and the graph.

Everything that belongs to box i carries `data-box="i"`, everything of triplet k `data-link="k"`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scenegpi.graph import SceneGraph
from scenegpi.viz.arrange import CROWD, Arrangement, arrange
from scenegpi.viz.canvas import Canvas, data_uri
from scenegpi.viz.name_tags import place_tags
from scenegpi.viz.palette import COLOURS, text_on
from scenegpi.viz.report.markup import Html, h
from scenegpi.viz.text import numbered, text_sizes

SIDE, UNIT = 600.0, 100.0
"""Width of a drawing in its own units, and units per inch."""
LONGEST_SIDE, QUALITY = 720, 78
Link = tuple[int, int, str]
"""Subject, object and predicate."""
KINDS = {"right": ", in the ground truth", "plain": "", "wrong": ", not in the ground truth", "missed": ", missed"}
"""How a triplet compares with the ground truth ("plain": there is none) -> what a screen reader adds."""


def photo_drawing(canvas: Canvas, names: list[str], colours: list[int], title: str) -> Html:
    """The canvas with its boxes, as SVG."""
    scale = SIDE / canvas.width
    height = max(canvas.height * scale, 60.0)
    boxes = canvas.boxes * scale
    n = len(names)
    size = 13.0 if n <= 12 else 11.0 if n <= 25 else 9.5
    texts = numbered(names, 22)
    sizes = text_sizes(texts, size * 0.72, bold=True) * UNIT + np.array([-4.0, -2.0])
    corners = place_tags(np.clip(boxes, 0, [SIDE, height] * 2), sizes, SIDE, height)
    parts: list[object] = []
    whole: dict[str, Any] = {"x": 0, "y": 0, "width": SIDE, "height": height}
    if canvas.pixels is not None:  # keeps a page of many photos small
        photo = data_uri(canvas.pixels, LONGEST_SIDE, QUALITY)
        parts.append(h("image", href=photo, **whole, preserveAspectRatio="none"))
    else:
        parts.append(h("rect", class_="blank", **whole))
    tags: list[Html] = []
    for i in canvas.largest_first():
        (x1, y1, x2, y2), colour = boxes[i].tolist(), COLOURS[colours[i]]
        frame: dict[str, Any] = {"x": x1, "y": y1, "width": max(x2 - x1, 1.0), "height": max(y2 - y1, 1.0)}
        inner = [
            h("rect", class_="heat", **frame),
            h("rect", class_="halo", **frame),
            h("rect", class_="line", stroke=colour, **frame),
            h("text", class_="share", x=(x1 + x2) / 2, y=(y1 + y2) / 2 + 6, text_anchor="middle"),
        ]
        parts.append(h("g", inner, class_="box", data_box=i, role="button", tabindex=-1, aria_label=f"box {texts[i]}"))
        (x, y), (w, tall) = corners[i].tolist(), sizes[i].tolist()
        paint: dict[str, Any] = {"font_size": size, "text_anchor": "middle", "fill": text_on(colour)}
        name = h("text", texts[i], x=x + w / 2, y=y + tall * 0.72, **paint)
        tags.append(
            h("g", h("rect", x=x, y=y, width=w, height=tall, rx=2, fill=colour), name, class_="tag", data_box=i)
        )
    # Names lie above all boxes: a line through a name can't be read.
    parts += [h("g", class_="rays"), *tags]
    svg = h("svg", *parts, viewBox=f"0 0 {SIDE:g} {height:.1f}", role="group", aria_label=f"Boxes of {title}")
    return h("figure", svg, class_="photo" if canvas.pixels is not None else "photo empty")


def graph_drawing(
    graph: SceneGraph, canvas: Canvas, links: Mapping[int, Link], colours: Sequence[int], kinds: Sequence[str] = ()
) -> Html:
    """The graph as SVG: entities, and a pill per pair of `links` (by number); `kinds` gives each link's key of KINDS.

    If there are many, only the entities of `links` are shown.
    """
    words: dict[tuple[int, int], list[str]] = {}
    members: dict[tuple[int, int], list[int]] = {}
    for k, (s, o, predicate) in links.items():
        if predicate not in words.setdefault((s, o), []):
            words[s, o].append(predicate)
        members.setdefault((s, o), []).append(k)
    best = {  # the best kind among the triplets of a pair
        pair: (min((kinds[k] for k in some), key=list(KINDS).index) if kinds else "plain", " ".join(map(str, some)))
        for pair, some in members.items()
    }
    count = len(words) + (len(graph) if len(graph) <= CROWD else len({end for pair in words for end in pair}))
    panel = (SIDE / UNIT, float(np.clip(0.17 * count + 1.6, 3.6, 8.0)))
    nodes = arrange(numbered(graph.names), canvas.centres, words, panel, points=9.4 if count <= 30 else 8.0)
    parts = [_link(nodes, k, *best[pair]) for k, pair in enumerate(nodes.links)]
    for k, i in enumerate(nodes.shown):
        colour, lone = COLOURS[colours[i]], i not in nodes.linked
        fill, ink = (None, None) if lone else (colour, text_on(colour))
        look = {"class_": "node lone" if lone else "node", "data_box": i, "aria_label": f"object {nodes.texts[k]}"}
        parts.append(_node(nodes, k, 1.36, {"fill": fill, "stroke": colour, "rx": 6}, ink, look))
    for k, pair in enumerate(nodes.links, len(nodes.shown)):
        kind, numbers = best[pair]
        look = {"class_": f"pill {kind}", "data_link": numbers}
        look["aria_label"] = f"relation {nodes.texts[k]}{KINDS[kind]}"
        parts.append(_node(nodes, k, 1.3, {"rx": float(nodes.sizes[k, 1]) * UNIT / 2}, None, look))
    note = h("figcaption", f"{nodes.left_out} boxes without a relation shown are left out") if nodes.left_out else None
    svg = h("svg", *parts, viewBox=f"0 0 {SIDE:g} {panel[1] * UNIT:g}", role="group", aria_label="The graph")
    return h("figure", svg, note, class_="graph")


def _link(nodes: Arrangement, k: int, kind: str, numbers: str) -> Html:
    tail, in_, out, tip = (point * UNIT for point in nodes.arrow(k))
    way = tip - out
    length = max(float(np.hypot(*way)), 1e-6)
    along, across = way / length, np.array([-way[1], way[0]]) / length
    head = tip - along * min(9.0, length)
    wings = [head + across * 4.2, head - across * 4.2]
    arrow = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (tip, *wings)) + "Z"
    path = "".join(f"{step}{x:.1f} {y:.1f}" for step, (x, y) in zip("MLML", (tail, in_, out, head), strict=True))
    lines = h("path", d=path), h("path", class_="tip", d=arrow)
    return h("g", *lines, class_=f"edge {kind}", data_link=numbers)


def _node(
    nodes: Arrangement, k: int, scale: float, frame: dict[str, Any], ink: str | None, look: dict[str, Any]
) -> Html:
    """Text in a rectangle."""
    (x, y), (w, tall), size = (nodes.at[k] * UNIT).tolist(), (nodes.sizes[k] * UNIT).tolist(), nodes.points * scale
    rect = h("rect", x=x - w / 2, y=y - tall / 2, width=w, height=tall, **frame)
    text = h("text", nodes.texts[k], x=x, y=y + size * 0.35, font_size=size, text_anchor="middle", fill=ink)
    return h("g", rect, text, role="button", tabindex=-1, **look)
