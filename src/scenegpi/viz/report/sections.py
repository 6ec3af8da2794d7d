"""Sections of the page that are made of numbers: figures, the table beside published ones, training curves."""

from __future__ import annotations

from math import isfinite
from typing import Any

from scenegpi.errors import counted
from scenegpi.metrics.published import PREDICATE_RECALL_AT_5, published
from scenegpi.metrics.result import Result
from scenegpi.metrics.table import figure_table
from scenegpi.viz.report.charts import curves, dot_plot, gauge, known_series
from scenegpi.viz.report.exhibit import middle
from scenegpi.viz.report.markup import Html, h, join
from scenegpi.viz.report.source import Source

MEANING = {
    "R": "of an image's relations, found among the first {k} triplets",
    "mR": "the same, with equal weight for every predicate, rare ones too",
    "ngR": "found when a pair may be given several predicates",
    "zR": "of triplets never seen in training",
}


def figures_section(first: Result, results: dict[str, Result]) -> Html:
    """Large numbers with their intervals, the protocol under them, and other scorings of the same model."""
    k = middle(first.protocol)
    ks = first.protocol.ks
    names = [f"R@{each}" for each in ks] + [f"{family}@{k}" for family in ("mR", "ngR", "zR")]
    tiles = []
    for name in names:
        value = first.figures.get(name, float("nan"))
        if not isfinite(value):
            continue
        family, _, at = name.partition("@")
        interval = first.intervals.get(name)
        sure = interval is not None and all(map(isfinite, interval))
        text = f"95% interval {100 * interval[0]:.1f} to {100 * interval[1]:.1f}" if interval and sure else ""
        tiles.append(
            h(
                "div",
                h("h3", name),
                h("p", f"{100 * value:.1f}", h("small", "%"), class_="big"),
                gauge(value, interval),
                h("p", text, class_="interval") if text else None,
                h("p", MEANING[family].format(k=at), class_="meaning"),
                class_="tile lead" if name == f"R@{k}" else "tile",
            )
        )
    parts: list[Html | None] = [h("div", *tiles, class_="tiles"), h("p", f"{first.protocol}.", class_="protocol")]
    parts += [h("p", note, class_="note") for note in first.notes]
    others = {name: each for name, each in results.items() if not _same(each, first)}
    if others:
        parts.append(_others(others, [f"R@{each}" for each in ks] + [f"mR@{k}", f"ngR@{k}"]))
    return join(*parts)


def _same(one: Result, other: Result) -> bool:
    """Whether the figures of a model's card repeat those above."""
    shared = set(one.figures) & set(other.figures)
    return one is other or (
        one.images == other.images and all(abs(one.figures[n] - other.figures[n]) < 1e-4 for n in shared)
    )


def _others(results: dict[str, Result], names: list[str]) -> Html:
    names = [name for name in names if any(name in each.figures for each in results.values())]
    head = h(
        "tr",
        h("th", "scored on", scope="col"),
        h("th", "images", scope="col"),
        [h("th", n, scope="col") for n in names],
    )
    rows = []
    for label, each in results.items():
        cells = [_cell(each.figures.get(name), each.intervals.get(name)) for name in names]
        images = f"{each.images:,}" if each.images else ""
        rows.append(h("tr", h("th", label, scope="row"), h("td", images), cells))
    table = h("table", h("thead", head), h("tbody", *rows), class_="numbers")
    return h("div", h("h3", "Other figures of this model"), h("div", table, class_="scroll"), class_="others")


def _cell(value: float | None, interval: tuple[float, float] | None) -> Html:
    if value is None or not isfinite(value):
        return h("td", "–")
    spread = None
    if interval is not None and all(map(isfinite, interval)):
        spread = h("small", f"{100 * interval[0]:.1f}–{100 * interval[1]:.1f}")
    return h("td", f"{100 * value:.1f}", spread)


def is_visual_genome(predicates: frozenset[str]) -> bool:
    """Whether these are the predicates of VG150: figures on others can't be compared with published ones."""
    return len(predicates) == 50 and predicates >= PREDICATE_RECALL_AT_5.keys()


def published_section(source: Source, first: Result) -> Html | None:
    """The table beside published rows, and a dot plot of each of its columns."""
    if not is_visual_genome(source.predicates):
        return None
    rows = published(first.protocol.task)
    names = [name for name in ("R@50", "R@100", "ngR@50", "ngR@100") if name in first.figures]
    if not rows or not names:
        return None
    table = figure_table({source.name: first}, names, rows, mark=True)
    plots, choices = [], []
    for n, name in enumerate(names):
        there = [row for row in table.rows if isfinite(row.figures.get(name, float("nan")))]
        ours, theirs = (
            [
                (row.system, row.figures[name], row.intervals.get(name))
                for row in there
                if (row.source == "ours") is mine
            ]
            for mine in (True, False)
        )
        plots.append(h("figure", dot_plot(name, ours, theirs), class_="plot", data_plot=name, hidden=n > 0))
        choices.append(h("button", name, type="button", data_plot=name, aria_pressed="true" if n == 0 else "false"))
    head = h(
        "tr",
        h("th", "system", scope="col"),
        [h("th", name, scope="col") for name in names],
        h("th", "source", scope="col"),
    )
    body = [
        h(
            "tr",
            h("th", row.system, h("sup", row.marks) if row.marks else None, scope="row"),
            [_cell(row.figures.get(name), row.intervals.get(name)) for name in names],
            h("td", row.source),
            class_="ours" if row.source == "ours" else None,
        )
        for row in table.rows
    ]
    notes = h("ul", [h("li", note) for note in table.notes], class_="notes")
    return join(
        h("div", choices, class_="choices", role="group", aria_label="Which figure"),
        *plots,
        h("p", table.caption, class_="protocol"),
        notes,
        h(
            "details",
            h("summary", "As a table"),
            h("div", h("table", h("thead", head), h("tbody", *body), class_="numbers"), class_="scroll"),
        ),
    )


def training_section(source: Source, charts: dict[str, Any]) -> Html:
    log = source.log
    xs = [row.get("epoch", k + 1.0) for k, row in enumerate(log)]
    recall = known_series(log, ("R@20", "R@50", "R@100", "mR@50"))
    monitored = next((each for each in recall if each.name == "R@50"), None)
    best = None
    if monitored is not None:
        best = xs[
            max(range(len(xs)), key=lambda k: (monitored.values[k] if isfinite(monitored.values[k]) else -1.0, -k))
        ]
    parts = []
    for identity, label, series in (
        ("chart-recall", "Validation recall, %", recall),
        ("chart-loss", "Training loss", known_series(log, ("loss",))),
    ):
        if any(isfinite(v) for each in series for v in each.values):
            chart, charts[identity] = curves(identity, label, xs, series, best)
            parts.append(h("figure", h("figcaption", label), chart))
    names = list(dict.fromkeys(name for row in log for name in row))
    head = h("tr", [h("th", name, scope="col") for name in names])
    rows = [h("tr", [h("td", _short(row.get(name))) for name in names]) for row in log[:500]]
    table = h("table", h("thead", head), h("tbody", *rows), class_="numbers")
    seconds = sum(row.get("seconds", 0.0) for row in log)
    time = (
        f", {seconds / 60:.1f} minutes"
        if seconds >= 60
        else f", {counted(round(seconds), 'second')}"
        if seconds
        else ""
    )
    summary = h("summary", f"The log as a table: {counted(len(log), 'epoch')}{time}")
    return join(h("div", *parts, class_="charts"), h("details", summary, h("div", table, class_="scroll")))


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:g}" if value == int(value) else f"{value:.4g}"
