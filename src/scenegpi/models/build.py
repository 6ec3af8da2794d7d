"""From a configuration and a vocabulary to a model, and from training graphs to its counts and scales."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from scenegpi.errors import GraphError, OptionError
from scenegpi.features.arrays import SceneArrays
from scenegpi.features.batch import SceneBatch, grouped
from scenegpi.graph import SceneGraph
from scenegpi.models.baseline import Baseline, SceneLogits
from scenegpi.models.calibration import Calibrations, Task
from scenegpi.models.config import ModelConfig
from scenegpi.models.fingerprint import Fingerprint
from scenegpi.models.freq import FrequencyPrior
from scenegpi.models.inputs import LayoutInputs
from scenegpi.models.prior import CountPrior, GivenPrior
from scenegpi.models.relation_counts import RelationCounts
from scenegpi.models.sgp import SGP
from scenegpi.models.systems.build import build_system
from scenegpi.models.systems.system import System
from scenegpi.threads import one_thread
from scenegpi.vision.find import Finder
from scenegpi.vision.model import VisionModel
from scenegpi.vision.network import PhotoNetwork
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.tables import label_table, predicate_table
from scenegpi.words.vectors import WordVectors

FEW_PAIRS = 2048
"""Up to this many pairs one thread is faster than two."""
CHUNK = 1 << 16
"""Pairs whose logits become distributions at once."""
MEASURED = 2000
"""Training images whose features are measured to standardise inputs."""
MAX_CELLS = 1 << 26
MAX_LABELS, MAX_PREDICATES = 4096, 2048
"""With `MAX_WIDTH` they bound what a model from an untrusted folder can allocate."""


class SceneModel(nn.Module):
    """A network with the vocabulary it speaks and the configuration it was built from.

    `vision` names what is in the boxes of a photo before the network reads a batch, or is None; `calibration` turns
    the last logits into calibrated probabilities, and is neutral until it is fitted. `trained_on` is a fingerprint of
    the training images, or None where nobody took it.
    """

    backend: Literal["torch"] = "torch"

    def __init__(
        self,
        config: ModelConfig,
        vocabulary: Vocabulary,
        network: Baseline | SGP | System,
        vision: VisionModel | None = None,
    ) -> None:
        super().__init__()
        self.config, self.vocabulary, self.network, self.vision = config, vocabulary, network, vision
        self.calibration = Calibrations()
        self.trained_on: Fingerprint | None = None

    @property
    def baseline(self) -> Baseline | None:
        """The first stage, or the whole; None for a system that has none."""
        return self.network if isinstance(self.network, Baseline) else self.network.baseline

    @property
    def inputs(self) -> LayoutInputs:
        """How it reads boxes and pairs."""
        return self._front.inputs

    @property
    def prior(self) -> CountPrior | GivenPrior | None:
        """What it knows about pairs of labels beforehand."""
        return self._front.prior

    @property
    def finder(self) -> Finder | None:
        """Finds boxes in photos, where it has a photo network of its own."""
        own = self.vision is not None and isinstance(self.vision.backbone, PhotoNetwork)
        return Finder(self.vision) if self.vision is not None and own else None

    @property
    def device(self) -> torch.device:
        """Where its weights are."""
        return next(self.parameters()).device

    @property
    def probabilities(self) -> bool:
        """Whether its outputs are meant as probabilities, not only as scores that rank."""
        return not isinstance(self.network, System) or self.network.probabilities

    def forward(self, batch: SceneBatch) -> SceneLogits:
        """Logits of every step; the last is the answer."""
        if batch.vocabulary is not self.vocabulary and batch.vocabulary != self.vocabulary:
            raise GraphError("vocabulary: differs from the model's")
        return self.network(batch)

    def training_loss(self, batch: SceneBatch, out: SceneLogits, common: Tensor) -> Tensor:
        """What is minimised, (G,), from the loss that all models share: a system may have one of its own."""
        return self.network.training_loss(batch, out, common) if isinstance(self.network, System) else common

    @property
    def _front(self) -> Baseline | System:
        return self.network.baseline if isinstance(self.network, SGP) else self.network

    @torch.inference_mode()
    def distributions(self, scenes: SceneArrays, task: Task) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The calibrated answer to a batch: (N, C) and (E, 1 + P), column 0 "no relation"."""
        training, calibration = self.training, self.calibration.of(task)
        batch = SceneBatch.from_arrays(scenes)
        try:
            if training:  # a run that validates goes on training
                self.eval()
            with one_thread(batch.num_edges <= FEW_PAIRS):
                out = self(batch.to(self.device))
                nodes, edges = calibration.nodes(out.nodes[-1]), out.edges[-1].float()
                del out  # of a large graph, the steps before the last are the larger part
                for rows in edges.split(CHUNK):
                    rows[:] = calibration.edges(rows)
        finally:
            if training:
                self.train()
        return nodes.float().cpu().numpy(), edges.cpu().numpy()

    @property
    def relation_counts(self) -> RelationCounts | None:
        """Of the training images that it counted; None where it counted none."""
        prior = self.prior
        if not isinstance(prior, CountPrior):
            return None
        return RelationCounts.of(*(each[:, 1:].cpu().numpy() for each in (prior.by_subject, prior.by_object)))

    def num_parameters(self) -> int:
        return sum(each.numel() for each in self.parameters())


def build_model(config: ModelConfig, vocabulary: Vocabulary, words: WordVectors | None = None) -> SceneModel:
    """A model with random weights. Where the configuration wants words and none are given, their tables are zero."""
    labels, predicates = len(vocabulary.objects), len(vocabulary.predicates)
    if not labels or not predicates:
        raise OptionError("vocabulary: a model needs labels and predicates")
    if labels > MAX_LABELS or predicates > MAX_PREDICATES or labels**2 * (1 + predicates) > MAX_CELLS:
        raise OptionError(f"vocabulary: {labels:,} labels and {predicates:,} predicates are too many to count")
    vision = None if config.vision is None else VisionModel(config.vision, vocabulary)
    tables: list[Tensor] = []
    if config.words:
        if words is not None:
            config = config.with_words(words.dim)
            tables = [label_table(words, vocabulary), predicate_table(words, vocabulary)]
        else:
            tables = [torch.zeros(labels, config.words), torch.zeros(1 + predicates, config.words)]
    network: Baseline | SGP | System
    if config.system is not None:
        network = build_system(config, labels, predicates, tables)
    elif config.context is not None:
        network = SGP(config, config.context, labels, predicates, *tables)
    else:
        network = Baseline(config.baseline, labels, predicates)
    return SceneModel(config, vocabulary, network, vision)


def prepare_model(model: SceneModel, graphs: Sequence[SceneGraph]) -> None:
    """Counts and scales, measured on training graphs (in place). Weights are not touched."""
    prior, network = model.prior, model.network
    if isinstance(prior, CountPrior):
        counts = torch.from_numpy(FrequencyPrior.fit(graphs).counts)
        prior.set_counts(counts)
        if isinstance(network, System):
            network.set_counts(counts)
    model.inputs.measure(map(SceneBatch.of, grouped(islice(graphs, MEASURED))))
