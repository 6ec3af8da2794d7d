"""SceneGraph -> tensors: entity features, pair geometry, flat batches.

batch = SceneBatch.of(graphs)
z = entity_features(batch.boxes, batch.sizes, batch.label_dist, batch.batch, batch.ptr)
z_ij = pair_geometry(batch.boxes, batch.sizes, batch.edge_index, batch.batch)
"""

from typing import TYPE_CHECKING

from scenegpi.lazy import lazy

if TYPE_CHECKING:
    from scenegpi.features.batch import SceneBatch
    from scenegpi.features.entities import entity_features
    from scenegpi.features.geometry import PAIR_NAMES, PAIR_WIDTH, pair_geometry

__getattr__, __dir__, __all__ = lazy(__name__)
