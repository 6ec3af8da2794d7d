r"""Where a model looks: how much each object counts for one object, and for the picture as a whole.

The weights are those of the model's own GPI layer, at its last step (or another): w_ij over the neighbours j of each
object i, and v_i over all objects. Attention over features has a weight for each feature; shown is their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import INK, MUTED
from scenegpi.viz.picture import drawing, fitted, part, picture_file, save
from scenegpi.viz.tags import place_tags
from scenegpi.viz.text import named, set_text, text_sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from scenegpi.prediction import Predictor

HEAT = "#D55E00"
_WIDE, _TALL, _HEAD, _EDGE = 6.6, 7.0, 0.62, 0.12


@dataclass(frozen=True)
class Attention:
    """`neighbours` (N, N): row i sums to one over the others (0 on the diagonal); `nodes` (N,) sums to one."""

    neighbours: NDArray[np.float64]
    nodes: NDArray[np.float64]


def attention(predictor: Predictor, graph: SceneGraph, photo: Any = None, step: int = -1) -> Attention:
    """The weights of a model's attention on the boxes of a graph; GraphError where the model has none.

    Args:
        predictor: one that keeps all boxes (`PredictOptions.scoring`), and whose model has attention.
        graph: its boxes, and its labels or their distributions.
        photo: for a model that uses it.
        step: of the recurrence; the last by default.
    """
    from scenegpi.gpi import one_weight, recorded_attention
    from scenegpi.prediction import Item

    with recorded_attention(predictor.model) as calls:
        prediction = next(predictor.stream([Item(photo, graph)]))
    found = prediction.graph
    if found is None:
        raise GraphError(prediction.problem)
    if not calls:
        raise GraphError("attention: this model has no context, it reads each pair alone")
    if not -len(calls) <= step < len(calls):
        raise GraphError(f"attention: step {step}, but this model takes {len(calls)}")
    call = calls[step]
    if call.edge_attention is None or call.node_attention is None:
        raise GraphError("attention: this model sums over its neighbours, it weighs none")
    matrix = np.zeros((len(graph), len(graph)))
    if found.pairs is not None and len(found.pairs):
        matrix[tuple(found.pairs.T)] = one_weight(call.edge_attention).double().cpu().numpy()
    return Attention(matrix, one_weight(call.node_attention).double().cpu().numpy())


def draw_attention(
    graph: SceneGraph, weights: Attention, target: str | Path, node: int | None = None, photo: Any = None
) -> Path:
    """Two panels, PNG or SVG: attention of one object over its neighbours, and attention over all objects.

    `node` is the object; by default the one whose attention is least even, which tells most.
    """
    target = picture_file(target)
    if not len(graph):
        raise GraphError("attention: the graph has no boxes")
    if node is None:
        node = most_telling(weights)
    if not 0 <= node < len(graph):
        raise GraphError(f"attention: box {node}, but there are {len(graph)}, counted from 0")
    canvas = Canvas.of(graph, photo)
    shown = fitted(canvas.width, canvas.height, (_WIDE, _TALL))
    sheet = (2 * shown[0] + 4 * _EDGE, shown[1] + _HEAD + _EDGE)
    titles = (
        f"what {named(graph.names[node], node)} attends to",
        "what the graph vector attends to",
    )
    with drawing() as new_figure:
        figure = new_figure(sheet)
        for k, row in enumerate((weights.neighbours[node], weights.nodes)):
            left = _EDGE + k * (shown[0] + 2 * _EDGE)
            axes = figure.add_axes(part(sheet, left, _EDGE, *shown))
            draw_weights(axes, canvas, graph.names, row, shown, node if k == 0 else None)
            y = 1 - 0.2 / sheet[1]
            figure.text(
                left / sheet[0], y, set_text(titles[k], 60), fontsize=11.5, weight="bold", color=INK, va="center"
            )
            sums = "weights over the other objects, sum 100%" if k == 0 else "weights over all objects, sum 100%"
            figure.text(left / sheet[0], 1 - 0.43 / sheet[1], sums, fontsize=9.5, color=MUTED, va="center")
        save(figure, target)
    return target


def most_telling(weights: Attention) -> int:
    """The object whose attention over its neighbours has the highest weight of all."""
    return int(weights.neighbours.max(axis=1).argmax())


def draw_weights(
    axes: Axes,
    canvas: Canvas,
    names: list[str],
    weights: NDArray[np.float64],
    inches: tuple[float, float],
    node: int | None,
) -> None:
    """Boxes filled the more, the more they count (N,), with their share in words; lines to them from `node`."""
    from matplotlib.patches import Rectangle

    from scenegpi.viz.panels import draw_canvas, draw_tag, tag_points

    draw_canvas(axes, canvas)
    n, boxes = len(names), canvas.boxes
    if canvas.pixels is not None:  # the photo steps back, so that the fills can be compared
        axes.add_patch(Rectangle((0, 0), canvas.width, canvas.height, facecolor="white", alpha=0.45, linewidth=0))
    # Even attention is shown as half strength: otherwise what says nothing would look like what says most.
    strong = weights / max(float(weights.max(initial=0.0)), 2 / max(len(weights), 1), 1e-9)
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    for i in np.argsort(-np.prod(boxes[:, 2:] - boxes[:, :2], axis=1), kind="stable").tolist():
        x1, y1, x2, y2 = boxes[i].tolist()
        frame: dict[str, Any] = {"xy": (x1, y1), "width": x2 - x1, "height": y2 - y1}
        own = i == node
        axes.add_patch(Rectangle(**frame, facecolor=HEAT, alpha=0.0 if own else 0.42 * strong[i], linewidth=0))
        edge, line = ("#0072B2", 3.0) if own else (HEAT, 0.6 + 2.0 * float(strong[i]))
        axes.add_patch(Rectangle(**frame, fill=False, edgecolor="white", linewidth=line + 1.4, alpha=0.8))
        axes.add_patch(Rectangle(**frame, fill=False, edgecolor=edge, linewidth=line))
        if node is not None and not own:
            ends = np.stack([centres[node], centres[i]])
            axes.plot(*ends.T, color=HEAT, linewidth=0.4 + 4.5 * float(strong[i]), alpha=0.75, zorder=3)
    kept = [i for i in range(n) if i == node or strong[i] >= 0.15] if n > 12 else list(range(n))
    points = tag_points(len(kept))
    texts = [set_text(named(names[i], i)) + ("" if i == node else f"  {100 * weights[i]:.0f}%") for i in kept]
    unit = np.array([canvas.width / inches[0], canvas.height / inches[1]])
    sizes = (text_sizes(texts, points, "bold") - np.array([0.02, 0.2 * points / 72])) * unit
    corners = place_tags(np.clip(boxes[kept], 0, [canvas.width, canvas.height] * 2), sizes, canvas.width, canvas.height)
    for k, i in enumerate(kept):
        colour = "#0072B2" if i == node else HEAT if strong[i] >= 0.6 else "#F2C6A5"
        draw_tag(axes, texts[k], corners[k], sizes[k], colour, points)
