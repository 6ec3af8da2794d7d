"""Small models and graphs to test on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import torch

from scenegpi.graph import SceneGraph
from scenegpi.models import PRESETS, ModelConfig, SceneModel, build_model, prepare_model
from scenegpi.prediction import PredictOptions, Predictor, predictions
from scenegpi.prediction.model import Task
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.vectors import WordVectors

VOCABULARY = Vocabulary(["dog", "man", "street", "hat", "tree"], ["on", "wearing", "next to"], "tiny")
WORDS = WordVectors(
    ["dog", "man", "street", "hat", "tree", "on", "wearing", "next", "to"],
    np.random.default_rng(7).normal(size=(9, 6)).astype(np.float32),
)


def random_graph(
    rng: np.random.Generator, n: int, dist: bool = True, vocabulary: Vocabulary = VOCABULARY
) -> SceneGraph:
    low = rng.uniform(0, 80, (n, 2))
    boxes = np.concatenate([low, low + rng.uniform(1, 60, (n, 2))], 1)
    c, p = len(vocabulary.objects), len(vocabulary.predicates)
    relations = np.zeros((0, 3), dtype=int)
    if n > 1:
        subject = rng.integers(0, n, 2 * n)
        other = (subject + rng.integers(1, n, 2 * n)) % n
        relations = np.stack([subject, other, rng.integers(0, p, 2 * n)], 1)
    extra = {}
    if dist:
        pairs = np.argwhere(~np.eye(n, dtype=bool))
        extra["label_dist"] = rng.dirichlet(np.ones(c), n).astype(np.float32).reshape(n, c)
        extra["pairs"] = pairs
        extra["pair_dist"] = rng.dirichlet(np.ones(1 + p), len(pairs)).astype(np.float32).reshape(-1, 1 + p)
    labels = rng.integers(0, c, n)
    return SceneGraph(
        boxes, labels, vocabulary, relations, width=200, height=160, image_id=int(rng.integers(1e9)), **extra
    )


def random_graphs(sizes: tuple[int, ...], seed: int = 0, dist: bool = True) -> list[SceneGraph]:
    rng = np.random.default_rng(seed)
    return [random_graph(rng, n, dist) for n in sizes]


def small(config: ModelConfig) -> ModelConfig:
    """The same model with narrow layers."""
    baseline = replace(config.baseline, hidden=16, embedding=8, rank=4)
    context = config.context and replace(config.context, hidden=12, phi=10, alpha=9)
    return replace(config, baseline=baseline, network=context)


def small_model(name: str, seed: int = 0, **changes: object) -> SceneModel:
    """A preset with narrow layers and random weights; `changes` go to its context."""
    torch.manual_seed(seed)
    config = small(PRESETS[name])
    if config.context is not None:
        config = replace(config, network=replace(config.context, **changes))  # type: ignore[arg-type]
    model = build_model(config, VOCABULARY, WORDS)
    prepare_model(model, random_graphs((4, 6, 3, 8), seed=5))
    with torch.no_grad():  # a new model passes on what it reads; with weights everywhere it has something to say
        for each in model.parameters():
            if each.dim() > 1 and not each.any():
                each.normal_(0, 0.3)
    return model.eval()


def predictor(model: SceneModel, task: Task = "predcls") -> Predictor:
    """A model as it is scored: all boxes, whole distributions."""
    return Predictor(model, options=PredictOptions.scoring(task))


def predict_graphs(model: SceneModel, graphs: Iterable[SceneGraph], task: Task = "predcls") -> Iterator[SceneGraph]:
    """What a model says of graphs, with whole distributions."""
    return (found for found, _ in predictions(predictor(model, task), graphs))
