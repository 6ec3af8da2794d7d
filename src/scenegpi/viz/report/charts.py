"""Charts as SVG: curves over epochs, a dot plot next to published figures, bars for predicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, isfinite, log10, nan
from typing import Any

from scenegpi.viz.report.markup import Html, h
from scenegpi.viz.text import shortened

WIDE, TALL, LEFT, RIGHT, TOP, FOOT = 560.0, 270.0, 46.0, 74.0, 14.0, 34.0
HIGHEST, LINE = 9.0, 15.0
"""The topmost centre of a line of text that is not cut off; and its height."""


def curves(
    identity: str, label: str, xs: Sequence[float], series: Mapping[str, Sequence[float]], best: float | None
) -> tuple[Html, Any]:
    """A chart over epochs of values (or NaN) by name, and the values for the page's script, which reads them out."""
    every = [v for values in series.values() for v in values if isfinite(v)]
    low, high, ticks = nice_range(min(every), max(every))
    span = max(xs[-1] - xs[0], 1e-9) if len(xs) > 1 else 1.0
    x = {at: LEFT + (WIDE - LEFT - RIGHT) * ((at - xs[0]) / span if len(xs) > 1 else 0.5) for at in xs}

    def y(value: float) -> float:
        return TOP + (TALL - TOP - FOOT) * (high - value) / (high - low)

    parts = [_line("grid", LEFT, y(tick), WIDE - RIGHT, y(tick)) for tick in ticks]
    parts += [_text("tick", f"{tick:g}", LEFT - 8, y(tick) + 4, "end") for tick in ticks]
    parts += [_text("tick", f"{at:g}", x[at], TALL - FOOT + 18, "middle") for at in xs[:: max(1, ceil(len(xs) / 9))]]
    parts.append(_text("tick", "epoch", WIDE - RIGHT, TALL - 3, "end"))
    if best is not None and best in x:
        shift, anchor = (-5, "end") if x[best] > WIDE - RIGHT - 70 else (5, "start")  # no room at the right end
        parts.append(_line("best", x[best], TOP, x[best], TALL - FOOT))
        parts.append(_text("best-name", "best epoch", x[best] + shift, TALL - FOOT - 6, anchor))
    ends = []
    for style, (name, values) in enumerate(series.items()):
        points = [(x[e], y(v)) for e, v in zip(xs, values, strict=True) if isfinite(v)]
        if not points:
            continue
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        parts.append(h("path", class_=f"curve s{style}", d=path))
        if len(points) <= 40:
            parts += [h("circle", class_=f"dot s{style}", cx=a, cy=b, r=2.6) for a, b in points]
        ends.append((style, name, points[-1][1]))
    for (style, name, _), at_y in zip(ends, _apart([end for *_, end in ends]), strict=True):
        parts.append(_text(f"end s{style}", name, WIDE - RIGHT + 9, at_y + 4))
    parts.append(h("line", class_="cross", x1=0, x2=0, y1=TOP, y2=TALL - FOOT, visibility="hidden"))
    svg = h("svg", *parts, viewBox=f"0 0 {WIDE:g} {TALL:g}", role="img", aria_label=label)
    read = h("output", class_="readout", aria_live="polite")
    data = {
        "x": [round(x[at], 1) for at in xs],
        "at": [float(at) for at in xs],
        "series": [[name, [round(v, 4) if isfinite(v) else None for v in each]] for name, each in series.items()],
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

    parts = [_line("grid", x(t / 100), 8, x(t / 100), tall - 30) for t in ticks]
    parts += [_text("tick", f"{t:g}", x(t / 100), tall - 12, "middle") for t in ticks]
    split = 8 + step * len(ours) + gap / 2
    parts.append(_line("split", 0, split, wide, split))
    parts.append(_text("tick", "published, on the official test split", wide - 8, split + 14, "end"))
    ordered = [(dot, "ours") for dot in ours]
    ordered += [(dot, "theirs") for dot in sorted(theirs, key=lambda dot: dot[1], reverse=True)]
    for k, ((system, value, interval), kind) in enumerate(ordered):
        y = 20 + k * step + (gap if kind == "theirs" else 0)
        parts.append(_line(f"stem {kind}", left, y, x(value), y))
        if interval is not None:
            parts.append(_line("whisker", x(interval[0]), y, x(interval[1]), y))
        if kind == "ours":
            parts.append(h("path", class_=kind, d=f"M{x(value):.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z"))  # a diamond
        else:
            parts.append(h("circle", class_=kind, cx=x(value), cy=y, r=4.5))
        parts.append(_text(f"system {kind}", shortened(system, 30), left - 12, y + 4, "end"))
        parts.append(_text(f"value {kind}", f"{100 * value:.1f}", wide - 8, y + 4, "end"))
    label = f"{name} of ours and of published systems"
    return h("svg", *parts, viewBox=f"0 0 {wide:g} {tall:g}", role="img", aria_label=label)


def _line(class_: str, x1: float, y1: float, x2: float, y2: float) -> Html:
    return h("line", class_=class_, x1=x1, x2=x2, y1=y1, y2=y2)


def _text(class_: str, text: str, x: float, y: float, anchor: str | None = None) -> Html:
    return h("text", text, class_=class_, x=x, y=y, text_anchor=anchor)


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
    if interval is not None:
        low, wide = 200 * interval[0], max(200 * (interval[1] - interval[0]), 1.5)
        parts.append(h("rect", class_="interval", x=low, y=1, width=wide, height=10, rx=3))
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


def known_series(log: Sequence[Mapping[str, float]], names: Sequence[str]) -> dict[str, list[float]]:
    """The columns that a log has, by name."""
    known = [name for name in names if any(name in row for row in log)]
    return {name: [row.get(name, nan) for row in log] for name in known}


def _apart(ys: Sequence[float]) -> list[float]:
    """Heights of names at the ends of lines: near their lines, clear of each other, not cut off."""
    order = sorted(range(len(ys)), key=lambda k: ys[k])
    placed = [ys[k] for k in order]
    for _ in range(50):
        for a in range(len(placed) - 1):
            push = (LINE - (placed[a + 1] - placed[a])) / 2
            if push > 0:
                placed[a], placed[a + 1] = placed[a] - push, placed[a + 1] + push
    for a in range(len(placed)):
        placed[a] = max(placed[a], placed[a - 1] + LINE if a else HIGHEST)
    back = dict(zip(order, placed, strict=True))
    return [back[k] for k in range(len(ys))]
