"""One image of the gallery: boxes on the photo, the graph, what was said and what was missed, linked by numbers.

Everything that belongs to box i carries `data-box="i"`, everything of triplet k `data-link="k"`; the page's script
does the rest. Without it, and on paper, all of it can still be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from scenegpi.errors import counted
from scenegpi.graph import SceneGraph
from scenegpi.metrics.explain import Explained, explain
from scenegpi.metrics.protocol import Protocol
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import COLOURS, deal_colours
from scenegpi.viz.report.drawing import graph_drawing, photo_drawing
from scenegpi.viz.report.exhibit import Shown, middle
from scenegpi.viz.report.markup import Html, h
from scenegpi.viz.text import numbered

LEAST, MOST = 8, 20
_SAID = {True: ("✓", "right", "in the ground truth"), False: ("✗", "wrong", "not in the ground truth")}


def scene(shown: Shown, number: int, protocol: Protocol) -> tuple[Html, Html, dict[str, Any]]:
    """The article of an image, its thumbnail, and the numbers that the script needs."""
    graph, truth = shown.prediction, shown.truth
    canvas = Canvas.of(graph, shown.photo)
    colours = deal_colours(canvas.boxes)
    if truth is None:
        return _unscored(shown, number, canvas, colours)
    ranked = explain(graph, truth, len(graph.vocabulary.predicates), protocol)
    said = ranked[: max(LEAST, min(MOST, len(truth.relations)))]
    k = middle(protocol)
    found = {row for each in ranked[:k] for row in each.rows}
    lost = [i for i in range(len(truth.relations)) if i not in found]
    missed = list({tuple(truth.relations[i].tolist()): i for i in reversed(lost)}.values())[::-1]  # each one once
    links = [(each.subject, each.object, graph.vocabulary.predicates[each.predicate]) for each in said]
    if protocol.given_boxes:  # otherwise the boxes of the truth are others
        rows = truth.relations[missed].tolist()
        links += [(s, o, truth.vocabulary.predicates[p]) for s, o, p in rows]
    size = f"{len(graph)} {'box' if len(graph) == 1 else 'boxes'}"
    kinds = ["right" if each.rows else "wrong" for each in said] + ["missed"] * (len(links) - len(said))
    name = str(truth.file or truth.image_id or f"image {number + 1}")
    total = len(truth.relations)
    head = h(
        "header",
        h("h3", name),
        h(
            "p",
            h("span", shown.why, class_=f"badge {shown.why}"),
            f" {total - len(lost)} of {total} relations found among the first {k}, {size}",
            class_="facts",
        ),
    )
    lists = (
        _said(graph, said),
        _missed(truth, missed, len(said), protocol, k),
        _attributes(truth, "Attributes in the ground truth"),
        _attention(shown),
    )
    article, data = _article(graph, canvas, colours, number, name, head, links, kinds, lists)
    if shown.attention is not None:
        data["rows"] = np.rint(1000 * shown.attention.neighbours).astype(int).tolist()
        data["nodes"] = np.rint(1000 * shown.attention.nodes).astype(int).tolist()
    label = f"{name}, {shown.why}, {100 * shown.recall:.0f}% of its relations found"
    badge = h("span", f"{100 * shown.recall:.0f}%", class_=f"badge {shown.why}")
    return article, _thumb(canvas, colours, number, label, badge, shown.why), data


def _unscored(shown: Shown, number: int, canvas: Canvas, colours: list[int]) -> tuple[Html, Html, dict[str, Any]]:
    """As `scene`, of an image without ground truth."""
    graph = shown.prediction
    name = str(graph.file or graph.image_id or f"image {number + 1}")
    triplets = graph.triplets(top=MOST)
    links = [(t.subject_index, t.object_index, t.predicate) for t in triplets]
    facts = f"{counted(len(graph), 'box')}, {counted(len(graph.relations), 'relation')}"
    names = numbered(graph.names)
    rows = [
        _row(k, "plain", "", "", [names[s], " ", h("em", predicate), " ", names[o]], f"{triplets[k].score:.2f}")
        for k, (s, o, predicate) in enumerate(links)
    ]
    body = h("ol", *rows) if rows else h("p", "No relation is sure enough.", class_="none")
    lists = (h("section", h("h4", "Relations, best first"), body, class_="said"), _attributes(graph, "Attributes"))
    head = h("header", h("h3", name), h("p", facts, class_="facts"))
    article, data = _article(graph, canvas, colours, number, name, head, links, ["plain"] * len(links), lists)
    badge = h("span", str(len(graph.relations)), class_="badge")
    return article, _thumb(canvas, colours, number, f"{name}, {facts}", badge, ""), data


def _article(
    graph: SceneGraph,
    canvas: Canvas,
    colours: list[int],
    number: int,
    name: str,
    head: Html,
    links: list[tuple[int, int, str]],
    kinds: list[str],
    lists: Sequence[Html | None],
) -> tuple[Html, dict[str, Any]]:
    stage = h(
        "div",
        photo_drawing(canvas, graph.names, colours, name),
        graph_drawing(graph, canvas, links, kinds, colours),
        class_="stage",
    )
    article = h(
        "article", head, stage, h("div", *lists, class_="lists"), class_="scene", id=f"scene-{number}",
        data_scene=number, role="tabpanel", aria_labelledby=f"thumb-{number}",
    )  # fmt: skip
    return article, {"names": numbered(graph.names), "links": [x[:2] for x in links]}


def _said(graph: SceneGraph, said: list[Explained]) -> Html:
    rows = []
    for k, each in enumerate(said):
        sign, kind, meaning = _SAID[bool(each.rows)]
        rows.append(
            _row(k, kind, sign, meaning, _words(graph, each.subject, each.predicate, each.object), f"{each.score:.2f}")
        )
    body = h("ol", *rows) if rows else h("p", "Nothing was said of this image.", class_="none")
    return h("section", h("h4", "Said, best first"), body, class_="said")


def _missed(truth: SceneGraph, missed: list[int], start: int, protocol: Protocol, k: int) -> Html:
    rows = []
    for n, row in enumerate(missed):
        s, o, p = truth.relations[row].tolist()
        link = start + n if protocol.given_boxes else None
        rows.append(_row(link, "missed", "○", "missed", _words(truth, s, p, o), ""))
    body = h("ol", *rows) if rows else h("p", f"None: every relation is among the first {k}.", class_="none")
    return h("section", h("h4", f"Missed by the first {k}"), body, class_="missed")


def _attributes(graph: SceneGraph, title: str) -> Html | None:
    """What the data say of each object, not what a model saw; nothing where they say nothing."""
    rows = zip(numbered(graph.names), graph.attributes or (), strict=False)
    said = [
        _row(None, "plain", "", "", [name, ": ", ", ".join(word for word, _ in row)], "") for name, row in rows if row
    ]
    return h("section", h("h4", title), h("ol", *said[:MOST]), class_="said") if said else None


def _words(graph: SceneGraph, s: int, p: int, o: int) -> list[object]:
    names = numbered(graph.names)
    return [names[s], " ", h("em", graph.vocabulary.predicates[p]), " ", names[o]]


def _row(link: int | None, kind: str, sign: str, meaning: str, words: list[object], score: str) -> Html:
    mark = (
        [h("span", sign, class_="sign", aria_hidden="true"), h("span", f"{meaning}: ", class_="unseen")] if sign else []
    )
    inner = [*mark, h("span", *words, class_="words"), h("span", score, class_="score") if score else None]
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
