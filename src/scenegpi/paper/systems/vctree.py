r"""VCTree (Tang et al. 2019): context along a tree that the boxes of an image span, chosen by learned scores.

.. math::
    S_{ij} &= \sigma(\text{MLP}([a_i \odot b_j, a_i, b_j, q_{ij}]))\; q_{ij}, \qquad
    c = \text{TreeLSTM}(x), \qquad d = \text{TreeLSTM}([c, W_2 o]) \\
    y_{ij} &= W_r\, (W_h d_i \odot W_t d_j \odot f(u_{ij})) + w_{o_i o_j}

q is how often two such labels are related in training. No gradient goes through the choice of the tree; S learns by
"related in either direction". Labels o are decoded from the root down, each box reading its parent's label. The
original's second training, by the recall itself, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi.networks import MLP
from scenegpi.models.config import ModelConfig
from scenegpi.models.network import SceneLogits
from scenegpi.paper.systems.reader import Reading
from scenegpi.paper.systems.sequences import State
from scenegpi.paper.systems.system import DROPOUT, LABEL_WIDTH, Answer, ProductSystem, SystemConfig, wide
from scenegpi.paper.systems.trees import Forest, TreeLSTM, grow, through

SCORE_WIDTH = 64
"""Width of the network that scores links."""


class Vctree(ProductSystem):
    """Tree context for labels and for relations."""

    exportable = False

    def __init__(self, model: ModelConfig, config: VctreeConfig, labels: int, predicates: int) -> None:
        super().__init__(model, labels, predicates, "counts", config.width)
        h, node = config.width, self.reader.node_width
        self.first, self.second = nn.Linear(node, SCORE_WIDTH), nn.Linear(node, SCORE_WIDTH)
        self.link = MLP([3 * SCORE_WIDTH + 1], [SCORE_WIDTH], 1)
        self.objects = TreeLSTM(node, h)
        self.decoder = nn.LSTMCell(2 * h + LABEL_WIDTH, h)
        self.fed_back, self.label = nn.Embedding(1 + labels, LABEL_WIDTH), nn.Embedding(labels, LABEL_WIDTH)
        self.relations = TreeLSTM(2 * h + LABEL_WIDTH, h)
        self.subject, self.object = wide(2 * h, self.pool), wide(2 * h, self.pool)
        self.node_out = nn.Linear(h, labels)

    def answer(self, reading: Reading) -> Answer:
        links, related = self.links(reading)
        trees = grow(links.sigmoid() * related, reading.batch)
        c = self.objects(reading.nodes, trees)
        nodes = self.unless_given(reading, lambda: self.decode(reading, c, trees))
        labels = self.chosen(reading, nodes)
        d = self.relations(torch.cat([c, self.label(labels)], 1), trees)
        d = dropout(d, DROPOUT, self.training)
        pairs = self.product(reading, labels, self.subject(d), self.object(d))
        return Answer(nodes, pairs, {"links": links})

    def links(self, reading: Reading) -> tuple[Tensor, Tensor]:
        """Logits of S (E,), and q (E,), 1 where nothing is known beforehand."""
        a, b = self.first(reading.nodes), self.second(reading.nodes)

        def scores(rows: slice) -> Tensor:
            i, j = reading.batch.edge_index[:, rows]
            prior = reading.prior(rows)
            q = a.new_ones(i.shape[0], 1) if prior is None else prior.related[:, :1].sigmoid().to(a.dtype)
            found = self.link(torch.cat([a[i] * b[j], a[i], b[j], q], 1))
            return torch.cat([found, q], 1)

        both = reading.over_pairs(scores)
        return both[:, 0], both[:, 1]

    def decode(self, reading: Reading, c: Tensor, trees: Forest) -> Tensor:
        """Label logits (N, C), from the root down; each box reads its parent's label, in training the true one."""
        rows = len(c) + 1
        said = trees.parent.new_full((rows,), self.num_labels)
        if self.training:
            said = torch.cat([reading.batch.labels, said[-1:]])

        def step(state: State, boxes: Tensor) -> State:
            h, cell, said, out = state
            parent = trees.parent[boxes]
            read = torch.cat([c[boxes], self.fed_back(said[parent])], 1)
            new, after = self.decoder(read, (h[parent], cell[parent]))
            mine = self.node_out(new)
            if not self.training:
                found = (reading.node_logits[boxes] + mine).argmax(1)
                best = torch.where(reading.certain[boxes], reading.labels[boxes], found)
                said = said.index_copy(0, boxes, best)
            h, cell = h.index_copy(0, boxes, new), cell.index_copy(0, boxes, after)
            return h, cell, said, out.index_copy(0, boxes, mine)

        zero = c.new_zeros(rows, self.decoder.hidden_size)
        return through(step, (zero, zero.clone(), said, torch.zeros_like(reading.node_logits)), trees.down)[3]

    def training_loss(self, batch: SceneBatch, out: SceneLogits, common: Tensor) -> Tensor:
        """The common loss, and whether two boxes are related in either direction."""
        if out.extra is None or not batch.num_edges:
            return common
        total = self.related_loss(batch, out.extra["links"], either=True)
        pairs = (batch.edge_ptr[1:] - batch.edge_ptr[:-1]).clamp_min(1)
        return common + total / pairs / batch.num_graphs


@dataclass(frozen=True)
class VctreeConfig(SystemConfig):
    """A tree over the boxes of an image."""

    kind: Literal["vctree"] = "vctree"
    context, network = True, Vctree


PRESETS = {"vctree": VctreeConfig()}
