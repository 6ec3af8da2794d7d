"""The rows of the paper's table as model configurations, all with the same inputs for an honest comparison."""

from __future__ import annotations

from scenegpi.errors import OptionError
from scenegpi.models.config import BaselineConfig, ContextConfig, ModelConfig

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
    """The configuration of a preset; OptionError if there is none of this name."""
    if name not in PRESETS:
        raise OptionError(f"preset: {name!r:.40} is none of {', '.join(PRESETS)}")
    return PRESETS[name]
