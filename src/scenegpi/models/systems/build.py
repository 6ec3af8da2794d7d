"""From a configuration to the system that it names."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from scenegpi.models.config import ModelConfig
from scenegpi.models.systems.graph_rcnn import GraphRcnn
from scenegpi.models.systems.imp import Imp
from scenegpi.models.systems.lu import Lu, LuVisual
from scenegpi.models.systems.motifs import Motifs
from scenegpi.models.systems.pe_net import PeNet
from scenegpi.models.systems.pixel2graph import Pixel2Graph
from scenegpi.models.systems.system import System
from scenegpi.models.systems.transformer import Transformer
from scenegpi.models.systems.vctree import Vctree


def build_system(config: ModelConfig, labels: int, predicates: int, words: Sequence[Tensor] = ()) -> System:
    """The one system that `config` sets, with random weights; `words` (C, w) and (1 + P, w) for one that reads them."""
    system = _network(config, labels, predicates, words)
    system.start()
    return system


def _network(config: ModelConfig, labels: int, predicates: int, words: Sequence[Tensor]) -> System:
    sizes = labels, predicates
    if config.motifs is not None:
        return Motifs(config, config.motifs, *sizes)
    if config.imp is not None:
        return Imp(config, config.imp, *sizes)
    if config.graph_rcnn is not None:
        return GraphRcnn(config, config.graph_rcnn, *sizes)
    if config.transformer is not None:
        return Transformer(config, config.transformer, *sizes)
    if config.vctree is not None:
        return Vctree(config, config.vctree, *sizes)
    if config.lu is not None and not config.lu.language:
        return LuVisual(config, config.lu, *sizes)
    if config.lu is not None:
        return Lu(config, config.lu, *sizes, *words)
    if config.pe_net is not None:
        return PeNet(config, config.pe_net, *sizes, *words)
    if config.pixel2graph is not None:
        return Pixel2Graph(config, config.pixel2graph, *sizes)
    raise ValueError("the configuration names no system")
