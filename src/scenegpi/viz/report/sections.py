"""Sections of the page with numbers: figures, the table with published ones, curves, predicates."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import Any

from scenegpi.errors import counted
from scenegpi.metrics.published import PREDICATE_RECALL_AT_5, published
from scenegpi.metrics.result import Result
from scenegpi.metrics.table import figure_table
from scenegpi.viz.report.charts import bar, curves, dot_plot, gauge, known_series
from scenegpi.viz.report.exhibit import middle
from scenegpi.viz.report.markup import Html, h, join, table
from scenegpi.viz.report.source import Source

MEANING = {
    "R": "of an image's relations, found among the first {k} triplets",
    "mR": "the same, with equal weight for every predicate, rare ones too",
    "ngR": "found when a pair may be given several predicates",
    "zR": "of triplets never seen in training",
}
SHORT = 16
"""Number of predicates shown at first; the style sheet has the same number."""
Interval = tuple[float, float] | None


def figures_section(first: Result, results: dict[str, Result]) -> Html:
    """Large numbers with their intervals, the protocol under them, and other figures of the same model."""
    k, ks = middle(first.protocol), first.protocol.ks
    names = [f"R@{each}" for each in ks] + [f"{family}@{k}" for family in ("mR", "ngR", "zR")]
    tiles = [_tile(first, name, name == f"R@{k}") for name in names if isfinite(first.figures.get(name, nan))]
    parts: list[Html | None] = [h("div", *tiles, class_="tiles"), h("p", f"{first.protocol}.", class_="protocol")]
    parts += [h("p", note, class_="note") for note in first.notes]
    others = {name: each for name, each in results.items() if not _same(each, first)}
    if others:
        parts.append(_others(others, [f"R@{each}" for each in ks] + [f"mR@{k}", f"ngR@{k}"]))
    return join(*parts)


def _tile(result: Result, name: str, lead: bool) -> Html:
    value, interval = result.figures[name], _known(result.intervals.get(name))
    family, _, at = name.partition("@")
    spread = f"95% interval {100 * interval[0]:.1f} to {100 * interval[1]:.1f}" if interval else None
    return h(
        "div",
        h("h3", name),
        h("p", f"{100 * value:.1f}", h("small", "%"), class_="big"),
        gauge(value, interval),
        h("p", spread, class_="interval") if spread else None,
        h("p", MEANING[family].format(k=at), class_="meaning"),
        class_="tile lead" if lead else "tile",
    )


def _known(interval: Interval) -> Interval:
    return interval if interval is not None and all(map(isfinite, interval)) else None


def _same(one: Result, other: Result) -> bool:
    """Whether the figures of a model's card repeat those above."""
    shared = set(one.figures) & set(other.figures)
    near = all(abs(one.figures[name] - other.figures[name]) < 1e-4 for name in shared)
    return one is other or (one.images == other.images and near)


def _others(results: dict[str, Result], names: list[str]) -> Html:
    names = [name for name in names if any(name in each.figures for each in results.values())]
    rows = [
        h("tr", h("th", label, scope="row"), h("td", f"{each.images:,}" if each.images else ""), _cells(each, names))
        for label, each in results.items()
    ]
    heading = h("h3", "Other figures of this model")
    return h("div", heading, table(["scored on", "images", *names], rows), class_="others")


def _cells(row: Any, names: Sequence[str]) -> list[Html]:
    """Figures of a row with their intervals."""
    cells = []
    for name in names:
        value, interval = row.figures.get(name, nan), _known(row.intervals.get(name))
        spread = h("small", f"{100 * interval[0]:.1f}–{100 * interval[1]:.1f}") if interval else None
        cells.append(h("td", f"{100 * value:.1f}", spread) if isfinite(value) else h("td", "–"))
    return cells


def is_visual_genome(predicates: frozenset[str]) -> bool:
    """Whether these are the predicates of VG150: figures on others can't be compared with published ones."""
    return len(predicates) == 50 and predicates >= PREDICATE_RECALL_AT_5.keys()


def published_section(source: Source, first: Result) -> Html | None:
    """The table with published rows, and a dot plot of each of its columns."""
    if not is_visual_genome(source.predicates):
        return None
    rows = published(first.protocol.task)
    names = [name for name in ("R@50", "R@100", "ngR@50", "ngR@100") if name in first.figures]
    if not rows or not names:
        return None
    beside = figure_table({source.name: first}, names, rows, mark=True)
    plots, choices = [], []
    for n, name in enumerate(names):
        dots: dict[bool, list[Any]] = {True: [], False: []}
        for row in beside.rows:
            if isfinite(row.figures.get(name, nan)):
                dots[row.source == "ours"].append((row.system, row.figures[name], row.intervals.get(name)))
        plot = dot_plot(name, dots[True], dots[False])
        plots.append(h("figure", plot, class_="plot", data_plot=name, hidden=n > 0))
        choices.append(h("button", name, type="button", data_plot=name, aria_pressed="true" if n == 0 else "false"))
    body = [
        h(
            "tr",
            h("th", row.system, h("sup", row.marks) if row.marks else None, scope="row"),
            _cells(row, names),
            h("td", row.source),
            class_="ours" if row.source == "ours" else None,
        )
        for row in beside.rows
    ]
    return join(
        h("div", choices, class_="choices", role="group", aria_label="Which figure"),
        *plots,
        h("p", beside.caption, class_="protocol"),
        h("ul", [h("li", note) for note in beside.notes], class_="notes"),
        h("details", h("summary", "As a table"), table(["system", *names, "source"], body)),
    )


def training_section(source: Source, charts: dict[str, Any]) -> Html:
    """Curves, and the log as a table; adds the values for the script to `charts`."""
    log = source.log
    xs = [row.get("epoch", k + 1.0) for k, row in enumerate(log)]
    recall = known_series(log, ("R@20", "R@50", "R@100", "mR@50"))
    best = None
    if any("R@50" in row for row in log):
        best = xs[max(range(len(log)), key=lambda k: log[k].get("R@50", -1.0))]
    parts = []
    for identity, label, series in (
        ("chart-recall", "Validation recall, %", recall),
        ("chart-loss", "Training loss", known_series(log, ("loss",))),
    ):
        if any(isfinite(v) for values in series.values() for v in values):
            chart, charts[identity] = curves(identity, label, xs, series, best)
            parts.append(h("figure", h("figcaption", label), chart))
    names = list(dict.fromkeys(name for row in log for name in row))
    rows = [h("tr", [h("td", _short(row.get(name))) for name in names]) for row in log[:500]]
    seconds = sum(row.get("seconds", 0.0) for row in log)
    long = f"{seconds / 60:.1f} minutes" if seconds >= 60 else counted(round(seconds), "second")
    said = f"The log as a table: {counted(len(log), 'epoch')}{f', {long}' if seconds else ''}"
    return join(h("div", *parts, class_="charts"), h("details", h("summary", said), table(names, rows)))


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:g}" if value == int(value) else f"{value:.4g}"


def predicate_section(result: Result) -> Html:
    """Predicates by how often they occur: count, recall at the middle K, recall@5 within the pair and the paper's.

    A table whose cells are bars, so that it can be read, sorted, and read aloud.
    """
    columns, protocol = result.per_predicate, result.protocol
    k, pair = middle(protocol), f"pair-R@{protocol.pair_k}"
    name = f"R@{k}" if f"R@{k}" in columns else f"ngR@{k}"
    counts = columns.get("relations", {})
    order = sorted((p for p in counts if counts[p] > 0), key=lambda p: (-counts[p], p))
    most = max((counts[p] for p in order), default=1.0)
    with_pair = pair in columns
    beside = with_pair and protocol.pair_k == 5 and is_visual_genome(frozenset(counts))
    rows = []
    for p in order:
        value, own = (columns.get(column, {}).get(p, nan) for column in (name, pair))
        paper = PREDICATE_RECALL_AT_5[p][2] if beside and p in PREDICATE_RECALL_AT_5 else None
        cells = [
            h("th", p, scope="row"),
            h("td", bar(counts[p] / most, style="count"), h("span", f"{counts[p]:,.0f}")),
            _share(value, None),
            _share(own, paper) if with_pair else None,
        ]
        sorted_by = {"data_recall": value if isfinite(value) else -1.0, "data_pair": own if isfinite(own) else -1.0}
        rows.append(h("tr", cells, data_name=p.lower(), data_count=counts[p], **sorted_by))
    heads = [("name", "predicate"), ("count", "relations"), ("recall", name)]
    heads += [("pair", f"among its pair's first {protocol.pair_k}")] if with_pair else []
    headings = []
    for key, text in heads:
        button = h("button", text, type="button", data_sort=key)
        headings.append(h("th", button, scope="col", aria_sort="descending" if key == "count" else "none"))
    long = len(rows) > SHORT
    more = h("button", f"Show all {len(rows)}", type="button", class_="more", aria_expanded="false") if long else None
    note = "The upright mark is the paper's GPI (linguistic), on its own test split. " if beside else ""
    absent = len(counts) - len(order)
    left = f"{counted(absent, 'predicate')} not in these images." if absent else ""
    intro = h("p", "Click a heading to sort by its column. ", note, left)
    return join(intro, table(headings, rows, "bars short" if long else "bars"), more)


def _share(value: float, tick: float | None) -> Html:
    text = f"{100 * value:.0f}%" if isfinite(value) else "–"
    beside = h("span", f", the paper {100 * tick:.0f}%", class_="unseen") if tick is not None else None
    return h("td", bar(value, tick), h("span", text, beside))
