"""Charts as SVG: curves over epochs, a dot plot beside published figures, bars for predicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any

from scenegpi.viz.report.markup import Html, h
from scenegpi.viz.text import shortened

WIDE, TALL, LEFT, RIGHT, TOP, FOOT = 560.0, 270.0, 46.0, 74.0, 14.0, 34.0
HIGHEST = 9.0
"""Where the middle of a line of text may be, so that it is not cut off."""


@dataclass(frozen=True)
class Series:
    """One line of a chart: `values` may hold NaN; `style` is its number in the style sheet."""

    name: str
    values: Sequence[float]
    style: int


def curves(
    identity: str, label: str, xs: Sequence[float], series: Sequence[Series], best: float | None
) -> tuple[Html, Any]:
    """A chart over epochs, and what the page's script needs to read values off it."""
    values = [v for each in series for v in each.values if isfinite(v)]
    low, high, ticks = nice_range(min(values), max(values))
    span = max(xs[-1] - xs[0], 1e-9) if len(xs) > 1 else 1.0
    x = {at: LEFT + (WIDE - LEFT - RIGHT) * ((at - xs[0]) / span if len(xs) > 1 else 0.5) for at in xs}

    def y(value: float) -> float:
        return TOP + (TALL - TOP - FOOT) * (high - value) / (high - low)

    parts: list[Html] = []
    for tick in ticks:
        parts.append(h("line", class_="grid", x1=LEFT, x2=WIDE - RIGHT, y1=y(tick), y2=y(tick)))
        parts.append(h("text", f"{tick:g}", class_="tick", x=LEFT - 8, y=y(tick) + 4, text_anchor="end"))
    for at in xs[:: max(1, ceil(len(xs) / 9))]:
        parts.append(h("text", f"{at:g}", class_="tick", x=x[at], y=TALL - FOOT + 18, text_anchor="middle"))
    parts.append(h("text", "epoch", class_="tick", x=WIDE - RIGHT, y=TALL - 3, text_anchor="end"))
    if best is not None and best in x:
        parts.append(h("line", class_="best", x1=x[best], x2=x[best], y1=TOP, y2=TALL - FOOT))
        # At the right end there is no room beside the line.
        late = x[best] > WIDE - RIGHT - 70
        parts.append(
            h("text", "best epoch", class_="best-name", x=x[best] + (-5 if late else 5), y=TALL - FOOT - 6,
              text_anchor="end" if late else "start")
        )  # fmt: skip
    ends = []
    for each in series:
        points = [(x[e], y(v)) for e, v in zip(xs, each.values, strict=True) if isfinite(v)]
        if not points:
            continue
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        parts.append(h("path", class_=f"curve s{each.style}", d=path))
        if len(points) <= 40:
            parts += [h("circle", class_=f"dot s{each.style}", cx=a, cy=b, r=2.6) for a, b in points]
        ends.append((each, points[-1][1]))
    places = _apart([end[1] for end in ends])
    for (each, _), at_y in zip(ends, places, strict=True):
        parts.append(h("text", each.name, class_=f"end s{each.style}", x=WIDE - RIGHT + 9, y=at_y + 4))
    parts.append(h("line", class_="cross", x1=0, x2=0, y1=TOP, y2=TALL - FOOT, visibility="hidden"))
    svg = h("svg", *parts, viewBox=f"0 0 {WIDE:g} {TALL:g}", role="img", aria_label=label)
    read = h("output", class_="readout", aria_live="polite")
    data = {
        "x": [round(x[at], 1) for at in xs],
        "at": [float(at) for at in xs],
        "series": [[s.name, [round(v, 4) if isfinite(v) else None for v in s.values]] for s in series],
    }
    hint = f"{label}. Left and right arrows read values epoch by epoch."
    return h("div", svg, read, class_="chart", id=identity, tabindex=0, role="group", aria_label=hint), data


Dot = tuple[str, float, tuple[float, float] | None]


def dot_plot(name: str, ours: Sequence[Dot], theirs: Sequence[Dot]) -> Html:
    """Systems on one axis, in percent: (name, figure in 0..1, interval). Ours are set apart."""
    step, left, wide, gap = 25.0, 236.0, 720.0, 34.0
    bounds = [v for _, value, interval in (*ours, *theirs) for v in (value, *(interval or ()))]
    low, high, ticks = nice_range(100 * min(bounds), 100 * max(bounds))
    tall = step * (len(ours) + len(theirs)) + gap + 40

    def x(value: float) -> float:
        return left + (wide - left - 64) * (100 * value - low) / (high - low)

    parts = [h("line", class_="grid", x1=x(t / 100), x2=x(t / 100), y1=8, y2=tall - 30) for t in ticks]
    parts += [h("text", f"{t:g}", class_="tick", x=x(t / 100), y=tall - 12, text_anchor="middle") for t in ticks]
    split = 8 + step * len(ours) + gap / 2
    parts.append(h("line", class_="split", x1=0, x2=wide, y1=split, y2=split))
    parts.append(
        h("text", "published, on the official test split", class_="tick", x=wide - 8, y=split + 14, text_anchor="end")
    )
    ordered = [(dot, "ours") for dot in ours]
    ordered += [(dot, "theirs") for dot in sorted(theirs, key=lambda dot: dot[1], reverse=True)]
    for k, ((system, value, interval), kind) in enumerate(ordered):
        y = 20 + k * step + (gap if kind == "theirs" else 0)
        parts.append(h("line", class_=f"stem {kind}", x1=left, x2=x(value), y1=y, y2=y))
        if interval is not None:
            parts.append(h("line", class_="whisker", x1=x(interval[0]), x2=x(interval[1]), y1=y, y2=y))
        diamond = f"M{x(value):.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z"
        mark = (
            h("path", class_=kind, d=diamond) if kind == "ours" else h("circle", class_=kind, cx=x(value), cy=y, r=4.5)
        )
        name_, figure = shortened(system, 30), f"{100 * value:.1f}"
        parts += [
            mark,
            h("text", name_, class_=f"system {kind}", x=left - 12, y=y + 4, text_anchor="end"),
            h("text", figure, class_=f"value {kind}", x=wide - 8, y=y + 4, text_anchor="end"),
        ]
    label = f"{name} of ours and of published systems"
    return h("svg", *parts, viewBox=f"0 0 {wide:g} {tall:g}", role="img", aria_label=label)


def bar(value: float, tick: float | None = None, style: str = "") -> Html:
    """A bar of a share in 0..1, with a mark at another share."""
    parts = [h("rect", class_="track", x=0, y=3, width=100, height=10, rx=2)]
    if isfinite(value):
        parts.append(h("rect", class_=f"fill {style}".strip(), x=0, y=3, width=100 * value, height=10, rx=2))
    if tick is not None:
        parts.append(h("rect", class_="mark", x=min(100 * tick, 99) - 0.6, y=0, width=1.4, height=16))
    return h("svg", *parts, viewBox="0 0 100 16", preserveAspectRatio="none", class_="bar", aria_hidden="true")


def gauge(value: float, interval: tuple[float, float] | None) -> Html:
    """A figure in 0..1 on a line from 0 to 100%, with its interval."""
    parts = [h("rect", class_="track", x=0, y=4, width=200, height=4, rx=2)]
    parts.append(h("rect", class_="fill", x=0, y=4, width=200 * value, height=4, rx=2))
    if interval is not None and all(map(isfinite, interval)):
        low, high = interval
        parts.append(
            h("rect", class_="interval", x=200 * low, y=1, width=max(200 * (high - low), 1.5), height=10, rx=3)
        )
    return h("svg", *parts, viewBox="0 0 200 12", class_="gauge", aria_hidden="true")


def nice_range(low: float, high: float) -> tuple[float, float, list[float]]:
    """A range that holds both, with round ticks."""
    if high - low < 1e-9:
        low, high = low - max(abs(low) * 0.05, 0.5), high + max(abs(high) * 0.05, 0.5)
    raw = (high - low) / 4
    unit = 10 ** floor(log10(raw))
    step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= raw)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    ticks = [round(step * k, 10) for k in range(first, last + 1)]
    return ticks[0], ticks[-1], ticks


def known_series(log: Sequence[Mapping[str, float]], names: Sequence[str]) -> list[Series]:
    """The columns of a log that are there, each with its own style."""
    return [
        Series(name, [row.get(name, float("nan")) for row in log], k)
        for k, name in enumerate(name for name in names if any(name in row for row in log))
    ]


def _apart(ys: Sequence[float], line: float = 15.0) -> list[float]:
    """Heights of names at the ends of lines: clear of each other, none higher or lower than it must, none cut off."""
    order = sorted(range(len(ys)), key=lambda k: ys[k])
    placed = [ys[k] for k in order]
    for _ in range(50):
        for a in range(len(placed) - 1):
            push = (line - (placed[a + 1] - placed[a])) / 2
            if push > 0:
                placed[a], placed[a + 1] = placed[a] - push, placed[a + 1] + push
    for a in range(len(placed)):
        placed[a] = max(placed[a], placed[a - 1] + line if a else HIGHEST)
    back = dict(zip(order, placed, strict=True))
    return [back[k] for k in range(len(ys))]
