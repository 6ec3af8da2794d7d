"""Scene graphs from images, by permutation-invariant structured prediction."""

from scenegpi.graph import GraphError, SceneGraph, Triplet
from scenegpi.vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = ["GraphError", "SceneGraph", "Triplet", "Vocabulary", "__version__"]
