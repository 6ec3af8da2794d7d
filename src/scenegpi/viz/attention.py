r"""Attention of a model: how much each object counts for one object, and for the picture as a whole.

The weights are those of the model's GPI layer, at its last step by default: w_ij over the neighbours j of each object
i, and v_i over all objects. Attention over features has a weight for each feature; their mean is shown.
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
from scenegpi.viz.name_tags import place_tags
from scenegpi.viz.palette import INK, MUTED
from scenegpi.viz.panels import draw_canvas, draw_frame, draw_tag, tag_points, tag_sizes
from scenegpi.viz.picture import fitted, picture_file
from scenegpi.viz.sheet import Panel, Sheet
from scenegpi.viz.text import numbered, shortened

if TYPE_CHECKING:
    from scenegpi.prediction import PredictOptions, Predictor

HEAT, OWN = "#D55E00", "#0072B2"
_WIDE, _TALL, _HEAD, _EDGE = 6.6, 7.0, 0.62, 0.12


@dataclass(frozen=True)
class Attention:
    """`neighbours` (N, N): row i sums to one over the others (0 on the diagonal); `nodes` (N,) sums to one."""

    neighbours: NDArray[np.float64]
    nodes: NDArray[np.float64]


def attention(
    predictor: Predictor, graph: SceneGraph, photo: Any = None, step: int = -1, options: PredictOptions | None = None
) -> Attention:
    """The weights of a model's attention on the boxes of a graph, at a step; GraphError if the model has no attention.

    `options` must keep all boxes (`PredictOptions.scoring`); by default those of the predictor.
    """
    from scenegpi.gpi import recorded_attention
    from scenegpi.models import SceneModel
    from scenegpi.prediction import Item

    if not isinstance(predictor.model, SceneModel):
        raise GraphError("attention: not available from an ONNX file; open the model with backend='torch'")
    with recorded_attention(predictor.model) as calls:
        prediction = next(predictor.stream([Item(photo, graph, options=options)]))
    found = prediction.graph
    if found is None:
        raise GraphError(prediction.problem)
    if not calls:
        raise GraphError("attention: this model has no context by a GPI layer")
    if not -len(calls) <= step < len(calls):
        raise GraphError(f"attention: step {step}, but this model takes {len(calls)}")
    call = calls[step]
    if call.edge_attention is None or call.node_attention is None:
        raise GraphError("attention: this model sums over its neighbours, it has no attention")
    matrix = np.zeros((len(graph), len(graph)))
    if found.pairs is not None and len(found.pairs):
        matrix[tuple(found.pairs.T)] = call.edge_attention.mean(1).double().cpu().numpy()
    return Attention(matrix, call.node_attention.mean(1).double().cpu().numpy())


def draw_attention(
    graph: SceneGraph, weights: Attention, target: str | Path, node: int | None = None, photo: Any = None
) -> Path:
    """Two panels, PNG or SVG: attention of one object over its neighbours, and attention over all objects.

    `node` is the object; by default the box with the most concentrated attention.
    """
    target = picture_file(target)
    if not len(graph):
        raise GraphError("attention: the graph has no boxes")
    if node is None:
        node = most_telling(weights)
    if not 0 <= node < len(graph):
        raise GraphError(f"attention: box {node}, but there are {len(graph)} boxes, counted from 0")
    canvas = Canvas.of(graph, photo)
    shown = fitted(*canvas.size, (_WIDE, _TALL))
    sheet = Sheet(2 * shown[0] + 4 * _EDGE, shown[1] + _HEAD + _EDGE)
    names = numbered(graph.names)
    titles = (f"what {names[node]} attends to", "what the graph vector attends to")
    for k, row in enumerate((weights.neighbours[node], weights.nodes)):
        left = _EDGE + k * (shown[0] + 2 * _EDGE)
        panel = sheet.panel(left, _HEAD, *shown, size=canvas.size)
        draw_weights(panel, canvas, names, row, node if k == 0 else None)
        sheet.text((left, 0.2), shortened(titles[k], 60), 11.5, INK, bold=True)
        sums = "weights over the other objects, sum 100%" if k == 0 else "weights over all objects, sum 100%"
        sheet.text((left, 0.43), sums, 9.5, MUTED)
    sheet.save(target)
    return target


def most_telling(weights: Attention) -> int:
    """The object whose attention over its neighbours has the highest weight of all."""
    return int(weights.neighbours.max(axis=1).argmax())


def draw_weights(
    panel: Panel, canvas: Canvas, names: list[str], weights: NDArray[np.float64], node: int | None
) -> None:
    """Boxes filled by their weights (N,), each with its share in percent; lines to them from `node`."""
    draw_canvas(panel, canvas)
    n, boxes = len(names), canvas.boxes
    if canvas.pixels is not None:  # a paler photo, so that the fills can be compared
        panel.rect((0, 0, *canvas.size), fill="#FFFFFF", alpha=0.45)
    # Uniform attention is drawn at half strength: otherwise it would look like attention to every box.
    strong = (weights / max(float(weights.max(initial=0.0)), 2 / max(len(weights), 1), 1e-9)).tolist()
    for i in canvas.largest_first():
        if i != node:
            panel.rect(boxes[i], fill=HEAT, alpha=0.42 * strong[i])
        edge, line = (OWN, 3.0) if i == node else (HEAT, 0.6 + 2.0 * strong[i])
        panel.rect(boxes[i], stroke="#FFFFFF", line=line + 1.4, alpha=0.8)
        panel.rect(boxes[i], stroke=edge, line=line)
    draw_frame(panel, canvas)
    centres = canvas.centres * canvas.size
    for i in canvas.largest_first():
        if node is not None and i != node:
            panel.line(centres[node], centres[i], HEAT, 0.4 + 4.5 * strong[i], alpha=0.75)
    kept = [i for i in range(n) if i == node or strong[i] >= 0.15] if n > 12 else list(range(n))
    points = tag_points(len(kept))
    texts = [names[i] + ("" if i == node else f"  {100 * weights[i]:.0f}%") for i in kept]
    sizes = tag_sizes(texts, points) / panel.scale
    corners = place_tags(canvas.inside[kept], sizes, *canvas.size)
    for k, i in enumerate(kept):
        colour = OWN if i == node else HEAT if strong[i] >= 0.6 else "#F2C6A5"
        draw_tag(panel, texts[k], corners[k], sizes[k], colour, points)
