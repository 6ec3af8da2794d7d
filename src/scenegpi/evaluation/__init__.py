"""A model or a file of predictions against a data set: PredCls, SGCls, SGDet.

result = evaluate_model("vg150-photo", Protocol("sgdet"), data="VG150", photos="VG_100K", split="test")
result = evaluate_file("predictions.jsonl", Protocol("predcls"), data="VG150", split="test")
"""

from typing import TYPE_CHECKING

from scenegpi.lazy import lazy

if TYPE_CHECKING:
    from scenegpi.evaluation.evaluate import evaluate_file, evaluate_model, trained_on_note

__getattr__, __dir__, __all__ = lazy(__name__)
