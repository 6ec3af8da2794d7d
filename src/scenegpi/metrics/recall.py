"""The pure function: predictions and targets in, figures out."""

from __future__ import annotations

from collections.abc import Sequence

from scenegpi.errors import MetricError
from scenegpi.graph import SceneGraph
from scenegpi.metrics.figures import Groups
from scenegpi.metrics.matching import ImageInput
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.result import Result
from scenegpi.metrics.state import Plan, RecallState
from scenegpi.metrics.zero_shot import ZeroShot
from scenegpi.vocabulary import Vocabulary


def scene_graph_recall(
    predictions: Sequence[ImageInput],
    targets: Sequence[ImageInput],
    protocol: Protocol | None = None,
    *,
    predicates: Vocabulary | Sequence[str] | int | None = None,
    zero_shot: ZeroShot | None = None,
    groups: Groups | None = None,
    bootstrap: int = 0,
    seed: int = 0,
) -> Result:
    """Score predictions against ground truth.

    Args:
        predictions, targets: one SceneGraph or dict of arrays for each image, in the same order; the keys of the dicts
            are in `scenegpi.metrics.inputs`.
        protocol: how to score; PredCls with K = 20, 50, 100 if None.
        predicates: a Vocabulary, predicate names or their number; read off the first image if None.
        zero_shot, groups, bootstrap, seed: as in `Plan`.

    Example:
        >>> target = {"boxes": [[0, 0, 9, 9], [5, 5, 30, 30]], "labels": [1, 2], "relations": [[0, 1, 1]]}
        >>> prediction = {"pairs": [[0, 1], [1, 0]], "rel_scores": [[0.2, 0.7, 0.1], [0.9, 0.05, 0.05]]}
        >>> scene_graph_recall([prediction], [target], Protocol(ks=(1,))).figures["R@1"]
        1.0
    """
    if predicates is None:
        predicates = predicates_of(predictions, targets)
    plan = Plan(protocol or Protocol(), predicates, zero_shot, groups, bootstrap, seed)
    return RecallState(plan).update(predictions, targets).result()


def predicates_of(predictions: Sequence[ImageInput], targets: Sequence[ImageInput]) -> Vocabulary | int:
    """The vocabulary of the first graph, targets before predictions, or the number of predicates in `rel_scores`."""
    for image in (*targets[:1], *predictions):
        if isinstance(image, SceneGraph):
            return image.vocabulary
        try:
            return len(image["rel_scores"][0]) - 1
        except (KeyError, IndexError, TypeError):
            continue
    raise MetricError("predicates: their number is not clear from the input; pass predicates=")
