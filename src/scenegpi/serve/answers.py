"""A prediction as the answer to a request: the graph, the alternatives of its pairs, its drawing."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from scenegpi.graph import SceneGraph
from scenegpi.graph_json import to_dict
from scenegpi.prediction import Prediction
from scenegpi.serve import schemas
from scenegpi.viz.canvas import Canvas
from scenegpi.viz.palette import COLOURS, deal_colours
from scenegpi.viz.report.drawing import graph_drawing


def predict_answer(request: schemas.PredictRequest, found: Prediction, model: str, why: str) -> schemas.PredictAnswer:
    """What /api/predict answers; `why` says how the model was chosen."""
    graph = found.graph
    assert graph is not None
    shown = graph.with_fields(label_dist=None, pairs=None, pair_dist=None)  # distributions are large
    notes = [f"{count} left out: {reason}" for reason, count in found.left_out.items()]
    canvas = Canvas.of(graph)
    colours = deal_colours(canvas.boxes)
    return schemas.PredictAnswer(
        graph=to_dict(shown),
        kept=found.kept.tolist(),
        model=model,
        why=why,
        photo_read=found.photo_read,
        notes=notes + ([found.why_unread] if found.why_unread else []),
        pairs=pairs_of(graph, request.alternatives) if request.alternatives else [],
        drawing=drawn(shown, canvas, colours) if request.drawing else None,
        colours=[COLOURS[k] for k in colours],
    )


def drawn(graph: SceneGraph, canvas: Canvas, colours: list[int], among: Collection[int] | None = None) -> str:
    """The graph as the report draws it, or only relations between these objects; triplet k is relation k."""
    links = {
        k: (s, o, graph.vocabulary.predicates[p])
        for k, (s, o, p) in enumerate(graph.relations.tolist())
        if among is None or {s, o} <= set(among)
    }
    return str(graph_drawing(graph, canvas, links, colours)) if len(graph) else ""


def pairs_of(graph: SceneGraph, count: int) -> list[schemas.Pair]:
    """Of every ordered pair, how probable it is that it is related, and its likeliest predicates."""
    if graph.pairs is None or graph.pair_dist is None:
        return []
    names, out = graph.vocabulary.predicates, []
    best = np.argsort(-graph.pair_dist[:, 1:], axis=1, kind="stable")[:, :count]
    for (s, o), row, order in zip(graph.pairs.tolist(), graph.pair_dist.tolist(), best.tolist(), strict=True):
        chosen = [(names[p], _rounded(row[p + 1])) for p in order]
        out.append(schemas.Pair(subject=s, object=o, related=_rounded(sum(row[1:])), predicates=chosen))
    return out


def _rounded(share: float) -> float:
    """To four significant digits: shares may be tiny, and the page divides them by P(related)."""
    return float(f"{share:.4g}")
