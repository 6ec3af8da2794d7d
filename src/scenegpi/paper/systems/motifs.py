r"""Neural Motifs (Zellers et al. 2018): two LSTMs over the boxes of an image, in some order.

.. math::
    c &= \text{LSTM}(x), \qquad o_t = \arg\max W_o\, \text{LSTM}([c_t, W o_{t-1}]), \qquad
    d = \text{LSTM}([c, W_2 o]) \\
    y_{ij} &= W_r\, (W_h d_i \odot W_t d_j \odot f(u_{ij})) + w_{o_i o_j}

Labels o are decoded one box after the other where none are given; in training the true ones are fed back. Without
context c and d are left out and W_h, W_t look up the labels: the row that the GPI paper calls Baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from scenegpi.models.config import MAX_WIDTH, ModelConfig
from scenegpi.options import bounded
from scenegpi.paper.systems.reader import Reading
from scenegpi.paper.systems.sequences import HighwayStack, Order, State, along, make_sequence, reading_order
from scenegpi.paper.systems.system import LABEL_WIDTH, Answer, Bias, ProductSystem, System, SystemConfig, wide

OBJECT_LAYERS, RELATION_LAYERS = 2, 4
"""Of the two LSTMs; every second layer runs backwards."""
RECURRENT_DROPOUT = 0.1


@dataclass(frozen=True)
class MotifsConfig(SystemConfig):
    """By default with context; without, the row that the paper calls Baseline.

    Args:
        context: two LSTMs over the boxes of an image.
        order: in which they read the boxes. "list" takes them as they are listed, which no model should.
        hidden, pool: widths of the LSTMs and of the product of subject, object and pair.
        bias: what label pairs add to the logits: nothing, training "counts" without the image's own (two learned
            scales), or a "trained" table that starts at the counts, as published.
    """

    kind: Literal["motifs"] = "motifs"
    context: bool = True
    order: Order = "left-right"
    hidden: int = bounded(256, 1, MAX_WIDTH)
    pool: int = bounded(512, 1, MAX_WIDTH)
    bias: Bias = "counts"
    dropout: float = bounded(0.2, 0.0, 0.95)

    def network(self, model: ModelConfig, labels: int, predicates: int, words: Sequence[Tensor]) -> System:
        return Motifs(model, self, labels, predicates)


PRESETS = {
    "motifs": MotifsConfig(),
    "motifs-size": MotifsConfig(order="size"),
    "motifs-list": MotifsConfig(order="list"),
    "motifs-no-context": MotifsConfig(context=False),
}


class Motifs(ProductSystem):
    """Sequence context, or none."""

    def __init__(self, model: ModelConfig, config: MotifsConfig, labels: int, predicates: int) -> None:
        h, pool = config.hidden, config.pool
        super().__init__(model, labels, predicates, config.bias, h, pool, config.dropout)
        self.config, self.exportable = config, not config.context
        if config.context:
            self.objects = HighwayStack(self.reader.node_width, h, OBJECT_LAYERS, RECURRENT_DROPOUT)
            self.decoder = nn.LSTMCell(h + LABEL_WIDTH, h)
            self.fed_back = nn.Embedding(1 + labels, LABEL_WIDTH)
            self.label = nn.Embedding(labels, LABEL_WIDTH)
            self.relations = HighwayStack(h + LABEL_WIDTH, h, RELATION_LAYERS, RECURRENT_DROPOUT)
            self.subject: nn.Module = wide(h, pool)
            self.object: nn.Module = wide(h, pool)
            self.node_out = nn.Linear(h, labels)
        else:
            self.subject, self.object = nn.Embedding(labels, pool), nn.Embedding(labels, pool)
            self.node_out = nn.Linear(self.reader.node_width, labels)

    def answer(self, reading: Reading) -> Answer:
        if self.config.context:
            nodes, labels, d = self._context(reading)
        else:
            nodes = self.node_out(reading.nodes)
            d = labels = self.chosen(reading, nodes)

        return Answer(nodes, self.product(reading, labels, self.subject(d), self.object(d)))

    def _context(self, reading: Reading) -> tuple[Tensor, Tensor, Tensor]:
        """Label logits (N, C), labels (N,) and states d (N, h)."""
        batch = reading.batch
        order = reading_order(batch, self.config.order, reading.dist)
        c = self.objects(reading.nodes, order, batch.ptr)
        nodes = self.unless_given(reading, lambda: self.decode(reading, c, order))
        labels = self.chosen(reading, nodes)
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
