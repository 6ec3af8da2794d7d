"""Recall of each predicate: a table whose cells are bars, so that it can be read, sorted, and read aloud."""

from __future__ import annotations

from math import isfinite

from scenegpi.errors import counted
from scenegpi.metrics.published import PREDICATE_RECALL_AT_5
from scenegpi.metrics.result import Result
from scenegpi.viz.report.charts import bar
from scenegpi.viz.report.exhibit import middle
from scenegpi.viz.report.markup import Html, h, join
from scenegpi.viz.report.sections import is_visual_genome

SHORT = 16
"""Rows that are shown at first; the style sheet knows this number too."""


def predicate_section(result: Result) -> Html:
    """Predicates by how often they occur: count, recall at the middle K, recall@5 within the pair and the paper's."""
    k = middle(result.protocol)
    columns = result.per_predicate
    name = f"R@{k}" if f"R@{k}" in columns else f"ngR@{k}"
    pair = f"pair-R@{result.protocol.pair_k}"
    counts = columns.get("relations", {})
    order = sorted((p for p in counts if counts[p] > 0), key=lambda p: (-counts[p], p))
    absent = len(counts) - len(order)
    most = max((counts[p] for p in order), default=1.0)
    with_pair = pair in columns
    beside = with_pair and result.protocol.pair_k == 5 and is_visual_genome(frozenset(counts))
    rows = []
    for p in order:
        value = columns.get(name, {}).get(p, float("nan"))
        paper = PREDICATE_RECALL_AT_5[p][2] if beside and p in PREDICATE_RECALL_AT_5 else None
        own = columns.get(pair, {}).get(p, float("nan"))
        cells = [
            h("th", p, scope="row"),
            h("td", bar(counts[p] / most, style="count"), h("span", f"{counts[p]:,.0f}")),
            _share(value, None),
            _share(own, paper) if with_pair else None,
        ]
        keys = {
            "data_name": p.lower(),
            "data_count": counts[p],
            "data_recall": _number(value),
            "data_pair": _number(own),
        }
        rows.append(h("tr", cells, **keys))
    head = [("name", "predicate"), ("count", "relations"), ("recall", name)]
    head += [("pair", f"among its pair's first {result.protocol.pair_k}")] if with_pair else []
    headings = [
        h(
            "th",
            h("button", text, type="button", data_sort=key),
            scope="col",
            aria_sort="descending" if key == "count" else "none",
        )
        for key, text in head
    ]
    table = h(
        "table", h("thead", h("tr", headings)), h("tbody", *rows), class_="bars short" if len(rows) > SHORT else "bars"
    )
    more = None
    if len(rows) > SHORT:
        more = h("button", f"Show all {len(rows)}", type="button", class_="more", aria_expanded="false")
    note = "The upright mark is the paper's GPI (linguistic), on its own test split. " if beside else ""
    left = f"{counted(absent, 'predicate')} not in these images." if absent else ""
    return join(h("p", "A heading sorts by its column. ", note, left), h("div", table, class_="scroll"), more)


def _share(value: float, tick: float | None) -> Html:
    text = f"{100 * value:.0f}%" if isfinite(value) else "–"
    beside = h("span", f", the paper {100 * tick:.0f}%", class_="unseen") if tick is not None else None
    return h("td", bar(value, tick), h("span", text, beside))


def _number(value: float) -> float:
    return value if isfinite(value) else -1.0
