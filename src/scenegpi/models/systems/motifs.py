r"""Neural Motifs (Zellers et al. 2018): two LSTMs over the boxes of an image, in some order.

.. math::
    c &= \text{LSTM}(x), \qquad o_t = \arg\max W_o\, \text{LSTM}([c_t, W o_{t-1}]), \qquad
    d = \text{LSTM}([c, W_2 o]) \\
    y_{ij} &= W_r\, (W_h d_i \odot W_t d_j \odot f(u_{ij})) + w_{o_i o_j}

Labels o are decoded one box after the other where none are given; in training the true ones are fed back. Without
context c and d are left out and W_h, W_t look up the labels: the row that the GPI paper calls Baseline.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from scenegpi.gpi.networks import MLP
from scenegpi.models.config import ModelConfig
from scenegpi.models.systems.config import MotifsConfig
from scenegpi.models.systems.highway import HighwayStack
from scenegpi.models.systems.ordering import reading_order
from scenegpi.models.systems.reader import Reading
from scenegpi.models.systems.recurrence import State, along, make_sequence
from scenegpi.models.systems.system import Answer, System

LABEL_WIDTH = 64
_SPREAD = 10.0


class Motifs(System):
    """Sequence context, or none."""

    def __init__(self, model: ModelConfig, config: MotifsConfig, labels: int, predicates: int) -> None:
        super().__init__(model, labels, predicates, config.bias)
        self.config = config
        h, pool = config.hidden, config.pool
        if config.context:
            self.objects = HighwayStack(self.reader.node_width, h, config.object_layers, config.recurrent_dropout)
            self.decoder = nn.LSTMCell(h + LABEL_WIDTH, h)
            self.fed_back = nn.Embedding(1 + labels, LABEL_WIDTH)
            self.label = nn.Embedding(labels, LABEL_WIDTH)
            self.relations = HighwayStack(h + LABEL_WIDTH, h, config.relation_layers, config.recurrent_dropout)
            self.subject: nn.Module = _wide(nn.Linear(h, pool))
            self.object: nn.Module = _wide(nn.Linear(h, pool))
            self.node_out = nn.Linear(h, labels)
        else:
            self.subject, self.object = nn.Embedding(labels, pool), nn.Embedding(labels, pool)
            self.node_out = nn.Linear(self.reader.node_width, labels)
        self.union = MLP([self.reader.pair_width], [min(pool, h)], pool, config.dropout)
        self.pair_out = nn.Linear(pool, 1 + predicates)

    def answer(self, reading: Reading) -> Answer:
        if self.config.context:
            nodes, labels, d = self._context(reading)
        else:
            nodes = self.node_out(reading.nodes)
            d = labels = self.chosen(reading, nodes)
        subject, object_ = self.subject(d), self.object(d)

        def logits(rows: slice) -> Tensor:
            i, j = reading.batch.edge_index[:, rows]
            g = subject.index_select(0, i) * object_.index_select(0, j) * self.union(reading.pairs(rows))
            out = self.pair_out(dropout(g, self.config.dropout, self.training))
            return self.biased(reading, labels, rows, out)

        return Answer(nodes, reading.over_pairs(logits))

    def _context(self, reading: Reading) -> tuple[Tensor, Tensor, Tensor]:
        """Label logits (N, C), labels (N,) and states d (N, h)."""
        batch = reading.batch
        order = self._order(reading, reading.dist)
        c = self.objects(reading.nodes, order, batch.ptr)
        nodes = self.unless_given(reading, lambda: self.decode(reading, c, order))
        labels = self.chosen(reading, nodes)
        if self.config.order == "confidence":  # the second LSTM sorts anew, by how sure the labels are now
            order = self._order(reading, (reading.node_logits + nodes).softmax(1))
        d = self.relations(torch.cat([c, self.label(labels)], 1), order, batch.ptr)
        return nodes, labels, dropout(d, self.config.dropout, self.training)

    def decode(self, reading: Reading, c: Tensor, order: Tensor) -> Tensor:
        """Label logits (N, C), one box of each image after the other; each reads the label before it."""
        hidden, none = self.config.hidden, self.num_labels
        fed = torch.where(reading.certain, reading.labels, none)  # a label that is known beforehand
        if self.training:
            fed = reading.batch.labels

        def start(images: int) -> State:
            zero = c.new_zeros(images, hidden)
            return zero, zero.clone(), fed.new_full((images,), none)

        def step(state: State, read: State) -> tuple[State, Tensor]:
            (h, cell, before), (mine, given, known) = state, read
            h, cell = self.decoder(torch.cat([mine, self.fed_back(before)], 1), (h, cell))
            logits = self.node_out(h)
            before = torch.where(known == none, (given + logits).argmax(1), known)
            return (h, cell, before), logits

        return along(make_sequence(order, reading.batch.ptr), step, start, (c, reading.node_logits, fed))

    def _order(self, reading: Reading, dist: Tensor) -> Tensor:
        return reading_order(reading.batch, self.config.order, dist, self.training, self.config.draw)


def _wide(layer: nn.Linear) -> nn.Linear:
    """As published: an LSTM's outputs are small, and a product of three of them would vanish."""
    nn.init.normal_(layer.weight, 0, _SPREAD / layer.in_features**0.5)
    return layer
