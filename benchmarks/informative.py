"""The informative dial: recall against mean recall, PredCls, graph constraint.

    python benchmarks/informative.py --vg150 VG150 --allboxes VG150_ALLBOXES [--limit N] [--json FILE] [--draw FILE.png]

P(predicate) is divided by its training frequency to a power before ranking (`models.relation_counts`). (a) is
the test split of VG150, (b) the images with all their boxes. A model predicts once; each power weighs the same
distributions. Intervals: 95%, bootstrap over images.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from scenegpi import PredictOptions, Predictor, SceneGraph
from scenegpi.data import open_dataset
from scenegpi.files import read_json, write_json
from scenegpi.metrics import Plan, Protocol, RecallState
from scenegpi.prediction import scored_pairs

POWERS = (0.0, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.7, 1.0)
NAMES = ("R@20", "R@50", "R@100", "mR@20", "mR@50", "mR@100")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vg150", type=Path)
    parser.add_argument("--allboxes", type=Path)
    parser.add_argument("--model", default="vg150-layout")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--draw", type=Path, default=None)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if options.vg150 is None and options.allboxes is None and options.json is not None:
        rows = read_json(options.json)  # drawn again from what was measured
    for name, path, split in (("a", options.vg150, "test"), ("b", options.allboxes, None)):
        if path is not None:
            rows += measured(name, options.model, path, split, options.limit)
    for row in rows:
        cells = ("{} {:.1f} [{:.1f}, {:.1f}]".format(key, *(100 * v for v in row[key])) for key in ("R@50", "mR@50"))
        print(f"({row['data']}) {row['images']:,} images, power {row['power']}: {', '.join(cells)}")
    if options.json is not None:
        write_json(options.json, rows)
    if options.draw is not None:
        draw(rows, options.draw)


def measured(name: str, model: str, path: Path, split: str | None, limit: int) -> list[dict[str, Any]]:
    """A row for each power on one data set: each figure with its interval."""
    predictor = Predictor(model, options=PredictOptions.scoring("predcls"))
    counts = predictor.counts
    if counts is None:
        raise SystemExit(f"{model}: counts no training relations")
    data = open_dataset(path, split)
    data = data[:limit] if limit else data
    states = {
        power: RecallState(Plan(Protocol("predcls", constraint="graph"), predictor.model.vocabulary, bootstrap=1000))
        for power in POWERS
    }
    for found, truth in scored_pairs(predictor, data):
        for power, state in states.items():
            state.update([weighed(found, counts.informative, power)], [truth])
    rows = []
    for power, state in states.items():
        result = state.result()
        figures = {key: [result.figures[key], *result.intervals[key]] for key in NAMES}
        rows.append({"data": name, "images": result.images, "power": power, **figures})
    return rows


def weighed(graph: SceneGraph, informative: Any, power: float) -> SceneGraph:
    return graph.with_fields(pair_dist=informative(graph.pair_dist, power))


def draw(rows: list[dict[str, Any]], target: Path) -> None:
    """Mean recall over recall, a curve for each data set, the powers beside their points."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
    titles = {"a": "(a) VG150 test split", "b": "(b) images with all boxes"}
    for data, colour in (("a", "#0072B2"), ("b", "#D55E00")):
        points = [row for row in rows if row["data"] == data]
        if not points:
            continue
        x, y = ([100 * row[key][0] for row in points] for key in ("R@50", "mR@50"))
        axes.plot(x, y, "o-", color=colour, label=f"{titles[data]}, {points[0]['images']:,} images")
        for row, left, up in zip(points, x, y, strict=True):
            axes.annotate(f"{row['power']:g}", (left, up), (5, 4), textcoords="offset points", fontsize=8, color=colour)
    axes.set_xlabel("R@50, percent")
    axes.set_ylabel("mR@50, percent")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(target, dpi=130)


if __name__ == "__main__":
    main()
