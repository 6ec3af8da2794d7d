"""Why a triplet counts or not: one image's ranking in words, for pictures and for debugging."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scenegpi.boxes import box_iou
from scenegpi.metrics.inputs import read_prediction, read_truth
from scenegpi.metrics.matching import ImageInput, same_object
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.ranking import candidates


class Explained(NamedTuple):
    """One ranked triplet: box indices, predicate, score, the ground-truth rows that it matches, and why if none."""

    subject: int
    object: int
    predicate: int
    score: float
    rows: tuple[int, ...]
    reason: str


def explain(
    prediction: ImageInput, target: ImageInput, predicates: int, protocol: Protocol, constrained: bool = True
) -> list[Explained]:
    """The first `protocol.ks[-1]` triplets of one image, best first, each with what it matches.

    Images as for `scene_graph_recall`; `predicates` is P; `constrained`: one predicate per pair, or all of them.
    """
    truth = read_truth(target, predicates)
    found = read_prediction(prediction, truth, predicates, protocol)
    if found.empty:
        return []
    ranked = candidates(found, truth.relations, protocol.ks[-1], protocol).ranked(1 if constrained else None)
    overlap = box_iou(found.boxes, truth.boxes)
    explained = []
    for s, o, p, score in zip(*(part.tolist() for part in ranked), strict=True):
        same = [
            (i, min(overlap[s, a], overlap[o, b]))
            for i, (a, b, q) in enumerate(truth.relations.tolist())
            if (found.labels[s], found.labels[o], p) == (truth.labels[a], truth.labels[b], q)
        ]
        ends = np.array([s, o])
        rows = tuple(i for i, _ in same if same_object(found, truth, protocol, ends, truth.relations[i, :2]).all())
        reason = ""
        if not same:
            reason = "no such relation in the ground truth"
        elif not rows and protocol.match != "overlap":
            reason = "other boxes"
        elif not rows:
            reason = f"a box overlaps by {np.max([least for _, least in same]):.2f} only"
        explained.append(Explained(s, o, p, score, rows, reason))
    return explained
