r"""Neural Motifs (Zellers et al. 2018): two LSTMs over the boxes of an image, in some order.

.. math::
    c &= \text{LSTM}(x), \qquad o_t = \arg\max W_o\, \text{LSTM}([c_t, W o_{t-1}]), \qquad
    d = \text{LSTM}([c, W_2 o]) \\
    y_{ij} &= W_r\, (W_h d_i \odot W_t d_j \odot f(u_{ij})) + w_{o_i o_j}

Labels o are decoded one box after the other where none are given; in training the true ones are fed back. Without
context c and d are left out and W_h, W_t look up the labels: the row that the GPI paper calls Baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from scenegpi.gpi.dropout import dropout
from scenegpi.models.config import MAX_WIDTH, ModelConfig
from scenegpi.options import bounded
from scenegpi.paper.systems.reader import Bias, Reading
from scenegpi.paper.systems.sequences import HighwayStack, State, along, make_sequence, reading_order
from scenegpi.paper.systems.system import DROPOUT, LABEL_WIDTH, Answer, ProductSystem, SystemConfig, wide

OBJECT_LAYERS, RELATION_LAYERS = 2, 4
"""Layers of the two LSTMs; every second one runs backwards."""
RECURRENT_DROPOUT = 0.1


class Motifs(ProductSystem):
    """Sequence context, or none."""

    def __init__(self, model: ModelConfig, config: MotifsConfig, labels: int, predicates: int) -> None:
        h = config.width
        super().__init__(model, labels, predicates, config.bias, h)
        self.config, self.exportable = config, not config.context
        if config.context:
            self.objects = HighwayStack(self.reader.node_width, h, OBJECT_LAYERS, RECURRENT_DROPOUT)
            self.decoder = nn.LSTMCell(h + LABEL_WIDTH, h)
            self.fed_back = nn.Embedding(1 + labels, LABEL_WIDTH)
            self.label = nn.Embedding(labels, LABEL_WIDTH)
            self.relations = HighwayStack(h + LABEL_WIDTH, h, RELATION_LAYERS, RECURRENT_DROPOUT)
            self.subject: nn.Module = wide(h, self.pool)
            self.object: nn.Module = wide(h, self.pool)
            self.node_out = nn.Linear(h, labels)
        else:
            self.subject, self.object = nn.Embedding(labels, self.pool), nn.Embedding(labels, self.pool)
            self.node_out = nn.Linear(self.reader.node_width, labels)

    def answer(self, reading: Reading) -> Answer:
        if self.config.context:
            ptr, order = reading.batch.ptr, reading_order(reading.batch, reading.dist)
            c = self.objects(reading.nodes, order, ptr)
            nodes = self.unless_given(reading, lambda: self.decode(reading, c, order))
            labels = self.chosen(reading, nodes)
            d = dropout(self.relations(torch.cat([c, self.label(labels)], 1), order, ptr), DROPOUT, self.training)
        else:
            nodes = self.node_out(reading.nodes)
            d = labels = self.chosen(reading, nodes)
        return Answer(nodes, self.product(reading, labels, self.subject(d), self.object(d)))

    def decode(self, reading: Reading, c: Tensor, order: Tensor) -> Tensor:
        """Label logits (N, C), one box of each image after the other; each reads the label before it."""
        hidden, none = self.config.width, self.num_labels
        known_before = torch.where(reading.certain, reading.labels, none)
        fed = reading.batch.labels if self.training else known_before

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


@dataclass(frozen=True)
class MotifsConfig(SystemConfig):
    """Neural Motifs; without context, the row that the paper calls Baseline.

    Args:
        context: two LSTMs over the boxes of an image.
        bias: what label pairs add to the logits: nothing, training "counts" without the image's own (two learned
            scales), or a "trained" table that starts at the counts, as published.
    """

    kind: Literal["motifs"] = "motifs"
    network = Motifs
    width: int = bounded(256, 1, MAX_WIDTH)
    context: bool = True
    bias: Bias = "counts"


PRESETS = {"motifs": MotifsConfig(), "motifs-no-context": MotifsConfig(context=False)}
