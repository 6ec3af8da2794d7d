r"""VCTree (Tang et al. 2019): context along a tree that the boxes of an image span, chosen by learned scores.

.. math::
    S_{ij} &= \sigma(\text{MLP}([a_i \odot b_j, a_i, b_j, q_{ij}]))\; q_{ij}, \qquad
    c = \text{TreeLSTM}(x), \qquad d = \text{TreeLSTM}([c, W_2 o]) \\
    y_{ij} &= W_r\, (W_h d_i \odot W_t d_j \odot f(u_{ij})) + w_{o_i o_j}

q is how often two such labels are related in training. No gradient goes through the choice of the tree; S learns by
"related in either direction". Labels o are decoded from the root down, each box reading its parent's label. The
original's second training, by the recall itself, is left out.

A tree grows greedily from the box whose scores are highest on average: the best link from a box inside to one outside
is added until all are inside. Then it is turned into a binary tree: the first child of a box is its left child, the
next sibling of a box its right one. Of equal scores the first listed wins, the one place where the listing can matter.
The tree LSTM reads it in both directions,

.. math::
    (i, f_l, f_r, o) &= \sigma(W x + U_l h_l + U_r h_r + b), \qquad u = \tanh(W_u x + U_{ul} h_l + U_{ur} h_r + b_u) \\
    c &= i \odot u + f_l \odot c_l + f_r \odot c_r, \qquad h = o \odot \tanh c

from the leaves up; from the root down each box reads the state of its parent by an ordinary LSTM cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi.dropout import dropout
from scenegpi.gpi.networks import MLP
from scenegpi.models.config import ModelConfig
from scenegpi.models.scene_network import SceneLogits
from scenegpi.paper.systems.reader import Reading
from scenegpi.paper.systems.system import DROPOUT, LABEL_WIDTH, Answer, ProductSystem, SystemConfig, wide

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
        d = dropout(self.relations(torch.cat([c, self.label(labels)], 1), trees), DROPOUT, self.training)
        pairs = self.product(reading, labels, self.subject(d), self.object(d))
        return Answer(nodes, pairs, {"links": links})

    def links(self, reading: Reading) -> tuple[Tensor, Tensor]:
        """Logits of S (E,), and q (E,), 1 where nothing is known beforehand."""
        a, b = self.first(reading.nodes), self.second(reading.nodes)

        def scores(rows: slice, i: Tensor, j: Tensor) -> Tensor:
            prior = reading.prior(rows)
            q = a.new_ones(i.shape[0], 1) if prior is None else prior.related[:, :1].sigmoid().to(a.dtype)
            return torch.cat([self.link(torch.cat([a[i] * b[j], a[i], b[j], q], 1)), q], 1)

        links, related = reading.over_pairs(scores).unbind(1)
        return links, related

    def decode(self, reading: Reading, c: Tensor, trees: Forest) -> Tensor:
        """Label logits (N, C), from the root down; each box reads its parent's label, in training the true one."""
        # Label numbers end with that of "no parent".
        said = torch.cat([reading.batch.labels, trees.parent.new_full((1,), self.num_labels)])
        h = cell = c.new_zeros(len(c) + 1, self.decoder.hidden_size)
        out = torch.zeros_like(reading.node_logits)
        for boxes in trees.down:
            parent = trees.parent[boxes]
            read = torch.cat([c[boxes], self.fed_back(said[parent])], 1)
            new_h, new_cell = self.decoder(read, (h[parent], cell[parent]))
            h, cell = h.index_copy(0, boxes, new_h), cell.index_copy(0, boxes, new_cell)
            out = out.index_copy(0, boxes, self.node_out(new_h))
            if not self.training:
                said = said.index_copy(0, boxes, reading.best_labels(out)[boxes])
        return out

    def training_loss(self, batch: SceneBatch, out: SceneLogits, common: Tensor) -> Tensor:
        """The common loss, and whether two boxes are related in either direction."""
        if out.extra is None or not batch.num_edges:
            return common
        total = self.related_loss(batch, out.extra["links"], either=True)
        pairs = (batch.edge_ptr[1:] - batch.edge_ptr[:-1]).clamp_min(1)
        return common + total / pairs / batch.num_graphs


class Forest(NamedTuple):
    """Binary trees of a batch: `parent`, `left`, `right` (N,), N for no such box; `up`, `down`: boxes by level.

    The boxes of a level of `up` come after their children, those of a level of `down` after their parents.
    """

    parent: Tensor
    left: Tensor
    right: Tensor
    up: list[Tensor]
    down: list[Tensor]


def grow(scores: Tensor, batch: SceneBatch) -> Forest:
    """scores (E,) of ordered pairs, which are added for both directions, -> a tree for each image."""
    n, values = len(batch.boxes), scores.detach().double().cpu().numpy()
    parent, left, right = np.full((3, n), n)
    height, depth = np.zeros((2, n), dtype=np.int64)
    spans = pairwise(batch.ptr.tolist()), pairwise(batch.edge_ptr.tolist())
    for (first, end), (start, stop) in zip(*spans, strict=True):
        matrix = np.zeros((end - first, end - first))
        matrix[~np.eye(end - first, dtype=bool)] = values[start:stop]
        links = [(first + box, first + above) for box, above in attach(matrix + matrix.T)]
        youngest: dict[int, int] = {}
        for box, above in links:
            upper, side = (youngest[above], right) if above in youngest else (above, left)
            parent[box], side[upper], depth[box], youngest[above] = upper, box, depth[upper] + 1, box
        for box, _ in reversed(links):
            height[parent[box]] = max(height[parent[box]], height[box] + 1)

    def tensor(values: NDArray[np.integer]) -> Tensor:
        return torch.from_numpy(values).to(scores.device)

    up, down = (
        [tensor(np.flatnonzero(level == k)) for k in range(level.max(initial=-1) + 1)] for level in (height, depth)
    )
    return Forest(tensor(parent), tensor(left), tensor(right), up, down)


def attach(scores: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Symmetric scores (n, n) -> (box, the box that it hangs from), in the order in which boxes join the root."""
    if len(scores) < 2:
        return []
    root = int(scores.sum(1).argmax())
    best, link, outside = scores[root].copy(), np.full(len(scores), root), np.ones(len(scores), dtype=bool)
    outside[root] = False
    links = []
    for _ in range(len(scores) - 1):
        new = int(np.where(outside, best, -np.inf).argmax())
        links.append((new, int(link[new])))
        outside[new] = False
        nearer = scores[new] > best
        best, link = np.where(nearer, scores[new], best), np.where(nearer, new, link)
    return links


class TreeLSTM(nn.Module):
    """x (N, d) -> (N, 2 h): up and down, each h wide."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.read = nn.Linear(width, 5 * hidden)
        self.from_left = nn.Linear(hidden, 5 * hidden, bias=False)
        self.from_right = nn.Linear(hidden, 5 * hidden, bias=False)
        self.down = nn.LSTMCell(width, hidden)

    def forward(self, x: Tensor, trees: Forest) -> Tensor:
        read, d = self.read(x), self.hidden
        h = c = h_down = c_down = x.new_zeros(len(x) + 1, d)  # the last row is read where there is no box
        for boxes in trees.up:
            left, right = trees.left[boxes], trees.right[boxes]
            total = read[boxes] + self.from_left(h[left]) + self.from_right(h[right])
            i, f, g, o = total[:, : 4 * d].sigmoid().split(d, 1)
            new = i * total[:, 4 * d :].tanh() + f * c[left] + g * c[right]
            h, c = h.index_copy(0, boxes, o * new.tanh()), c.index_copy(0, boxes, new)
        for boxes in trees.down:
            parent = trees.parent[boxes]
            new_h, new_c = self.down(x[boxes], (h_down[parent], c_down[parent]))
            h_down, c_down = h_down.index_copy(0, boxes, new_h), c_down.index_copy(0, boxes, new_c)
        return torch.cat([h[:-1], h_down[:-1]], 1)


@dataclass(frozen=True)
class VctreeConfig(SystemConfig):
    """A tree over the boxes of an image."""

    kind: Literal["vctree"] = "vctree"
    context, network = True, Vctree


PRESETS = {"vctree": VctreeConfig()}
