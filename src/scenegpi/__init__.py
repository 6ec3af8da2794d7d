"""Scene graphs from images, by permutation-invariant structured prediction."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenegpi.graph import GraphError, SceneGraph, Triplet
    from scenegpi.models.checkpoint import load_model
    from scenegpi.models.predict import predict
    from scenegpi.vocabulary import Vocabulary

__version__ = "0.1.0"
__all__ = ["GraphError", "SceneGraph", "Triplet", "Vocabulary", "__version__", "load_model", "predict"]

# Names are fetched when they are asked for: `scenegpi --help` must not wait for NumPy.
_HOMES = {"GraphError": "graph", "SceneGraph": "graph", "Triplet": "graph", "Vocabulary": "vocabulary"}
_HOMES |= {"load_model": "models.checkpoint", "predict": "models.predict"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'scenegpi' has no attribute {name!r}")
    return getattr(import_module(f"scenegpi.{_HOMES[name]}"), name)
