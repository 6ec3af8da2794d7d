"""The rows of the paper's table as model configurations, all with the same inputs for an honest comparison."""

from __future__ import annotations

from scenegpi.errors import OptionError
from scenegpi.models.config import BaselineConfig, ContextConfig, ModelConfig
from scenegpi.models.systems.config import (
    GraphRcnnConfig,
    ImpConfig,
    LuConfig,
    MotifsConfig,
    PeNetConfig,
    Pixel2GraphConfig,
    TransformerConfig,
    VctreeConfig,
)

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

SYSTEMS: dict[str, ModelConfig] = {
    "lu": ModelConfig(lu=LuConfig()),
    "lu-visual": ModelConfig(lu=LuConfig(language=False)),
    "imp": ModelConfig(imp=ImpConfig()),
    "imp-2017": ModelConfig(imp=ImpConfig(steps=2, schedule="sequential")),
    "imp-bias": ModelConfig(imp=ImpConfig(bias="counts")),
    "pixel2graph-boxes": ModelConfig(pixel2graph=Pixel2GraphConfig()),
    "graph-rcnn": ModelConfig(graph_rcnn=GraphRcnnConfig()),
    "graph-rcnn-bias": ModelConfig(graph_rcnn=GraphRcnnConfig(bias="counts")),
    "graph-rcnn-quarter": ModelConfig(graph_rcnn=GraphRcnnConfig(share=0.25)),
    "motifs": ModelConfig(motifs=MotifsConfig()),
    "motifs-size": ModelConfig(motifs=MotifsConfig(order="size")),
    "motifs-confidence": ModelConfig(motifs=MotifsConfig(order="confidence")),
    "motifs-random": ModelConfig(motifs=MotifsConfig(order="random")),
    "motifs-list": ModelConfig(motifs=MotifsConfig(order="list")),
    "motifs-no-context": ModelConfig(motifs=MotifsConfig(context=False)),
    "transformer": ModelConfig(transformer=TransformerConfig()),
    "vctree": ModelConfig(vctree=VctreeConfig()),
    "pe-net": ModelConfig(pe_net=PeNetConfig()),
}
"""The systems of the paper's table, and three that came later; docs/systems.md says what each is."""


def preset(name: str) -> ModelConfig:
    """The configuration of a preset; OptionError if there is none of this name."""
    every = PRESETS | SYSTEMS
    if name not in every:
        raise OptionError(f"preset: {name!r:.40} is none of {', '.join(every)}")
    return every[name]
