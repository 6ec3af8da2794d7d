"""Tensors -> distributions: FREQ, the baseline without context, and the scene-graph predictor of the paper.

    model = load_model("runs/first/model")
    for graph in predict_dataset(model, dataset, "predcls"): ...

Names are loaded when asked for: importing torch takes seconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenegpi.models.baseline import Baseline, SceneLogits
    from scenegpi.models.build import SceneModel, build_model, prepare_model
    from scenegpi.models.checkpoint import load_model, save_model
    from scenegpi.models.config import BaselineConfig, ContextConfig, ModelConfig
    from scenegpi.models.freq import FrequencyPrior
    from scenegpi.models.predict import predict_dataset, predict_graphs
    from scenegpi.models.presets import PRESETS, preset
    from scenegpi.models.sgp import SGP
    from scenegpi.models.shipped import shipped_models

_HOMES = {
    "PRESETS": "presets",
    "SGP": "sgp",
    "Baseline": "baseline",
    "BaselineConfig": "config",
    "ContextConfig": "config",
    "FrequencyPrior": "freq",
    "ModelConfig": "config",
    "SceneLogits": "baseline",
    "SceneModel": "build",
    "build_model": "build",
    "load_model": "checkpoint",
    "predict_dataset": "predict",
    "predict_graphs": "predict",
    "prepare_model": "build",
    "preset": "presets",
    "save_model": "checkpoint",
    "shipped_models": "shipped",
}

__all__ = [
    "PRESETS",
    "SGP",
    "Baseline",
    "BaselineConfig",
    "ContextConfig",
    "FrequencyPrior",
    "ModelConfig",
    "SceneLogits",
    "SceneModel",
    "build_model",
    "load_model",
    "predict_dataset",
    "predict_graphs",
    "prepare_model",
    "preset",
    "save_model",
    "shipped_models",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"scenegpi.models.{_HOMES[name]}"), name)
