"""One image of the gallery: boxes on the photo, the graph, relations predicted and missed, linked by numbers.

Everything that belongs to box i carries `data-box="i"`, everything of triplet k `data-link="k"`; the page's script
does the rest. Without it, and on paper, all of it can still be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scenegpi.errors import counted
from scenegpi.graph import SceneGraph
from scenegpi.metrics.explain import explain
from scenegpi.metrics.protocol import Protocol
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import COLOURS, deal_colours
from scenegpi.viz.report.drawing import Link, graph_drawing, photo_drawing
from scenegpi.viz.report.exhibit import Shown, middle
from scenegpi.viz.report.markup import Html, h
from scenegpi.viz.text import numbered

LEAST, MOST = 8, 20
Parts = tuple[list[Link], list[str], list[Html | None], str]
"""The links of a drawing, their kinds, the lists next to it, and a line of facts."""
SIGNS = {"right": ("✓", "in the ground truth"), "wrong": ("✗", "not in the ground truth"), "missed": ("○", "missed")}


def scene(shown: Shown, number: int, protocol: Protocol) -> tuple[Html, Html, dict[str, Any]]:
    """The article of an image, its thumbnail, and the data for the script."""
    graph = shown.prediction
    name = str((shown.truth or graph).file or (shown.truth or graph).image_id or f"image {number + 1}")
    canvas = Canvas.of(graph, shown.photo)
    colours = deal_colours(canvas.boxes)
    links, kinds, lists, facts = _unscored(graph) if shown.truth is None else _scored(shown, shown.truth, protocol)
    badge, label = str(len(graph.relations)), f"{name}, {facts}"
    if shown.truth is not None:
        badge = f"{100 * shown.recall:.0f}%"
        label = f"{name}, {shown.why}, {badge} of its relations found"
    first = [h("span", shown.why, class_=f"badge {shown.why}"), " "] if shown.truth is not None else None
    photo = photo_drawing(canvas, graph.names, colours, name)
    pictures = photo, graph_drawing(graph, canvas, dict(enumerate(links)), colours, kinds)
    article = h(
        "article",
        h("header", h("h3", name), h("p", first, facts, class_="facts")),
        h("div", *pictures, class_="stage"),
        h("div", *lists, class_="lists"),
        class_="scene", id=f"scene-{number}", data_scene=number, role="tabpanel", aria_labelledby=f"thumb-{number}",
    )  # fmt: skip
    data: dict[str, Any] = {"names": numbered(graph.names), "links": [link[:2] for link in links]}
    if shown.attention is not None:
        data["rows"] = np.rint(1000 * shown.attention.neighbours).astype(int).tolist()
        data["nodes"] = np.rint(1000 * shown.attention.nodes).astype(int).tolist()
    mark = h("span", badge, class_=f"badge {shown.why}".strip())
    return article, _thumb(canvas, colours, number, label, mark, shown.why), data


def _scored(shown: Shown, truth: SceneGraph, protocol: Protocol) -> Parts:
    """The predicted relations, and the missed ones."""
    graph, total = shown.prediction, len(truth.relations)
    names, theirs, words = numbered(graph.names), numbered(truth.names), graph.vocabulary.predicates
    ranked = explain(graph, truth, len(words), protocol)
    said = ranked[: max(LEAST, min(MOST, total))]
    k = middle(protocol)
    found = {row for each in ranked[:k] for row in each.rows}
    lost = [i for i in range(total) if i not in found]
    missed = list({tuple(truth.relations[i].tolist()): i for i in reversed(lost)}.values())[::-1]  # each one once
    links: list[Link] = [(each.subject, each.object, words[each.predicate]) for each in said]
    kinds = ["right" if each.rows else "wrong" for each in said]
    rows = [
        _row(n, kind, _words(names, link), f"{each.score:.2f}")
        for n, (kind, link, each) in enumerate(zip(kinds, links, said, strict=True))
    ]
    gone: list[Link] = [(s, o, truth.vocabulary.predicates[p]) for s, o, p in truth.relations[missed].tolist()]
    own = protocol.given_boxes  # otherwise the ground truth has other boxes
    absent = [_row(len(said) + n if own else None, "missed", _words(theirs, link)) for n, link in enumerate(gone)]
    lists = [
        _list("Predicted, best first", rows, "said", "No relations were predicted."),
        _list(f"Missed by the first {k}", absent, "missed", f"None: every relation is among the first {k}."),
        _attributes(truth, "Attributes in the ground truth"),
        _attention(shown),
    ]
    if own:
        links, kinds = links + gone, kinds + ["missed"] * len(gone)
    facts = f"{total - len(lost)} of {total} relations found among the first {k}, {counted(len(graph), 'box')}"
    return links, kinds, lists, facts


def _unscored(graph: SceneGraph) -> Parts:
    """The predicted relations of an image without ground truth."""
    names, triplets = numbered(graph.names), graph.triplets(top=MOST)
    links: list[Link] = [(t.subject_index, t.object_index, t.predicate) for t in triplets]
    rows = [_row(k, "plain", _words(names, link), f"{triplets[k].score:.2f}") for k, link in enumerate(links)]
    said = _list("Relations, best first", rows, "said", "No relation is likely enough.")
    facts = f"{counted(len(graph), 'box')}, {counted(len(graph.relations), 'relation')}"
    return links, ["plain"] * len(links), [said, _attributes(graph, "Attributes")], facts


def _list(title: str, rows: Sequence[Html], class_: str, none: str) -> Html:
    body = h("ol", *rows) if rows else h("p", none, class_="none")
    return h("section", h("h4", title), body, class_=class_)


def _attributes(graph: SceneGraph, title: str) -> Html | None:
    """The attributes in the data, which no model predicts."""
    pairs = zip(numbered(graph.names), graph.attributes or (), strict=False)
    rows = [_row(None, "plain", [name, ": ", ", ".join(word for word, _ in row)]) for name, row in pairs if row]
    return _list(title, rows[:MOST], "said", "") if rows else None


def _words(names: Sequence[str], link: Link) -> list[object]:
    return [names[link[0]], " ", h("em", link[2]), " ", names[link[1]]]


def _row(link: int | None, kind: str, words: list[object], score: str = "") -> Html:
    sign, meaning = SIGNS.get(kind, ("", ""))
    mark = [h("span", sign, class_="sign", aria_hidden="true"), h("span", f"{meaning}: ", class_="unseen")]
    inner = [mark if sign else None, h("span", *words, class_="words")]
    inner.append(h("span", score, class_="score") if score else None)
    if link is None:
        return h("li", h("div", *inner, class_=f"triplet {kind}"))
    return h("li", h("button", *inner, class_=f"triplet {kind}", type="button", data_link=link))


def _attention(shown: Shown) -> Html | None:
    if shown.attention is None:
        return None
    hint = "Click an object, or press Enter on it, to see which others it attends to."
    return h(
        "section",
        h("h4", "Attention"),
        h("p", h("button", "of the whole picture", type="button", class_="whole", aria_pressed="false")),
        h("div", h("p", hint, class_="none"), class_="weights", aria_live="polite"),
        class_="attention",
    )


def _thumb(canvas: Canvas, colours: list[int], number: int, label: str, badge: Html, why: str) -> Html:
    scale = 120 / canvas.width
    tall = min(max(canvas.height * scale, 40.0), 160.0)
    frames = [
        h("rect", x=x1, y=y1, width=max(x2 - x1, 1.0), height=max(y2 - y1, 1.0), stroke=COLOURS[colours[i]])
        for i, (x1, y1, x2, y2) in enumerate((canvas.boxes * scale).tolist())
    ]
    svg = h("svg", *frames, viewBox=f"0 0 120 {tall:.1f}", preserveAspectRatio="xMidYMid slice", aria_hidden="true")
    first = number == 0
    tab = {"role": "tab", "aria_controls": f"scene-{number}", "aria_selected": "true" if first else "false"}
    tab |= {"aria_label": label, "type": "button", "id": f"thumb-{number}", "class_": "thumb"}
    return h("button", svg, badge, data_scene=number, data_why=why, tabindex=0 if first else -1, **tab)
