"""What every compared system offers: `forward(batch) -> SceneLogits`, and its own loss if the method has one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi.dropout import dropout
from scenegpi.gpi.networks import MLP
from scenegpi.gpi.segments import segment_sum
from scenegpi.models.baseline import Baseline
from scenegpi.models.config import MAX_WIDTH, ModelConfig, NetworkConfig
from scenegpi.models.scene_network import SceneLogits, SceneNetwork
from scenegpi.models.sgp import reverse_edges
from scenegpi.options import bounded
from scenegpi.paper.systems.reader import BaselineReader, Bias, PairBias, Reader, Reading

LABEL_WIDTH = 64
"""Width of the vectors of labels that are fed back."""
DROPOUT = 0.2
SPREAD = 10.0


@dataclass(frozen=True)
class SystemConfig(NetworkConfig):
    """Settings of a system: `width` of its states, from which other sizes follow, and what its presets vary."""

    width: int = bounded(128, 1, MAX_WIDTH)
    network: ClassVar[Callable[..., System]]
    """The system's class."""

    def build(self, model: ModelConfig, labels: int, predicates: int, words: Sequence[Tensor]) -> System:
        system = self.network(model, self, labels, predicates, *words)
        system.start()
        return system


class Answer(NamedTuple):
    """`nodes` (N, C), which are added to the labels that came in; `pairs` (E, 1 + P); `extra` for the own loss."""

    nodes: Tensor
    pairs: Tensor
    extra: dict[str, Tensor] | None = None


class System(SceneNetwork):
    """A system: it reads by `reader` and answers; the layers that give logits are `node_out` and `pair_out`."""

    def __init__(
        self, model: ModelConfig, labels: int, predicates: int, bias: Bias = "none", embed: bool = True
    ) -> None:
        super().__init__()
        self.reader: Reader | BaselineReader
        if model.on_baseline:
            self.reader = BaselineReader(model.baseline, labels, predicates)
        else:
            self.reader = Reader(model.baseline, labels, predicates, embed)
        self.bias = PairBias("none" if model.on_baseline else bias, labels, 1 + predicates)
        self.on_baseline, self.num_labels, self.num_classes = model.on_baseline, labels, 1 + predicates

    @property
    def front(self) -> Reader | Baseline:
        return self.reader if isinstance(self.reader, Reader) else self.reader.baseline

    @property
    def first_stage_network(self) -> Baseline | None:
        return self.reader.baseline if isinstance(self.reader, BaselineReader) else None

    def start(self) -> None:
        """Labels, and on top of a baseline relations too, start as they came in."""
        for name in ("node_out", "pair_out", "plain_out") if self.on_baseline else ("node_out",):
            layer = getattr(self, name, None)
            if isinstance(layer, nn.Linear):
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, batch: SceneBatch) -> SceneLogits:
        """(N, C) and (E, 1 + P) logits; with a baseline below, its own stand first."""
        reading = self.reader(batch)
        answer = self.answer(reading)
        nodes, pairs = reading.node_logits + answer.nodes, answer.pairs
        if reading.pair_logits is None:
            return SceneLogits([nodes], [pairs], answer.extra)
        edges = [reading.pair_logits, reading.pair_logits + pairs]
        return SceneLogits([reading.node_logits, nodes], edges, answer.extra)

    @abstractmethod
    def answer(self, reading: Reading) -> Answer:
        """Logits from what the reader has read."""

    def set_counts(self, counts: Tensor) -> None:
        """Training counts of predicates by labels, (C, C, 1 + P)."""
        self.bias.set_counts(counts)

    def related_loss(self, batch: SceneBatch, logits: Tensor, either: bool = False) -> Tensor:
        """Binary cross-entropy (G,) over pairs: logits (E,) that a pair is related, or is in `either` direction."""
        target = torch.zeros_like(logits)
        target[batch.relation_edge] = 1
        if either:
            target = torch.maximum(target, target[reverse_edges(batch)])
        loss = binary_cross_entropy_with_logits(logits, target, reduction="none")
        return segment_sum(loss, batch.batch[batch.edge_index[0]], batch.num_graphs)

    def unless_given(self, reading: Reading, decode: Callable[[], Tensor]) -> Tensor:
        """The result of `decode`, (N, C); 0 if all labels of the batch are given."""
        return torch.zeros_like(reading.node_logits) if bool(reading.certain.all()) else decode()

    def chosen(self, reading: Reading, nodes: Tensor) -> Tensor:
        """Labels (N,) for a hard look-up: true ones in training, else those given, or the best by nodes (N, C)."""
        if self.training:
            return reading.batch.labels
        return reading.best_labels(nodes)


class ProductSystem(System):
    """y_ij = W_r (s_i * o_j * f(u_ij)) with the bias of the labels: how Neural Motifs and VCTree read a pair."""

    def __init__(self, model: ModelConfig, labels: int, predicates: int, bias: Bias, width: int) -> None:
        super().__init__(model, labels, predicates, bias)
        self.pool = 2 * width
        self.union = MLP([self.reader.pair_width], [width], self.pool, DROPOUT)
        self.pair_out = nn.Linear(self.pool, 1 + predicates)

    def product(self, reading: Reading, labels: Tensor, subject: Tensor, object_: Tensor) -> Tensor:
        """labels (N,), subject and object_ (N, pool) -> (E, 1 + P)."""

        def logits(rows: slice, i: Tensor, j: Tensor) -> Tensor:
            g = subject.index_select(0, i) * object_.index_select(0, j) * self.union(reading.pairs(rows))
            return self.bias(reading, labels, rows, self.pair_out(dropout(g, DROPOUT, self.training)))

        return reading.over_pairs(logits)


def wide(width: int, pool: int) -> nn.Linear:
    """As published: an LSTM's outputs are small, and a product of three of them would vanish."""
    layer = nn.Linear(width, pool)
    nn.init.normal_(layer.weight, 0, SPREAD / width**0.5)
    return layer
