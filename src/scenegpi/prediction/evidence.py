r"""How pixels and given labels are combined, for all callers.

| given | labels | the photo |
|---|---|---|
| boxes and labels without scores | believed | only drawn on |
| boxes, labels with scores (a detector) | pixel evidence times detector evidence; a label may change | read |
| boxes | found | read |
| nothing but the photo | found, with the boxes | read once by the model's own finder, or by another and then as above |
| boxes and label distributions | corrected by the model | only drawn on |

A detector that is sure of its label with probability q says

.. math:: D(c) = q \text{ for its label}, \qquad (1 - q) / (C - 1) \text{ for any other},

and with what the pixels say, V, the label is distributed as :math:`P(c) \propto (V(c)\, D(c))^{0.7}`. The power is
below 1 because both read the same pixels and err together; it maximizes the likelihood of the labels of photos that
neither was trained on (chosen and measured on the same 350 photos).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.detector_results import NO_LABEL
from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.prediction.model import Task, Vision
from scenegpi.vocabulary import Vocabulary

POWER = 0.7
MIN_PROBABILITY = 1e-6


def evidence(
    graph: SceneGraph, source: Vocabulary, labels: Literal["auto", "believed", "found"], *, photo: bool, vision: bool
) -> tuple[Task, bool]:
    """The table above: the task for the model, and whether the photo is read; GraphError if no labels are available.

    Args:
        graph: the boxes, in the model's labels.
        source: the vocabulary that the labels were given in.
        labels: as in `PredictOptions`.
        photo: there is a photo.
        vision: the model uses photos.
    """
    unlabelled = source.objects == (NO_LABEL,) and len(graph) > 0
    if unlabelled and graph.label_dist is None and not (photo and vision):
        why = "there is no photo" if vision else "this model uses boxes and labels only"
        raise GraphError(f"labels: the boxes have no labels, and {why}")
    if labels == "believed" and not unlabelled:
        return "predcls", False
    if graph.label_dist is not None:
        return "sgcls", False
    if unlabelled or labels == "found":
        if vision and not photo and graph.scores is None and len(graph):
            raise GraphError("labels: there is no photo to predict them from")
        return "sgcls", photo and vision
    scored = graph.scores is not None and photo and vision
    return "sgcls" if scored else "predcls", scored


def add_pixels(vision: Vision, photo: Any, graph: SceneGraph, labelled: bool) -> SceneGraph:
    """The graph with a `label_dist` from its photo; with scores of labels, both kinds of evidence multiplied."""
    dist = np.asarray(vision.label_dist(photo, graph), dtype=np.float64)
    if labelled and graph.scores is not None:
        dist = (np.maximum(dist, MIN_PROBABILITY) * detector_dist(graph)) ** POWER
        dist /= np.maximum(dist.sum(axis=1, keepdims=True), MIN_PROBABILITY)
    # The scores are in the distributions now; kept beside them, they would mean the chance that there is an object.
    return graph.replace(label_dist=dist.astype(np.float32), scores=None)


def detector_dist(graph: SceneGraph) -> NDArray[np.float64]:
    """D (N, C) of the labels and scores of a graph."""
    n, c = len(graph), len(graph.vocabulary.objects)
    score = np.ones(n) if graph.scores is None else np.clip(np.asarray(graph.scores, dtype=np.float64), 0, 1)
    out = np.repeat(((1 - score) / max(c - 1, 1))[:, None], c, axis=1)
    out[np.arange(n), graph.labels] = score
    return out
