r"""Iterative message passing (Xu et al. 2017): states of boxes and pairs that send each other gated messages.

.. math::
    h_i &= \text{GRU}_v(W_v x_i, 0), \qquad h_{ij} = \text{GRU}_e(\text{ReLU}(W_e u_{ij}), 0) \\
    m_{ij} &= \sigma(a_1 [h_i, h_{ij}])\, h_i + \sigma(a_2 [h_j, h_{ij}])\, h_j \\
    m_i &= \sum_j \sigma(b_1 [h_i, h_{ij}])\, h_{ij} + \sum_j \sigma(b_2 [h_i, h_{ji}])\, h_{ji} \\
    h_{ij} &\leftarrow \text{GRU}_e(m_{ij}, h_{ij}), \qquad h_i \leftarrow \text{GRU}_v(m_i, h_i)

The sums over a box's pairs are sums, as published, so that the scale of m_i grows with the number of boxes. The
original never reads labels; without pixels it must, through x_i, or it would see rectangles only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from scenegpi.gpi.dropout import dropout
from scenegpi.gpi.networks import MLP
from scenegpi.gpi.segments import segment_sum
from scenegpi.models.config import ModelConfig
from scenegpi.options import bounded
from scenegpi.paper.systems.reader import Reading
from scenegpi.paper.systems.system import DROPOUT, Answer, System, SystemConfig


class Imp(System):
    """T steps of messages between boxes and pairs."""

    def __init__(self, model: ModelConfig, config: ImpConfig, labels: int, predicates: int) -> None:
        super().__init__(model, labels, predicates)
        self.config = config
        d = config.width
        self.box = nn.Linear(self.reader.node_width, d)
        self.union = MLP([self.reader.pair_width], [d], d, DROPOUT)
        self.box_cell, self.pair_cell = nn.GRUCell(d, d), nn.GRUCell(d, d)
        self.from_subject, self.from_object = Gate(d), Gate(d)
        self.as_subject, self.as_object = Gate(d), Gate(d)
        self.node_out, self.pair_out = nn.Linear(d, labels), nn.Linear(d, 1 + predicates)

    def answer(self, reading: Reading) -> Answer:
        boxes = self.box_cell(self.box(reading.nodes))
        pairs = reading.over_pairs(lambda rows, i, j: self.pair_cell(self.union(reading.pairs(rows)).relu()))
        for _ in range(self.config.steps):
            boxes, pairs = self.step(reading, boxes, pairs)
        boxes, pairs = (dropout(each, DROPOUT, self.training) for each in (boxes, pairs))
        return Answer(self.node_out(boxes), self.pair_out(pairs))

    def step(self, reading: Reading, boxes: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
        """boxes (N, d), pairs (E, d) -> the same after one exchange of messages."""

        def updated(rows: slice, i: Tensor, j: Tensor) -> Tensor:
            mine = pairs[rows]
            message = self.from_subject(boxes, i, mine) * boxes[i] + self.from_object(boxes, j, mine) * boxes[j]
            return self.pair_cell(message, mine)

        new = reading.over_pairs(updated)
        read = new if self.config.schedule == "sequential" else pairs
        message = torch.zeros_like(boxes)
        for rows in reading.chunks():
            i, j = reading.batch.edge_index[:, rows]
            mine = read[rows]
            message = message + segment_sum(self.as_subject(boxes, i, mine) * mine, i, boxes.shape[0])
            message = message + segment_sum(self.as_object(boxes, j, mine) * mine, j, boxes.shape[0])
        return self.box_cell(message, boxes), new


class Gate(nn.Module):
    """A number from 0 to 1 for a box and a pair: sigma(a [h, e] + c)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.box, self.pair = nn.Linear(width, 1), nn.Linear(width, 1, bias=False)

    def forward(self, boxes: Tensor, index: Tensor, pairs: Tensor) -> Tensor:
        """boxes (N, d) by index (E,), pairs (E, d) -> (E, 1); what depends on a box is computed once per box."""
        return (self.box(boxes).index_select(0, index) + self.pair(pairs)).sigmoid()


@dataclass(frozen=True)
class ImpConfig(SystemConfig):
    """Iterative message passing; by default as Zellers et al. trained it again.

    Args:
        steps: number of exchanges of messages.
        schedule: boxes read the old states of pairs ("synchronous"), or those just updated ("sequential", 2017).
    """

    kind: Literal["imp"] = "imp"
    context, network = True, Imp
    steps: int = bounded(3, 0, 16)
    schedule: Literal["synchronous", "sequential"] = "synchronous"


PRESETS = {"imp": ImpConfig(), "imp-2017": ImpConfig(steps=2, schedule="sequential")}
