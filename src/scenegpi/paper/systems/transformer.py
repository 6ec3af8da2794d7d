r"""A Transformer over the boxes of an image, as in Scene-Graph-Benchmark: no order, no positions.

.. math::
    z &= \text{Encoder}(W x), \qquad e = \text{Encoder}(W' [x, z, W_2 o]), \qquad [s_i, o_j] = W'' e \\
    y_{ij} &= W_r\, (W_c [s_i, o_j] \odot f(u_{ij})) + W_x [s_i, o_j] + w_{o_i o_j}

Labels o that are read again are the system's own in training, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, linear

from scenegpi.gpi.networks import MLP, Dense
from scenegpi.models.config import MAX_WIDTH, ModelConfig
from scenegpi.options import bounded
from scenegpi.paper.systems.padding import Padding
from scenegpi.paper.systems.reader import Reading
from scenegpi.paper.systems.system import LABEL_WIDTH, Answer, Bias, System, SystemConfig, wide

OBJECT_LAYERS, RELATION_LAYERS = 4, 2
"""Before the labels, and between labels and relations."""


@dataclass(frozen=True)
class TransformerConfig(SystemConfig):
    """Self-attention over the boxes of an image: no order at all.

    Args:
        width, heads, inner: of each layer.
        bias: as in `MotifsConfig`.
    """

    kind: Literal["transformer"] = "transformer"
    context = True
    width: int = bounded(128, 1, MAX_WIDTH)
    heads: int = bounded(4, 1, 64)
    inner: int = bounded(512, 1, 4096)
    bias: Bias = "counts"
    dropout: float = bounded(0.1, 0.0, 0.95)

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"heads: {self.heads} heads do not divide a width of {self.width}")

    def network(self, model: ModelConfig, labels: int, predicates: int, words: Sequence[Tensor]) -> System:
        return Transformer(model, self, labels, predicates)


PRESETS = {"transformer": TransformerConfig()}


class Transformer(System):
    """Self-attention among boxes, before and after the labels."""

    def __init__(self, model: ModelConfig, config: TransformerConfig, labels: int, predicates: int) -> None:
        super().__init__(model, labels, predicates, config.bias)
        self.config = config
        d, node = config.width, self.reader.node_width
        self.enter = nn.Linear(node, d)
        self.objects = nn.ModuleList(EncoderLayer(config) for _ in range(OBJECT_LAYERS))
        self.label = nn.Embedding(labels, LABEL_WIDTH)
        self.enter_again = nn.Linear(node + d + LABEL_WIDTH, d)
        self.relations = nn.ModuleList(EncoderLayer(config) for _ in range(RELATION_LAYERS))
        self.ends = wide(d, 2 * d)
        self.product = Dense([d, d], d, "none")
        self.plain = Dense([d, d], 1 + predicates, "none")
        self.union = MLP([self.reader.pair_width], [d], d, config.dropout)
        self.node_out, self.pair_out = nn.Linear(d, labels), nn.Linear(d, 1 + predicates)

    def start(self) -> None:
        super().start()
        if self.on_baseline:
            nn.init.zeros_(self.plain.weight)
            nn.init.zeros_(self.plain.bias)

    def answer(self, reading: Reading) -> Answer:
        places = Padding(reading.batch.batch, reading.batch.ptr)
        z = _through(self.objects, places, self.enter(reading.nodes))
        nodes = self.node_out(z)
        labels = torch.where(reading.certain, reading.labels, (reading.node_logits + nodes).argmax(1))
        again = self.enter_again(torch.cat([reading.nodes, z, self.label(labels)], 1))
        subject, object_ = self.ends(_through(self.relations, places, again)).chunk(2, 1)
        # An affine map of [s_i, o_j] is a sum of two, each computed once per box.
        product = self._by_box(self.product, subject, object_)
        plain = self._by_box(self.plain, subject, object_)

        def logits(rows: slice) -> Tensor:
            i, j = reading.batch.edge_index[:, rows]
            g = (product[0].index_select(0, i) + product[1].index_select(0, j)) * self.union(reading.pairs(rows))
            out = self.pair_out(dropout(g, self.config.dropout, self.training))
            out = out + plain[0].index_select(0, i) + plain[1].index_select(0, j)
            return self.biased(reading, labels, rows, out)

        return Answer(nodes, reading.over_pairs(logits))

    @staticmethod
    def _by_box(layer: Dense, subject: Tensor, object_: Tensor) -> tuple[Tensor, Tensor]:
        left, right = layer.columns()
        return linear(subject, left, layer.bias), linear(object_, right)


class EncoderLayer(nn.Module):
    """Attention and a two-layer network, each added to its input and then normalised."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        d = config.width
        self.heads, self.dropout = config.heads, config.dropout
        self.read, self.attended = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.network = MLP([d], [config.inner], d, config.dropout)
        self.norm, self.norm_out = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (G, T, d), mask (G, T) of what is there -> (G, T, d)."""
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.read(x).chunk(3, 2))
        scores = (q @ k.transpose(2, 3)) / q.shape[3] ** 0.5
        weights = scores.masked_fill(~mask[:, None, None], -torch.inf).softmax(3)
        message = self.attended((self._thinned(weights) @ v).transpose(1, 2).flatten(2))
        x = self.norm(x + self._thinned(message))
        return self.norm_out(x + self._thinned(self.network(x)))

    def _thinned(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)


def _through(layers: nn.ModuleList, places: Padding, x: Tensor) -> Tensor:
    """x (N, d) through layers that see one image at a time."""
    padded = places.pad(x)
    for layer in layers:
        padded = layer(padded, places.mask)
    return places.flat(padded)
