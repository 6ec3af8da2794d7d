"""Compared systems with narrow layers, and what happens to them when boxes are listed in another order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from models.model_cases import VOCABULARY, WORDS, predict_graphs, random_graphs
from scenegpi.graph import SceneGraph
from scenegpi.models import ModelConfig, SceneModel, build_model, prepare_model
from scenegpi.models.presets import preset
from scenegpi.models.systems import MODULES
from scenegpi.prediction.evidence import Task

SYSTEMS = {name: preset(name) for name in MODULES}
NARROW = 8
"""Width of a system's states."""
CONTEXT = ("imp", "graph-rcnn", "motifs", "transformer", "vctree")
"""Systems in which a box can change what is said of two others."""
ALONE = ("lu", "lu-visual", "motifs-no-context", "pe-net")
SWAPPED = tuple(f"{name} on baseline" for name in CONTEXT)


def narrow(config: ModelConfig, **changes: Any) -> ModelConfig:
    """The same system with narrow layers; `changes` go to its own settings."""
    network: Any = config.network
    own = replace(network, **{"width": NARROW, **changes})
    return replace(config, baseline=replace(config.baseline, hidden=8, embedding=6, rank=4), network=own)


def small_system(name: str, seed: int = 0, counts: bool = True, **changes: Any) -> SceneModel:
    """A preset, or one `on baseline`, with random weights everywhere."""
    torch.manual_seed(seed)
    preset, _, below = name.partition(" on ")
    config = replace(narrow(SYSTEMS[preset], **changes), on_baseline=bool(below))
    config = replace(config, baseline=replace(config.baseline, counts=counts))
    model = build_model(config, VOCABULARY, WORDS)
    prepare_model(model, random_graphs((4, 6, 3, 8), seed=5))
    with torch.no_grad():
        for each in model.parameters():
            if each.dim() > 1 and not each.any():
                each.normal_(0, 0.3)
    return model.eval()


def relisted_gap(model: SceneModel, graph: SceneGraph, task: Task, seed: int = 1) -> float:
    """The largest change of a probability when the boxes are listed in another order."""
    order = np.random.default_rng(seed).permutation(len(graph))
    moved = next(predict_graphs(model, [graph], task)).permute(order)
    after = next(predict_graphs(model, [graph.permute(order)], task))
    gap = np.abs(np.asarray(moved.label_dist) - np.asarray(after.label_dist)).max(initial=0)
    pairs, dist = np.asarray(after.pairs), np.asarray(after.pair_dist)
    found = {tuple(pair): row for pair, row in zip(pairs.tolist(), dist, strict=True)}
    for pair, row in zip(np.asarray(moved.pairs).tolist(), np.asarray(moved.pair_dist), strict=True):
        gap = max(gap, np.abs(found[tuple(pair)] - row).max())
    return float(gap)
