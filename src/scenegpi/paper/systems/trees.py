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

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from scenegpi.features.batch import SceneBatch
from scenegpi.paper.systems.padding import Padding
from scenegpi.paper.systems.sequences import State


class Forest(NamedTuple):
    """Binary trees of a batch: `parent`, `left`, `right` (N + 2,), N where there is none; `up`, `down`: boxes by level.

    The boxes of a level of `up` come after their children, those of a level of `down` after their parents. Row N is
    read where there is no box.
    """

    parent: Tensor
    left: Tensor
    right: Tensor
    up: list[Tensor]
    down: list[Tensor]


class Links(NamedTuple):
    """Boxes in the order in which they were added, all (T, G), as places in their images: the `box`, -1 where there are
    no more, the one above it in the binary tree, -1 for a root, and whether it is a right child."""

    box: Tensor
    above: Tensor
    right: Tensor


def grow(scores: Tensor, batch: SceneBatch) -> Forest:
    """scores (E,) of ordered pairs, which are added for both directions, -> a tree for each image."""
    n, (i, j) = batch.boxes.shape[0], batch.edge_index
    places = Padding(batch.batch, batch.ptr)
    matrix = scores.new_zeros(*places.mask.shape, places.mask.shape[1], dtype=torch.double)
    matrix = matrix.index_put((batch.batch[i], places.place[i], places.place[j]), scores.detach().double())
    counts = batch.ptr[1:] - batch.ptr[:-1]
    links = attach(matrix + matrix.transpose(1, 2), places.mask & (counts > 0)[:, None])
    first = batch.ptr[:-1]
    box = torch.where(links.box >= 0, first + links.box, n + 1)
    above = torch.where(links.above >= 0, first + links.above, n)
    none = batch.ptr.new_full((n + 2,), n)

    def pointers(rows: Tensor, values: Tensor) -> Tensor:
        found = none.index_copy(0, rows.flatten(), values.flatten())
        return torch.cat([found[:n], none[:2]])

    known = links.above >= 0
    parent = pointers(box, above)
    left = pointers(torch.where(known & ~links.right, above, n + 1), box)
    right = pointers(torch.where(known & links.right, above, n + 1), box)
    height, depth = _levels(parent.cpu().numpy(), box.cpu().numpy())
    return Forest(parent, left, right, _by_level(height, scores.device), _by_level(depth, scores.device))


def attach(scores: Tensor, there: Tensor) -> Links:
    """Symmetric scores (G, T, T) of the boxes that are there (G, T) -> the trees."""
    root = scores.sum(2).masked_fill(~there, -torch.inf).argmax(1)
    place = torch.arange(there.shape[1], device=there.device)
    best = torch.zeros_like(scores[:, 0]).masked_fill(~(there & (place == root[:, None])), -torch.inf)
    nobody = torch.zeros_like(there, dtype=torch.long) - 1

    state, said = (best, nobody, nobody.clone(), there), []
    for _ in place:
        best, link, youngest, outside = state
        value, new = best.max(1)
        more = value > -torch.inf
        parent = link.gather(1, new[:, None]).squeeze(1)
        known = more & (parent >= 0)
        before = youngest.gather(1, parent.clamp_min(0)[:, None]).squeeze(1)
        chosen = place == new[:, None]
        outside = outside & ~chosen
        best = best.masked_fill(chosen, -torch.inf)
        row = scores.gather(1, new[:, None, None].expand(-1, 1, scores.shape[2])).squeeze(1)
        nearer = (row > best) & outside & more[:, None]
        best, link = torch.where(nearer, row, best), torch.where(nearer, new[:, None], link)
        youngest = torch.where((place == parent[:, None]) & known[:, None], new[:, None], youngest)
        above = torch.where(known, torch.where(before < 0, parent, before), -1)
        said.append(torch.stack([torch.where(more, new, -1), above, (known & (before >= 0)).long()]))
        state = best, link, youngest, outside
    found = torch.stack(said)
    return Links(found[:, 0], found[:, 1], found[:, 2] > 0)


def _levels(parent: NDArray[np.int64], boxes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Heights and depths (N,) in the binary trees; boxes (T, G) with parents before children."""
    n = len(parent) - 2
    height, depth = np.zeros(n + 2, dtype=np.int64), np.full(n + 2, -1)
    for row in boxes:
        depth[row] = depth[parent[row]] + 1
        depth[n:] = -1
    for row in boxes[::-1]:
        row = row[row < n]
        height[parent[row]] = np.maximum(height[parent[row]], height[row] + 1)
    return height[:n], depth[:n]


def _by_level(level: NDArray[np.int64], device: torch.device) -> list[Tensor]:
    return [torch.from_numpy(np.flatnonzero(level == k)).to(device) for k in range(level.max(initial=-1) + 1)]


def through(step: Callable[[State, Tensor], State], state: State, levels: Iterable[Tensor]) -> State:
    """The state after all levels."""
    for boxes in levels:
        state = step(state, boxes)
    return state


def with_none(x: Tensor) -> Tensor:
    """(N, ...) -> (N + 2, ...): zeros where no box is."""
    return torch.cat([x, x.new_zeros(2, *x.shape[1:])])


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

        zero = x.new_zeros(x.shape[0] + 2, d)
        return through(step, (zero, zero.clone()), trees.up)[0][:-2]

    def _down(self, x: Tensor, trees: Forest) -> Tensor:
        read = with_none(x)

        def step(state: State, boxes: Tensor) -> State:
            h, c = state
            parent = trees.parent[boxes]
            new, after = self.down(read[boxes], (h[parent], c[parent]))
            return h.index_copy(0, boxes, new), c.index_copy(0, boxes, after)

        zero = x.new_zeros(x.shape[0] + 2, self.hidden)
        return through(step, (zero, zero.clone()), trees.down)[0][:-2]
