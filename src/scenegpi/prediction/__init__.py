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
    from scenegpi.prediction.annotated import aligned, predictions, scored_pairs
    from scenegpi.prediction.defaults import default_model, predict
    from scenegpi.prediction.inputs import Item
    from scenegpi.prediction.options import PredictOptions
    from scenegpi.prediction.predictor import Prediction, Predictor

__getattr__, __dir__, __all__ = lazy(__name__)
