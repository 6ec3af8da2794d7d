"""The figure of section 5.1: accuracy against samples, zoomed in, against time, and at sizes not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenegpi.files import whole_file
from scenegpi.paper.labelling.models import COMPARED
from scenegpi.paper.labelling.report import Point, at_sizes, curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart with any colour vision; markers and dashes tell them apart in print.
_STYLE: dict[str, dict[str, Any]] = {
    "gpi": {"color": "#0072B2", "marker": "o", "label": r"GPI, $\rho(z_k, s_k, g)$"},
    "gpi-strict": {"color": "#56B4E9", "marker": "s", "label": r"GPI strict, $\rho(z_k, g)$"},
    "lstm": {"color": "#D55E00", "marker": "^", "label": "LSTM"},
    "fc": {"color": "#009E73", "marker": "D", "label": "fully connected"},
    "gpi-edges": {"color": "#CC79A7", "marker": "v", "label": "GPI over edges, mean"},
}
_INK, _FAINT = "#333333", "#8a8a8a"
_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "svg.hashsalt": "scenegpi",
}
_ZOOM_FROM = 0.96


def draw_labelling(results: Mapping[str, Any], folder: Path) -> list[Path]:
    """Writes ``labelling.png`` and ``labelling.svg`` into the folder; each file is there whole or not at all."""
    import matplotlib

    paths = [folder / "labelling.png", folder / "labelling.svg"]
    with matplotlib.rc_context(_SETTINGS):
        figure = labelling_figure(results)
        for path, unwanted in zip(paths, ("Software", "Date"), strict=True):
            # The same results give the same file, byte by byte: no date inside.
            with whole_file(path) as part:
                figure.savefig(part, format=path.suffix[1:], dpi=160, metadata={unwanted: None})
    return paths


def labelling_figure(results: Mapping[str, Any]) -> Figure:
    """The figure itself; results as in the experiment's ``results.json``."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    cells, ceiling = results["cells"], results["strict_ceiling"]
    nodes = min(cell["nodes"] for cell in cells)
    small = [cell for cell in cells if cell["nodes"] == nodes]
    shared = max(cell["samples"] for cell in small if cell["model"] == "gpi")
    figure = Figure(figsize=(10.4, 7.6), layout=ConstrainedLayoutEngine(w_pad=0.09, h_pad=0.09))
    whole, zoomed, seconds, sizes = figure.subplots(2, 2).flat

    for axes in (whole, zoomed):
        _samples_panel(axes, small, nodes)
    whole.axhline(100 * ceiling, color=_STYLE["gpi-strict"]["color"], linewidth=1, linestyle=(0, (1, 2)))
    whole.annotate(
        rf"most that any $\rho(z_k, g)$ can reach: {ceiling:.1%}",
        (max(cell["samples"] for cell in small), 100 * ceiling),
        xytext=(0, 4), textcoords="offset points", ha="right", fontsize=8, color=_FAINT,
    )  # fmt: skip
    whole.set(title=f"a  Accuracy against training graphs, n = {nodes}", ylim=(30, 103))
    zoomed.set(title=f"b  The same, above {_ZOOM_FROM:.0%}", ylim=(100 * _ZOOM_FROM, 100.15))
    zoomed.set_xlim(right=1.2 * shared)
    _time_panel(seconds, [cell for cell in small if cell["samples"] == shared and cell["model"] in COMPARED], shared)
    _sizes_panel(sizes, small, shared, nodes)
    named: dict[str, Any] = {}
    for axes in (sizes, whole):
        handles, labels = axes.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    shown = {style["label"]: named[style["label"]] for style in _STYLE.values() if style["label"] in named}
    place: Any = {"loc": "outside upper center", "ncols": len(shown)}
    figure.legend(list(shown.values()), list(shown), frameon=False, fontsize=10, **place)
    return figure


def _samples_panel(axes: Axes, cells: Sequence[dict[str, Any]], nodes: int) -> None:
    for height, model in enumerate(reversed(COMPARED), start=2):
        _band(axes, curve(cells, model, nodes), _STYLE[model] | {"zorder": height})
    axes.set_xscale("log")
    counts = sorted({cell["samples"] for cell in cells})
    axes.set_xticks(counts, [f"{x // 1000}k" if x >= 1000 else str(x) for x in counts])
    axes.minorticks_off()
    axes.set(xlabel="training graphs", ylabel="nodes labelled correctly, %")


def _time_panel(axes: Axes, cells: Sequence[dict[str, Any]], samples: int) -> None:
    """Validation accuracy in the course of training, a thin line per seed, against CPU seconds."""
    for cell in cells:
        style = _STYLE[cell["model"]]
        axes.plot(
            [max(check[2], 1e-2) for check in cell["checks"]],
            [100 * check[3] for check in cell["checks"]],
            color=style["color"], linewidth=1.3, alpha=0.85,
        )  # fmt: skip
        axes.plot(cell["checks"][-1][2], 100 * cell["checks"][-1][3], style["marker"], color=style["color"])
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.set(
        title=f"c  While training on {samples:,} graphs", xlabel="CPU seconds of training", ylim=(30, 103),
        ylabel="validation accuracy, %",
    )  # fmt: skip


def _sizes_panel(axes: Axes, cells: Sequence[dict[str, Any]], samples: int, nodes: int) -> None:
    for model in ("gpi", "gpi-edges", "lstm"):
        style = _STYLE[model]
        _band(axes, at_sizes(cells, model, samples, "same_degree"), style)
        _band(axes, at_sizes(cells, model, samples, "same_probability"), style | {"linestyle": (0, (2, 2)), "mfc": "w"})
    axes.axvline(nodes, color=_FAINT, linewidth=1)
    axes.annotate("trained on", (nodes, 4), xytext=(4, 0), textcoords="offset points", fontsize=8, color=_FAINT)
    axes.plot([], [], color=_INK, label=f"same mean degree as at n = {nodes}")
    axes.plot([], [], color=_INK, linestyle=(0, (2, 2)), label="same edge probability: larger counts")
    own = [line for line in axes.get_lines() if line.get_color() == _INK]
    names = [str(line.get_label()) for line in own]
    axes.legend(own, names, frameon=False, fontsize=8, loc="upper right", bbox_to_anchor=(1, 0.93))
    axes.set(
        title="d  On sizes not trained on", xlabel="nodes n of the test graphs", ylim=(0, 103),
        ylabel="nodes labelled correctly, %",
    )  # fmt: skip


def _band(axes: Axes, points: Sequence[Point], style: Mapping[str, Any]) -> None:
    """Mean over seeds as a line, lowest to highest as a band."""
    if not points:
        return
    x = [point.x for point in points]
    axes.fill_between(
        x, [100 * p.low for p in points], [100 * p.high for p in points], color=style["color"], alpha=0.18, linewidth=0
    )
    axes.plot(x, [100 * p.mean for p in points], **style)
