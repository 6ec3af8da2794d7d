"""Tensors -> distributions: the baseline without context, and the scene-graph predictor of the paper.

model = load_model("runs/first/model")
logits = model(SceneBatch.of(graphs))
"""

from typing import TYPE_CHECKING

from scenegpi.lazy import lazy

if TYPE_CHECKING:
    from scenegpi.models.baseline import Baseline
    from scenegpi.models.build import SceneModel, build_model, prepare_model
    from scenegpi.models.checkpoint import load_model, save_model
    from scenegpi.models.config import BaselineConfig, ContextConfig, ModelConfig
    from scenegpi.models.presets import PRESETS, preset
    from scenegpi.models.scene_network import SceneLogits
    from scenegpi.models.sgp import SGP
    from scenegpi.models.shipped import shipped_models

__getattr__, __dir__, __all__ = lazy(__name__)
