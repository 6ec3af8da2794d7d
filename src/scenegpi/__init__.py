"""Scene graphs from images, by permutation-invariant structured prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenegpi.lazy import lazy

if TYPE_CHECKING:
    from scenegpi.errors import GraphError
    from scenegpi.graph import SceneGraph, SceneObject, Triplet
    from scenegpi.models.checkpoint import load_model
    from scenegpi.prediction.defaults import predict
    from scenegpi.prediction.options import PredictOptions
    from scenegpi.prediction.predictor import Predictor
    from scenegpi.vocabulary import Vocabulary

__version__ = "0.1.0"
# Names are fetched when they are asked for: `scenegpi --help` must not wait for NumPy.
__getattr__, __dir__, __all__ = lazy(__name__)
