"""From a configuration and a vocabulary to a model, and from training graphs to its counts and scales."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
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
from scenegpi.models.baseline import Baseline
from scenegpi.models.calibration import Calibrations, Task
from scenegpi.models.config import ModelConfig
from scenegpi.models.fingerprint import Fingerprint
from scenegpi.models.layout_inputs import LayoutInputs
from scenegpi.models.prior import CountPrior, GivenPrior, relation_table
from scenegpi.models.relation_counts import RelationCounts
from scenegpi.models.scene_network import SceneLogits, SceneNetwork
from scenegpi.threads import one_thread
from scenegpi.vision.find import Finder
from scenegpi.vision.model import VisionModel
from scenegpi.vision.network import PhotoNetwork
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.vectors import WordVectors, label_table, predicate_table

FEW_PAIRS = 2048
"""Up to this many pairs, one thread is faster than two."""
CHUNK = 1 << 16
"""Number of pairs whose logits become distributions at once."""
MEASURED = 2000
"""Number of training images measured to standardise inputs."""
MAX_CELLS = 1 << 26
MAX_LABELS, MAX_PREDICATES = 4096, 2048
"""With `MAX_WIDTH`, limits of what a model from an untrusted folder can allocate."""


class SceneModel(nn.Module):
    """A network with the labels it was trained for and the configuration it was built from.

    `vision` names the boxes of a photo before the network reads a batch, or is None; if it knows everyday names beyond
    the labels, they are part of the model's `vocabulary`; `calibration` turns
    the last logits into calibrated probabilities, and is neutral until it is fitted. `trained_on` is a fingerprint of
    the training images, or None if there is none.
    """

    backend: Literal["torch"] = "torch"

    def __init__(
        self, config: ModelConfig, labels: Vocabulary, network: SceneNetwork, vision: VisionModel | None = None
    ) -> None:
        super().__init__()
        self.config, self.labels, self.network, self.vision = config, labels, network, vision
        self.calibration = Calibrations()
        self.trained_on: Fingerprint | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """Its vocabulary: the labels, and everyday names if its vision model knows some."""
        return self.labels if self.vision is None else self.vision.vocabulary

    def labels_only(self) -> SceneModel:
        """The same model and weights with only its labels as vocabulary, for data in just these words."""
        if self.vision is None or not self.vision.everyday:
            return self
        plain = copy(self)
        plain._modules = dict(self._modules)
        plain.vision = copy(self.vision)
        plain.vision.everyday = False
        return plain

    @property
    def baseline(self) -> Baseline | None:
        """The first stage, or the whole model; None for a system without one."""
        return self.network.first_stage_network

    @property
    def inputs(self) -> LayoutInputs:
        """How it reads boxes and pairs."""
        return self.network.front.inputs

    @property
    def prior(self) -> CountPrior | GivenPrior:
        """Its prior over pairs of labels."""
        return self.network.front.prior

    @property
    def finder(self) -> Finder | None:
        """Its finder of boxes in photos, if it has its own photo network."""
        if self.vision is None or not isinstance(self.vision.backbone, PhotoNetwork):
            return None
        return Finder(self.vision)

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        return next(self.parameters()).device

    def forward(self, batch: SceneBatch) -> SceneLogits:
        """Logits of every step, over the labels; the last is the answer."""
        if batch.vocabulary is not self.labels and batch.vocabulary != self.labels:
            raise GraphError("vocabulary: differs from the model's")
        return self.network(batch)

    @torch.inference_mode()
    def distributions(self, scenes: SceneArrays, task: Task) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The calibrated answer to a batch: (N, C) and (E, 1 + P), column 0 "no relation".

        An everyday name goes through the network as the label that stands for it:
        :math:`P(name) = P(label) \\cdot P(name \\mid label)`, the second as before the network.
        """
        training, calibration, said = self.training, self.calibration.of(task), scenes.label_dist
        stands = None
        if said.shape[1] > len(self.labels.objects) and self.vision is not None:
            stands = self.vision.stands.cpu().numpy()
            scenes = folded(scenes, stands, self.labels)
        batch = SceneBatch.from_arrays(scenes)
        try:
            if training:  # a run that validates continues training
                self.eval()
            with one_thread(batch.num_edges <= FEW_PAIRS):
                out = self(batch.to(self.device))
                nodes, edges = calibration.nodes(out.nodes[-1]), out.edges[-1].float()
                del out  # for a large graph, the earlier steps hold most of the memory
                for rows in edges.split(CHUNK):
                    rows[:] = calibration.edges(rows)
        finally:
            if training:
                self.train()
        answer = nodes.float().cpu().numpy()
        return answer if stands is None else unfolded(answer, said, scenes.label_dist, stands), edges.cpu().numpy()

    @property
    def relation_counts(self) -> RelationCounts | None:
        """Counts of the training relations; None if it has none."""
        prior = self.prior
        if not isinstance(prior, CountPrior):
            return None
        by_subject, by_object = (each[:, 1:].cpu().numpy() for each in (prior.by_subject, prior.by_object))
        stands = self.vision.stands.cpu().numpy() if self.vision is not None and self.vision.everyday else None
        return RelationCounts.of(by_subject, by_object, stands)

    def num_parameters(self) -> int:
        return sum(each.numel() for each in self.parameters())


def folded(scenes: SceneArrays, stands: NDArray[np.int64], labels: Vocabulary) -> SceneArrays:
    """The batch with labels alone; `stands` (names,) is the label that stands for each name."""
    dist = np.zeros((len(scenes.labels), len(labels.objects)), dtype=np.float32)
    np.add.at(dist.T, stands, scenes.label_dist.T)
    return replace(scenes, vocabulary=labels, labels=stands[scenes.labels], label_dist=dist)


def unfolded(
    answer: NDArray[np.float32], said: NDArray[np.float32], as_labels: NDArray[np.float32], stands: NDArray[np.int64]
) -> NDArray[np.float32]:
    """P(name) (N, names) from P(label) (N, labels), divided among names as in `said` (N, names).

    A label without any probability in `said` keeps its own name.
    """
    whole, own = as_labels[:, stands], np.arange(len(stands)) == stands
    share = np.where(whole > 0, said / np.maximum(whole, np.finfo(np.float32).tiny), own)
    return answer[:, stands] * share


def build_model(config: ModelConfig, vocabulary: Vocabulary, words: WordVectors | None = None) -> SceneModel:
    """A model with random weights. If the configuration needs words and none are given, their tables are zero."""
    labels, predicates = len(vocabulary.objects), len(vocabulary.predicates)
    if not labels or not predicates:
        raise OptionError("vocabulary: a model needs labels and predicates")
    if labels > MAX_LABELS or predicates > MAX_PREDICATES or labels**2 * (1 + predicates) > MAX_CELLS:
        raise OptionError(f"vocabulary: {labels:,} labels and {predicates:,} predicates are too many")
    vision = None if config.vision is None else VisionModel(config.vision, vocabulary)
    tables: list[Tensor] = []
    if config.words:
        if words is not None:
            config = config.with_words(words.dim)
            tables = [label_table(words, vocabulary), predicate_table(words, vocabulary)]
        else:
            tables = [torch.zeros(labels, config.words), torch.zeros(1 + predicates, config.words)]
    if config.network is None:
        return SceneModel(config, vocabulary, Baseline(config.baseline, labels, predicates), vision)
    return SceneModel(config, vocabulary, config.network.build(config, labels, predicates, tables), vision)


def prepare_model(model: SceneModel, graphs: Sequence[SceneGraph]) -> None:
    """Counts and scales, measured on training graphs (in place). Weights are not touched."""
    prior = model.prior
    if isinstance(prior, CountPrior):
        counts = torch.from_numpy(relation_table(graphs))
        prior.set_counts(counts)
        model.network.set_counts(counts)
    model.inputs.measure(map(SceneBatch.of, grouped(islice(graphs, MEASURED))))
