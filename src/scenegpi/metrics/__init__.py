"""Metrics of scene graphs that agree with the common evaluators, and state what they mean (docs/metrics.md).

from scenegpi.metrics import Protocol, scene_graph_recall
result = scene_graph_recall(predictions, targets, Protocol(task="sgcls"), bootstrap=1000)
result.figures["R@50"], result.intervals["R@50"]

`RecallState` streams and merges with NumPy only; `SceneGraphRecall` is the torchmetrics class. Names are loaded on
first use: importing torch takes seconds, and a command line that only lists options does not need it.
"""

from typing import TYPE_CHECKING

from scenegpi.lazy import lazy

if TYPE_CHECKING:
    from scenegpi.boxes import box_iou
    from scenegpi.errors import MetricError
    from scenegpi.metrics.intervals import Difference, compare
    from scenegpi.metrics.matching import ImageMatch, match_image
    from scenegpi.metrics.protocol import Protocol
    from scenegpi.metrics.result import Result
    from scenegpi.metrics.state import Plan, RecallState, scene_graph_recall
    from scenegpi.metrics.torchmetric import SceneGraphRecall
    from scenegpi.metrics.zero_shot import ZeroShot, predicate_groups, training_triplets

__getattr__, __dir__, __all__ = lazy(__name__)
