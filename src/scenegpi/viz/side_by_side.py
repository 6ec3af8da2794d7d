"""A page with two graphs of each image side by side, and what only one of them says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from scenegpi.evaluation.changes import Change, Triple
from scenegpi.files import whole_file
from scenegpi.viz.notebook import notebook_html
from scenegpi.viz.report.markup import Html, h

STYLE = "body{font:15px sans-serif;margin:24px;color:#222}td{padding:0 8px 0 0}section{margin:0 0 32px}"
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
MOST = 12


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
    more = f" and {len(only) - MOST} more" if len(only) > MOST else ""
    return ("; ".join(" ".join(triple) for triple in only[:MOST]) or "nothing") + more
