r"""A Transformer over the boxes of an image, as in Scene-Graph-Benchmark: no order, no positions.

.. math::
    z &= \text{Encoder}(W x), \qquad e = \text{Encoder}(W' [x, z, W_2 o]), \qquad [s_i, o_j] = W'' e \\
    y_{ij} &= W_r\, (W_c [s_i, o_j] \odot f(u_{ij})) + W_x [s_i, o_j] + w_{o_i o_j}

Labels o that are read again are the system's own in training, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from scenegpi.gpi.dropout import dropout
from scenegpi.gpi.networks import MLP, Dense
from scenegpi.models.config import ModelConfig
from scenegpi.paper.systems.reader import Bias, Reading
from scenegpi.paper.systems.sequences import Padding
from scenegpi.paper.systems.system import LABEL_WIDTH, Answer, System, SystemConfig, wide

OBJECT_LAYERS, RELATION_LAYERS = 4, 2
"""Layers before the labels, and between labels and relations."""
HEADS = 4
DROPOUT = 0.1


class Transformer(System):
    """Self-attention among boxes, before and after the labels."""

    def __init__(self, model: ModelConfig, config: TransformerConfig, labels: int, predicates: int) -> None:
        super().__init__(model, labels, predicates, config.bias)
        d, node = config.width, self.reader.node_width
        self.enter = nn.Linear(node, d)
        self.objects = nn.ModuleList(EncoderLayer(d) for _ in range(OBJECT_LAYERS))
        self.label = nn.Embedding(labels, LABEL_WIDTH)
        self.enter_again = nn.Linear(node + d + LABEL_WIDTH, d)
        self.relations = nn.ModuleList(EncoderLayer(d) for _ in range(RELATION_LAYERS))
        self.ends = wide(d, 2 * d)
        self.product = Dense([d, d], d, "none")
        self.plain_out = Dense([d, d], 1 + predicates, "none")
        self.union = MLP([self.reader.pair_width], [d], d, DROPOUT)
        self.node_out, self.pair_out = nn.Linear(d, labels), nn.Linear(d, 1 + predicates)

    def answer(self, reading: Reading) -> Answer:
        places = Padding(reading.batch.batch, reading.batch.ptr)

        def attended(layers: nn.ModuleList, x: Tensor) -> Tensor:
            rows = places.pad(x)
            for layer in layers:
                rows = layer(rows, places.mask)
            return places.flat(rows)

        z = attended(self.objects, self.enter(reading.nodes))
        nodes = self.node_out(z)
        labels = reading.best_labels(nodes)
        again = self.enter_again(torch.cat([reading.nodes, z, self.label(labels)], 1))
        subject, object_ = self.ends(attended(self.relations, again)).chunk(2, 1)
        product, plain = _by_box(self.product, subject, object_), _by_box(self.plain_out, subject, object_)

        def logits(rows: slice, i: Tensor, j: Tensor) -> Tensor:
            g = (product[0].index_select(0, i) + product[1].index_select(0, j)) * self.union(reading.pairs(rows))
            out = self.pair_out(dropout(g, DROPOUT, self.training))
            out = out + plain[0].index_select(0, i) + plain[1].index_select(0, j)
            return self.bias(reading, labels, rows, out)

        return Answer(nodes, reading.over_pairs(logits))


class EncoderLayer(nn.Module):
    """Attention and a two-layer network, each added to its input and then normalised.

    That of torch computes the same, but when traced it keeps the number of boxes that it was traced with.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.read, self.attended = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.network = MLP([width], [4 * width], width, DROPOUT)
        self.norm, self.norm_out = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (G, T, d), mask (G, T) of what is there -> (G, T, d)."""
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in self.read(x).chunk(3, 2))
        seen = scaled_dot_product_attention(q, k, v, mask[:, None, None], DROPOUT if self.training else 0.0)
        message = self.attended(seen.transpose(1, 2).flatten(2))
        x = self.norm(x + dropout(message, DROPOUT, self.training))
        return self.norm_out(x + dropout(self.network(x), DROPOUT, self.training))


def _by_box(layer: Dense, subject: Tensor, object_: Tensor) -> tuple[Tensor, Tensor]:
    """An affine map of [s_i, o_j] is a sum of two, each computed once per box."""
    left, right = layer.columns()
    return linear(subject, left, layer.bias), linear(object_, right)


@dataclass(frozen=True)
class TransformerConfig(SystemConfig):
    """Self-attention over the boxes of an image, in no order; `bias` as in `MotifsConfig`."""

    kind: Literal["transformer"] = "transformer"
    context, network = True, Transformer
    bias: Bias = "counts"

    def __post_init__(self) -> None:
        if self.width % HEADS:
            raise ValueError(f"width: {self.width} is not a multiple of the {HEADS} heads")


PRESETS = {"transformer": TransformerConfig()}
