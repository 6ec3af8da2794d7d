"""Photos and boxes -> scene graphs: the one path from an image to a graph.

    from scenegpi import Predictor, predict

    graph = predict("photo.jpg")                       # finds boxes, names them, relates them
    predictor = Predictor("vg150-layout")
    graph = predictor(boxes=xyxy, labels=names)
    for prediction in predictor.stream(items): ...     # in order, batched, bounded memory
"""

from typing import TYPE_CHECKING

from scenegpi.lazy import lazy

if TYPE_CHECKING:
    from scenegpi.prediction.default_model import default_model
    from scenegpi.prediction.inputs import Item, dataset_items
    from scenegpi.prediction.options import PredictOptions
    from scenegpi.prediction.predictor import Prediction, Predictor, predict

__getattr__, __dir__, __all__ = lazy(
    __name__,
    {
        "default_model": ("default_model",),
        "inputs": ("Item", "dataset_items"),
        "options": ("PredictOptions",),
        "predictor": ("Prediction", "Predictor", "predict"),
    },
)
