"""Metrics of scene graphs that agree with the field's evaluators, and say what they mean (docs/metrics.md).

from scenegpi.metrics import Protocol, scene_graph_recall
result = scene_graph_recall(predictions, targets, Protocol(task="sgcls"), bootstrap=1000)
result.figures["R@50"], result.intervals["R@50"]

`RecallState` streams and merges with NumPy only; `SceneGraphRecall` is the torchmetrics class. Each name is loaded when
it is first asked for: importing torch takes seconds, and a command line that only names the options needs none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenegpi.metrics.boxes import box_iou
    from scenegpi.metrics.intervals import Difference, compare
    from scenegpi.metrics.matching import ImageMatch, match_image
    from scenegpi.metrics.protocol import MetricError, Protocol
    from scenegpi.metrics.recall import scene_graph_recall
    from scenegpi.metrics.result import Result
    from scenegpi.metrics.state import Plan, RecallState
    from scenegpi.metrics.torchmetric import SceneGraphRecall
    from scenegpi.metrics.zero_shot import ZeroShot, predicate_groups, training_triplets

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

_HOME = {
    "boxes": ("box_iou",),
    "intervals": ("Difference", "compare"),
    "matching": ("ImageMatch", "match_image"),
    "protocol": ("MetricError", "Protocol"),
    "recall": ("scene_graph_recall",),
    "result": ("Result",),
    "state": ("Plan", "RecallState"),
    "torchmetric": ("SceneGraphRecall",),
    "zero_shot": ("ZeroShot", "predicate_groups", "training_triplets"),
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULE:
        return getattr(import_module(f"{__name__}.{_MODULE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
