"""Metrics of scene graphs that agree with the field's evaluators, and say what they mean.

    >>> from scenegpi.metrics import Protocol, scene_graph_recall
    >>> result = scene_graph_recall(predictions, targets, Protocol(task="sgcls"), bootstrap=1000)  # doctest: +SKIP
    >>> result.figures["R@50"], result.intervals["R@50"]  # doctest: +SKIP

`RecallState` streams and merges without torch; `SceneGraphRecall` is the torchmetrics class around it, loaded only
when asked for, since importing torch takes seconds.
"""

from typing import TYPE_CHECKING, Any

from scenegpi.metrics.boxes import box_iou
from scenegpi.metrics.intervals import Difference, compare
from scenegpi.metrics.matching import ImageMatch, match_image
from scenegpi.metrics.protocol import MetricError, Protocol
from scenegpi.metrics.recall import scene_graph_recall
from scenegpi.metrics.result import Result
from scenegpi.metrics.state import Plan, RecallState
from scenegpi.metrics.zero_shot import ZeroShot, predicate_groups, training_triplets

if TYPE_CHECKING:
    from scenegpi.metrics.torchmetric import SceneGraphRecall

__all__ = [
    "Difference",
    "ImageMatch",
    "MetricError",
    "Plan",
    "Protocol",
    "RecallState",
    "Result",
    "SceneGraphRecall",
    "ZeroShot",
    "box_iou",
    "compare",
    "match_image",
    "predicate_groups",
    "scene_graph_recall",
    "training_triplets",
]


def __getattr__(name: str) -> Any:
    if name == "SceneGraphRecall":
        from scenegpi.metrics.torchmetric import SceneGraphRecall

        return SceneGraphRecall
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
