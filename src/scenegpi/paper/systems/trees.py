r"""Trees over the boxes of an image, and a tree LSTM that reads them in both directions.

A tree grows greedily from the box whose scores are highest on average: the best link from a box inside to one outside
is added until all are inside. Then it is turned into a binary tree: the first child of a box is its left child, the
next sibling of a box its right one. Of equal scores the first listed wins, the one place where the listing can matter.

.. math::
    (i, f_l, f_r, o) &= \sigma(W x + U_l h_l + U_r h_r + b), \qquad u = \tanh(W_u x + U_{ul} h_l + U_{ur} h_r + b_u) \\
    c &= i \odot u + f_l \odot c_l + f_r \odot c_r, \qquad h = o \odot \tanh c

from the leaves up; from the root down each box reads the state of its parent by an ordinary LSTM cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from scenegpi.features.batch import SceneBatch
from scenegpi.paper.systems.sequences import State


class Forest(NamedTuple):
    """Binary trees of a batch: `parent`, `left`, `right` (N,), N where there is none; `up`, `down`: boxes by level.

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


def through(step: Callable[[State, Tensor], State], state: State, levels: Iterable[Tensor]) -> State:
    """The state after all levels."""
    for boxes in levels:
        state = step(state, boxes)
    return state


def with_none(x: Tensor) -> Tensor:
    """(N, ...) -> (N + 1, ...): a row of zeros is read where there is no box."""
    return torch.cat([x, x.new_zeros(1, *x.shape[1:])])


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
        return torch.cat([self._up(x, trees), self._down(x, trees)], 1)

    def _up(self, x: Tensor, trees: Forest) -> Tensor:
        read, d = with_none(self.read(x)), self.hidden

        def step(state: State, boxes: Tensor) -> State:
            h, c = state
            left, right = trees.left[boxes], trees.right[boxes]
            total = read[boxes] + self.from_left(h[left]) + self.from_right(h[right])
            i, f, g, o = total[:, : 4 * d].sigmoid().split(d, 1)
            new = i * total[:, 4 * d :].tanh() + f * c[left] + g * c[right]
            return h.index_copy(0, boxes, o * new.tanh()), c.index_copy(0, boxes, new)

        zero = x.new_zeros(len(x) + 1, d)
        return through(step, (zero, zero.clone()), trees.up)[0][:-1]

    def _down(self, x: Tensor, trees: Forest) -> Tensor:
        read = with_none(x)

        def step(state: State, boxes: Tensor) -> State:
            h, c = state
            parent = trees.parent[boxes]
            new, after = self.down(read[boxes], (h[parent], c[parent]))
            return h.index_copy(0, boxes, new), c.index_copy(0, boxes, after)

        zero = x.new_zeros(len(x) + 1, self.hidden)
        return through(step, (zero, zero.clone()), trees.down)[0][:-1]
