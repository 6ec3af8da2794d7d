r"""Prototype embedding network (Zheng et al. 2023): a pair lies near the prototype of its predicate.

.. math::
    s &= W_s t_i + g_s \odot h(x_i), \qquad o = W_o t_j + g_o \odot h(x_j), \qquad
    F(s, o) = \text{ReLU}(s + o) - (s - o)^2 \\
    r &= F(s, o) - g_p \odot h(u_{ij}), \qquad c_k = W_p t_k, \qquad y_{ijk} = \cos(r', c'_k) / \tau

t are word vectors, g gates of what they weigh, and ' a residual network with layer norm that pairs and prototypes
share. Two more losses: r is nearer to its own prototype than to others, and prototypes keep apart. Each pair by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi.dropout import dropout
from scenegpi.gpi.networks import MLP
from scenegpi.models.config import MAX_WIDTH, ModelConfig
from scenegpi.models.scene_network import SceneLogits
from scenegpi.options import bounded
from scenegpi.paper.systems.reader import Reading
from scenegpi.paper.systems.system import DROPOUT, Answer, System, SystemConfig

TEMPERATURE = 0.07
NEAREST = 10
MARGIN, APART = 1.0, 7.0
"""How much nearer the right prototype must be, and how far prototypes stay from each other."""


class PeNet(System):
    """Prototypes of 1 + P predicates; label_words (C, w), predicate_words (1 + P, w)."""

    label_words: Tensor
    predicate_words: Tensor

    def __init__(self, model: ModelConfig, config: PeNetConfig, labels: int, predicates: int, *words: Tensor) -> None:
        super().__init__(model, labels, predicates)
        d, node, width = config.width, self.reader.node_width, words[0].shape[1]
        self.subject, self.object = End(node, width, d), End(node, width, d)
        self.union, self.gate = MLP([self.reader.pair_width], [d], d, DROPOUT), nn.Linear(2 * d, d)
        self.prototype = nn.Linear(width, d)
        # "No relation" has no word: its prototype, and what the words leave out of the others, is learned.
        self.own = nn.Parameter(torch.randn(1 + predicates, d) * 0.1)
        self.shared, self.norm = MLP([d], [d], d, DROPOUT), nn.LayerNorm(d)
        self.heat = nn.Parameter(torch.tensor(TEMPERATURE).log())
        self.node_out = nn.Linear(node, labels)
        self.register_buffer("label_words", words[0])
        self.register_buffer("predicate_words", words[1])

    def answer(self, reading: Reading) -> Answer:
        nodes = self.node_out(reading.nodes)
        words = self.label_words[self.chosen(reading, nodes)]
        subject, object_ = self.subject(reading.nodes, words), self.object(reading.nodes, words)
        prototypes = self.placed(self.prototype(self.predicate_words) + self.own)

        def relation(rows: slice, i: Tensor, j: Tensor) -> Tensor:
            s, o = subject.index_select(0, i), object_.index_select(0, j)
            joint = (s + o).relu() - (s - o).square()
            seen = self.union(reading.pairs(rows))
            gate = self.gate(torch.cat([joint, seen], 1)).sigmoid()
            return self.placed(dropout(joint - gate * seen, DROPOUT, self.training))

        def logits(relations: Tensor) -> Tensor:
            return normalize(relations, dim=1) @ normalize(prototypes, dim=1).t() / self.heat.exp()

        if not self.training:
            return Answer(nodes, reading.over_pairs(lambda rows, i, j: logits(relation(rows, i, j))))
        found = reading.over_pairs(relation)
        return Answer(nodes, logits(found), {"relations": found, "prototypes": prototypes})

    def placed(self, x: Tensor) -> Tensor:
        """(M, d) -> (M, d) in the space of prototypes."""
        return self.norm(x + self.shared(x))

    def training_loss(self, batch: SceneBatch, out: SceneLogits, common: Tensor) -> Tensor:
        """The common loss and the prototypes'."""
        if out.extra is None:
            return common
        found, prototypes = out.extra["relations"], out.extra["prototypes"]
        pull = self.pull(found[batch.relation_edge], prototypes, batch.relation_class)
        return common + (pull + self.push(prototypes)) / batch.num_graphs

    def pull(self, relations: Tensor, prototypes: Tensor, classes: Tensor) -> Tensor:
        """The mean over relations (M, d): squared distance to the own prototype, less that to the nearest others."""
        if not len(relations):
            return prototypes.sum() * 0
        width = prototypes.shape[1]
        distance = torch.cdist(relations, prototypes).square() / width
        own = distance.gather(1, classes[:, None]).squeeze(1)
        others = distance.scatter(1, classes[:, None], torch.inf)
        nearest = others.topk(min(NEAREST, others.shape[1] - 1), dim=1, largest=False).values.mean(1)
        return (own - nearest + MARGIN).clamp_min(0).mean()

    def push(self, prototypes: Tensor) -> Tensor:
        """Similarity of prototypes (1 + P, d) by angle, and how much nearer the nearest is than it should be."""
        units, count = normalize(prototypes, dim=1), len(prototypes)
        alike = (units @ units.t()).norm(dim=1).sum() / count**2
        away = torch.eye(count, device=prototypes.device) * 1e6
        nearest = (torch.cdist(prototypes, prototypes) + away).amin(1)
        return alike + (APART - nearest).clamp_min(0).mean()


class End(nn.Module):
    """A box as subject, or as object: W t + g * h(x)."""

    def __init__(self, node: int, words: int, width: int) -> None:
        super().__init__()
        self.word, self.box = nn.Linear(words, width), MLP([node], [width], width)
        self.gate = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, words: Tensor) -> Tensor:
        """x (N, d), words (N, w) -> (N, width)."""
        word, box = self.word(words), self.box(x)
        return word + self.gate(torch.cat([word, box], 1)).sigmoid() * box


@dataclass(frozen=True)
class PeNetConfig(SystemConfig):
    """Relations near the word vector of their predicate; `words` is the width of the word vectors."""

    kind: Literal["pe_net"] = "pe_net"
    network = PeNet
    width: int = bounded(256, 1, MAX_WIDTH)
    words: int = bounded(300, 1, MAX_WIDTH)


PRESETS = {"pe-net": PeNetConfig()}
