"""Recipes, losses, batches, the Lightning module, and a run on disk that can be stopped and resumed.

from scenegpi.training import TrainConfig, train
train(TrainConfig(...), "runs/first")
"""

from typing import TYPE_CHECKING

from scenegpi.lazy import lazy

if TYPE_CHECKING:
    from scenegpi.training.config import FitOptions, MachineConfig, TrainConfig
    from scenegpi.training.label_head import FittedVision, fit_vision
    from scenegpi.training.recipes import find_recipe, read_config, recipe_titles, train_config
    from scenegpi.training.run import resume, train

__getattr__, __dir__, __all__ = lazy(__name__)
