r"""Boxes of an image in a row: padded to equal length, or read in an order by highway LSTM layers.

.. math::
    (i, f, o, r) &= \sigma(W x_t + U h_{t-1} + b), \qquad g = \tanh(W_g x_t + U_g h_{t-1} + b_g) \\
    c_t &= i \odot g + f \odot c_{t-1}, \qquad
    h_t = r \odot o \odot \tanh c_t + (1 - r) \odot W_x x_t

Layer 1 runs forwards over the boxes of an image, layer 2 backwards over the outputs of layer 1, and so on: two layers
are what Neural Motifs calls one bidirectional LSTM. They need no padding: images that have ended are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi.dropout import dropout

FORGET = 1.0
State = tuple[Tensor, ...]
Step = Callable[[State, State], tuple[State, Tensor]]
"""A state, rows of what is read -> the next state, rows of what is said."""


class Padding:
    """Boxes (N, d) <-> (G, T, d), T at least 1; `mask` (G, T) says which places are taken.

    The first place of an image without boxes counts as taken, by a box of zeros: no softmax is over nothing.
    """

    def __init__(self, batch: Tensor, ptr: Tensor) -> None:
        counts = (ptr[1:] - ptr[:-1]).clamp_min(1)
        self.row = batch
        self.place = torch.arange(batch.shape[0], device=batch.device) - ptr[batch]
        longest = torch.cat([counts, counts.new_ones(1)]).max()
        self.mask = torch.arange(longest, device=batch.device) < counts[:, None]  # type: ignore[call-overload]

    def pad(self, x: Tensor) -> Tensor:
        """(N, d) -> (G, T, d), zero where no box is."""
        return x.new_zeros(*self.mask.shape, x.shape[1]).index_put((self.row, self.place), x)

    def flat(self, padded: Tensor) -> Tensor:
        """(G, T, d) -> (N, d)."""
        return padded[self.row, self.place]


def make_sequence(order: Tensor, ptr: Tensor, backwards: bool = False) -> PackedSequence:
    """order (N,) boxes image by image, ptr (G + 1,) the first of each image.

    `data` (N,) then holds the first box of every image, the second of every image, ..., longer images first, and
    `batch_sizes` how many boxes each step has.
    """
    images = [part.flip(0) if backwards else part for part in order.tensor_split(ptr[1:-1].cpu()) if len(part)]
    return pack_sequence(images, enforce_sorted=False) if images else PackedSequence(order, ptr[:0].cpu())


def along(sequence: PackedSequence, step: Step, start: Callable[[int], State], read: State) -> Tensor:
    """Applies `step` to the inputs `read` of each box, (N, ...) each: (N, ...), in the order of the list.

    `start` gives the first state of a number of images.
    """
    boxes, sizes = sequence.data, sequence.batch_sizes.tolist()
    rows = zip(*(each.index_select(0, boxes).split(sizes) for each in read), strict=True)
    state, said = start(sizes[0] if sizes else 0), []
    for size, mine in zip(sizes, rows, strict=True):
        state, out = step(tuple(each[:size] for each in state), mine)
        said.append(out)
    if not said:  # one step over nothing tells the shape
        return step(state, read)[1]
    return torch.cat(said).index_select(0, boxes.argsort())


def reading_order(batch: SceneBatch, dist: Tensor, by: Literal["place", "size"] = "place") -> Tensor:
    """(N,) boxes image by image, from right to left as in the released code of Neural Motifs, or from large to small.

    Boxes that tie, which is common, are put in order by their place, their size and their label distributions dist
    (N, C), not by the listing; only boxes that are equal in all of it remain tied, and then it does not matter.
    """
    x1, y1, x2, y2 = batch.boxes.unbind(1)
    dist = dist.detach().double()
    key = x1 + x2 if by == "place" else (x2 - x1) * (y2 - y1)
    weights = torch.linspace(1, 2, dist.shape[1], dtype=torch.double, device=dist.device).sqrt()
    keys = [batch.batch, -key, x1 + x2, y1 + y2, x2 - x1, y2 - y1, dist.argmax(1), (dist * weights).sum(1)]
    order = torch.arange(len(dist), device=dist.device)
    for each in reversed(keys):
        order = order[torch.argsort(each[order], stable=True)]
    return order


class HighwayLayer(nn.Module):
    """One layer, (N, d) -> (N, h), box by box in the order of a sequence."""

    def __init__(self, width: int, hidden: int, recurrent_dropout: float = 0.0) -> None:
        super().__init__()
        self.hidden, self.recurrent_dropout = hidden, recurrent_dropout
        self.read = nn.Linear(width, 6 * hidden)
        self.state = nn.Linear(hidden, 5 * hidden, bias=False)
        for block in self.state.weight.data.split(hidden):
            nn.init.orthogonal_(block)
        nn.init.zeros_(self.read.bias)
        self.read.bias.data[hidden : 2 * hidden] = FORGET

    def forward(self, x: Tensor, sequence: PackedSequence) -> Tensor:
        d = self.hidden
        kept: Tensor | None = None  # of the state, by image

        def start(images: int) -> State:
            nonlocal kept
            if self.training and self.recurrent_dropout:
                kept = dropout(x.new_ones(images, d), self.recurrent_dropout)
            return x.new_zeros(images, d), x.new_zeros(images, d)

        def step(state: State, read: State) -> tuple[State, Tensor]:
            (h, c), (mine,) = state, read
            total = mine[:, : 5 * d] + self.state(h if kept is None else h * kept[: h.shape[0]])
            i, f, o, r = total[:, : 4 * d].sigmoid().split(d, 1)
            c = i * total[:, 4 * d :].tanh() + f * c
            h = r * (o * c.tanh()) + (1 - r) * mine[:, 5 * d :]
            return (h, c), h

        return along(sequence, step, start, (self.read(x),))


class HighwayStack(nn.Module):
    """Layers in alternating directions, forwards first: x (N, d) -> (N, h)."""

    def __init__(self, width: int, hidden: int, layers: int, recurrent_dropout: float = 0.0) -> None:
        super().__init__()
        widths = [width] + [hidden] * (layers - 1)
        self.layers = nn.ModuleList(HighwayLayer(each, hidden, recurrent_dropout) for each in widths)

    def forward(self, x: Tensor, order: Tensor, ptr: Tensor) -> Tensor:
        """order (N,) boxes image by image, ptr (G + 1,)."""
        sequences = [make_sequence(order, ptr), make_sequence(order, ptr, backwards=True)]
        for k, layer in enumerate(self.layers):
            x = layer(x, sequences[k % 2])
        return x
