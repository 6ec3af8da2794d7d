"""A picture of one image's matching: boxes, ranked triplets, ground-truth rows, and lines between what matches.

`python -m scenegpi.paper.figures.matching docs/images/metrics-matching.png` draws the example of docs/metrics.md.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Protocol, box_iou, scene_graph_recall
from scenegpi.metrics.explain import Explained, explain
from scenegpi.vocabulary import Vocabulary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRUE, FOUND, FAINT, INK = "#009E73", "#D55E00", "#8A8A8A", "#1A1A1A"
LINE = 0.16
"""Height of a line of the two lists, in parts of the panel."""


def example() -> tuple[SceneGraph, SceneGraph]:
    """A detector's prediction and the ground truth of an imaginary photo, 320 x 240."""
    vocabulary = Vocabulary(["man", "horse", "hat", "dog"], ["riding", "wearing", "near", "behind"])
    boxes = [[120, 40, 190, 150], [90, 90, 290, 210], [132, 24, 178, 58], [12, 165, 62, 215]]
    relations = [[0, 1, 0], [0, 2, 1], [0, 2, 1], [3, 1, 2]]
    image: dict[str, Any] = {"image_id": "imaginary photo", "width": 320, "height": 240}
    target = SceneGraph(boxes, [0, 1, 2, 3], vocabulary, relations, **image)
    pairs = [[0, 2], [0, 1], [3, 1], [2, 1], [1, 0]]
    dist = [
        [0.05, 0.02, 0.90, 0.02, 0.01],
        [0.10, 0.75, 0.02, 0.08, 0.05],
        [0.09, 0.03, 0.01, 0.75, 0.12],
        [0.60, 0.05, 0.05, 0.20, 0.10],
        [0.30, 0.05, 0.05, 0.10, 0.50],
    ]
    found = [[116, 36, 194, 146], [84, 86, 282, 214], [136, 22, 182, 60], [30, 148, 78, 196]]
    known: dict[str, Any] = {"scores": [0.95, 0.9, 0.85, 0.8], "pairs": pairs, "pair_dist": dist}
    return SceneGraph(found, [0, 1, 2, 3], vocabulary, **known, **image), target


def draw_matching(
    prediction: SceneGraph, target: SceneGraph, file: str | Path, protocol: Protocol | None = None, k: int = 3
) -> Path:
    """Writes the picture (PNG or SVG by the suffix). `k` is where the ranking is cut off."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    file, protocol = Path(file), protocol or Protocol("sgdet", ks=(k, 8))
    ranked = explain(prediction, target, len(target.vocabulary.predicates), protocol)[:8]
    figure = Figure(figsize=(13, 4.4), facecolor="white")
    left = figure.add_axes((0.01, 0.02, 0.36, 0.9))
    right = figure.add_axes((0.4, 0.02, 0.59, 0.82))
    _draw_boxes(left, prediction, target)
    _draw_lists(right, prediction, target, ranked, k)
    result = scene_graph_recall([prediction], [target], Protocol(protocol.task, "graph", (k,), protocol.iou))
    found = len({row for triplet in ranked[:k] for row in triplet.rows})
    title = f"R@{k} of this image: {found} of {len(target.relations)} rows found = {result.figures[f'R@{k}']:.2f}"
    figure.text(0.4, 0.95, title, fontsize=13, weight="bold", color=INK, va="center")
    unwanted = {"Software": None} if file.suffix == ".png" else None
    with whole_file(file) as part:
        figure.savefig(part, format=file.suffix[1:], dpi=110, metadata=unwanted)
    return file


def _draw_boxes(axes: Axes, prediction: SceneGraph, target: SceneGraph) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    width, height = target.width or 1, target.height or 1
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
    for (x1, y1, x2, y2), name in zip(target.boxes.tolist(), target.names, strict=True):
        axes.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, color=TRUE, linewidth=2))
        axes.text(x1, y1 - 3, name, color=TRUE, fontsize=10, va="bottom", bbox=behind)
    overlap = box_iou(prediction.boxes, target.boxes)
    for (x1, y1, x2, y2), name, iou in zip(prediction.boxes.tolist(), prediction.names, overlap, strict=True):
        axes.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, color=FOUND, linestyle="--", linewidth=1.6))
        tag = f"{name}, IoU {iou.max():.2f}"
        axes.text(x2, y2 + 3, tag, color=FOUND, fontsize=9, ha="right", va="top", bbox=behind)
    axes.set(xlim=(0, width), ylim=(height, 0), xticks=[], yticks=[], aspect="equal")
    keys = [Line2D([], [], color=TRUE, label="ground truth"), Line2D([], [], color=FOUND, ls="--", label="predicted")]
    axes.legend(handles=keys, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=10, frameon=False, borderpad=0)


def _draw_lists(axes: Axes, prediction: SceneGraph, target: SceneGraph, ranked: list[Explained], k: int) -> None:
    names = prediction.vocabulary.predicates
    first: dict[int, int] = {}
    for rank, triplet in enumerate(ranked):
        for row in triplet.rows:
            first.setdefault(row, rank)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.axis("off")
    axes.text(0, 1.0, "ranked triplets, one predicate per pair", fontsize=11, color=INK, va="bottom")
    axes.text(0.66, 1.0, "ground-truth rows", fontsize=11, color=INK, va="bottom")

    def height(line: int, below: bool = False) -> float:
        return 0.9 - LINE * line - (0.05 if below else 0.0)

    for rank, triplet in enumerate(ranked):
        y = height(rank, rank >= k)
        words = (prediction.names[triplet.subject], names[triplet.predicate], prediction.names[triplet.object])
        inside = rank < k
        text = f"{rank + 1}.  {triplet.score:.2f}   {' '.join(words)}"
        axes.text(0, y, text, fontsize=12, color=INK if inside else FAINT, va="center")
        if triplet.reason:
            axes.text(0.035, y - 0.062, triplet.reason, fontsize=9, color=FOUND if inside else FAINT, va="center")
        for row in triplet.rows:
            axes.plot([0.36, 0.645], [y, height(row)], color=TRUE if inside else FAINT, linewidth=1.6, alpha=0.9)
    cut = height(k, True) + LINE / 2 - 0.005
    axes.plot([0, 0.5], [cut, cut], color=INK, linewidth=1, linestyle=":")
    axes.text(0.5, cut, f"  K = {k}", fontsize=10, color=INK, va="center")
    for row, (s, o, p) in enumerate(target.relations.tolist()):
        hit = first.get(row, len(ranked)) < k
        words = (target.names[s], target.vocabulary.predicates[p], target.names[o])
        axes.text(0.66, height(row), " ".join(words), fontsize=12, color=TRUE if hit else INK, va="center")
        axes.text(
            0.93, height(row), "found" if hit else "not found", fontsize=10, color=TRUE if hit else FAINT, va="center"
        )


if __name__ == "__main__":
    print(draw_matching(*example(), sys.argv[1]))
