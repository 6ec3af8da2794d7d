"""SceneGraph -> tensors: entity features, pair geometry, word vectors, flat batches.

    batch = SceneBatch.of(graphs)
    z = EntityFeatures()(batch.boxes, batch.sizes, batch.label_dist, batch.batch, batch.ptr)
    z_ij = pair_geometry(batch.boxes, batch.sizes, batch.edge_index, batch.batch)

Names are loaded when asked for: word vectors need no torch, and importing torch takes seconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenegpi.features.batch import SceneBatch
    from scenegpi.features.entities import EntityFeatures
    from scenegpi.features.glove import GloveOptions, train_glove
    from scenegpi.features.label_map import LabelMap
    from scenegpi.features.pairs import PAIR_NAMES, PAIR_WIDTH, mirror_pairs, pair_geometry, relation_features
    from scenegpi.features.public_words import load_glove_package, load_glove_text, load_words
    from scenegpi.features.tables import label_table, predicate_table
    from scenegpi.features.words import Coverage, WordVectors

_HOMES = {
    "PAIR_NAMES": "pairs",
    "PAIR_WIDTH": "pairs",
    "Coverage": "words",
    "EntityFeatures": "entities",
    "GloveOptions": "glove",
    "LabelMap": "label_map",
    "SceneBatch": "batch",
    "WordVectors": "words",
    "label_table": "tables",
    "load_glove_package": "public_words",
    "load_glove_text": "public_words",
    "load_words": "public_words",
    "mirror_pairs": "pairs",
    "pair_geometry": "pairs",
    "predicate_table": "tables",
    "relation_features": "pairs",
    "train_glove": "glove",
}

__all__ = [
    "PAIR_NAMES",
    "PAIR_WIDTH",
    "Coverage",
    "EntityFeatures",
    "GloveOptions",
    "LabelMap",
    "SceneBatch",
    "WordVectors",
    "label_table",
    "load_glove_package",
    "load_glove_text",
    "load_words",
    "mirror_pairs",
    "pair_geometry",
    "predicate_table",
    "relation_features",
    "train_glove",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"scenegpi.features.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
