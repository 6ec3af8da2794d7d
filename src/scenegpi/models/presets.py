"""The rows of the paper's table as model configurations, all with the same inputs for a fair comparison."""

from __future__ import annotations

from scenegpi.errors import OptionError
from scenegpi.models.config import BaselineConfig, ContextConfig, ModelConfig
from scenegpi.models.systems import MODULES, system_module

WORD_WIDTH = 300

PRESETS: dict[str, ModelConfig] = {
    "baseline": ModelConfig(BaselineConfig()),
    "gpi-no-attention": ModelConfig(BaselineConfig(), ContextConfig(aggregation="sum")),
    "gpi-neighbour-attention": ModelConfig(BaselineConfig(), ContextConfig(aggregation="neighbour")),
    "gpi-feature-attention": ModelConfig(BaselineConfig(), ContextConfig(aggregation="feature")),
    "gpi-linguistic": ModelConfig(BaselineConfig(), ContextConfig(aggregation="neighbour", words=WORD_WIDTH)),
}
"""No context; Theorem 1 with sums; attention over neighbours; attention over neighbours and features; neighbour
attention with word vectors."""


def preset(name: str) -> ModelConfig:
    """The configuration of a preset, or of a compared system; OptionError if the name is unknown."""
    if name in PRESETS:
        return PRESETS[name]
    if name not in MODULES:
        raise OptionError(f"preset: {name!r:.40} is not one of {', '.join([*PRESETS, *MODULES])}")
    return ModelConfig(network=system_module(MODULES[name]).PRESETS[name])
