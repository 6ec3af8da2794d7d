r"""Trees over the boxes of an image, and a tree LSTM that reads them in both directions.

A tree grows greedily from the box whose scores are highest on average: the best link from a box inside to one outside
is added until all are inside. Then it is turned into a binary tree: the first child of a box is its left child, the
next sibling of a box its right one. Scores that tie are broken by the listing, the one place where it can matter.

.. math::
    (i, f_l, f_r, o) &= \sigma(W x + U_l h_l + U_r h_r + b), \qquad u = \tanh(W_u x + U_{ul} h_l + U_{ur} h_r + b_u) \\
    c &= i \odot u + f_l \odot c_l + f_r \odot c_r, \qquad h = o \odot \tanh c

from the leaves up; from the root down each box reads the state of its parent by an ordinary LSTM cell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from scenegpi.features.batch import SceneBatch


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
    n = len(batch.boxes)
    found = np.full((3, n), n, dtype=np.int64)
    height, depth = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    values = scores.detach().double().cpu().numpy()
    starts, edges = batch.ptr.tolist(), batch.edge_ptr.tolist()
    for g in range(batch.num_graphs):
        size, first = starts[g + 1] - starts[g], starts[g]
        if not size:
            continue
        matrix = np.zeros((size, size))
        matrix[~np.eye(size, dtype=bool)] = values[edges[g] : edges[g + 1]]
        children, order = attach(matrix + matrix.T)
        for box in order:
            before = -1
            for child in children[box]:
                at = box if before < 0 else before
                found[1 if before < 0 else 2, first + at] = first + child
                found[0, first + child] = first + at
                before = child
        _levels(found, first, order[0], height, depth)
    parent, left, right = (torch.from_numpy(row).to(scores.device) for row in found)
    return Forest(parent, left, right, _by_level(height, scores.device), _by_level(depth, scores.device))


def attach(scores: NDArray[np.float64]) -> tuple[list[list[int]], list[int]]:
    """Symmetric scores (n, n) -> the children of each box in the order they were added, and the boxes in that order."""
    n = len(scores)
    root = int(scores.sum(1).argmax())
    order, children = [root], [[] for _ in range(n)]  # type: tuple[list[int], list[list[int]]]
    best, link = scores[root].copy(), np.full(n, root)
    best[root] = -np.inf
    for _ in range(n - 1):
        new = int(best.argmax())
        children[link[new]].append(new)
        order.append(new)
        best[new] = -np.inf
        nearer = (scores[new] > best) & ~np.isin(np.arange(n), order)
        best[nearer], link[nearer] = scores[new][nearer], new
    return children, order


def _levels(
    found: NDArray[np.int64], first: int, root: int, height: NDArray[np.int64], depth: NDArray[np.int64]
) -> None:
    """Heights and depths in the binary tree below `root` (in place)."""
    none, walk = len(height), [first + root]
    for box in walk:  # parents before children
        for child in (found[1, box], found[2, box]):
            if child != none:
                depth[child] = depth[box] + 1
                walk.append(int(child))
    for box in reversed(walk):
        if found[0, box] != none:
            height[found[0, box]] = max(height[found[0, box]], height[box] + 1)


def _by_level(level: NDArray[np.int64], device: torch.device) -> list[Tensor]:
    return [torch.from_numpy(np.flatnonzero(level == k)).to(device) for k in range(level.max(initial=-1) + 1)]


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
        read, d = self.read(x), self.hidden
        h = c = x.new_zeros(len(x) + 1, d)  # the last row is what is read of a child that is not there
        for boxes in trees.up:
            left, right = trees.left[boxes], trees.right[boxes]
            total = read[boxes] + self.from_left(h[left]) + self.from_right(h[right])
            i, f, g, o = total[:, : 4 * d].sigmoid().split(d, 1)
            state = i * total[:, 4 * d :].tanh() + f * c[left] + g * c[right]
            h, c = h.index_copy(0, boxes, o * state.tanh()), c.index_copy(0, boxes, state)
        return h[:-1]

    def _down(self, x: Tensor, trees: Forest) -> Tensor:
        h = c = x.new_zeros(len(x) + 1, self.hidden)
        for boxes in trees.down:
            parent = trees.parent[boxes]
            new, state = self.down(x[boxes], (h[parent], c[parent]))
            h, c = h.index_copy(0, boxes, new), c.index_copy(0, boxes, state)
        return h[:-1]
