r"""A stack of highway LSTM layers that alternate in direction, over sequences of different length without padding.

.. math::
    (i, f, o, r) &= \sigma(W x_t + U h_{t-1} + b), \qquad g = \tanh(W_g x_t + U_g h_{t-1} + b_g) \\
    c_t &= i \odot g + f \odot c_{t-1}, \qquad
    h_t = r \odot o \odot \tanh c_t + (1 - r) \odot W_x x_t

Layer 1 runs forwards over the boxes of an image, layer 2 backwards over the outputs of layer 1, and so on: two layers
are what Neural Motifs calls one bidirectional LSTM.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

FORGET = 1.0


class Steps(NamedTuple):
    """`boxes` (N,), those of step 1 of every image first, longer images first; `sizes`, the boxes of each step."""

    boxes: Tensor
    sizes: list[int]


def make_steps(order: Tensor, ptr: Tensor, backwards: bool = False) -> Steps:
    """order (N,) boxes image by image, ptr (G + 1,) the first of each image."""
    counts = ptr[1:] - ptr[:-1]
    image = torch.repeat_interleave(torch.arange(len(counts), device=order.device), counts)
    place = torch.arange(len(order), device=order.device) - ptr[image]
    if backwards:
        place = counts[image] - 1 - place
    rank = torch.empty_like(counts)
    rank[torch.argsort(counts, descending=True, stable=True)] = torch.arange(len(counts), device=order.device)
    boxes = order[torch.argsort(place * len(counts) + rank[image])]
    return Steps(boxes, torch.bincount(place).tolist() if len(order) else [])


class HighwayLayer(nn.Module):
    """One layer, (N, d) -> (N, h), box by box in the order of `steps`."""

    def __init__(self, width: int, hidden: int, recurrent_dropout: float = 0.0) -> None:
        super().__init__()
        self.hidden, self.recurrent_dropout = hidden, recurrent_dropout
        self.read = nn.Linear(width, 6 * hidden)
        self.state = nn.Linear(hidden, 5 * hidden, bias=False)
        for block in self.state.weight.data.split(hidden):
            nn.init.orthogonal_(block)
        nn.init.zeros_(self.read.bias)
        self.read.bias.data[hidden : 2 * hidden] = FORGET

    def forward(self, x: Tensor, steps: Steps) -> Tensor:
        if not steps.sizes:
            return x.new_zeros(0, self.hidden)
        d = self.hidden
        read = self.read(x).index_select(0, steps.boxes)
        h = c = x.new_zeros(steps.sizes[0], d)
        mask = dropout(torch.ones_like(h), self.recurrent_dropout, self.training)
        out, first = [], 0
        for size in steps.sizes:
            h, c = h[:size], c[:size]
            mine = read[first : first + size]
            total = mine[:, : 5 * d] + self.state(h * mask[:size])
            i, f, o, r = total[:, : 4 * d].sigmoid().split(d, 1)
            c = i * total[:, 4 * d :].tanh() + f * c
            h = r * (o * c.tanh()) + (1 - r) * mine[:, 5 * d :]
            out.append(h)
            first += size
        back = torch.empty_like(steps.boxes)
        back[steps.boxes] = torch.arange(len(back), device=back.device)
        return torch.cat(out).index_select(0, back)


class HighwayStack(nn.Module):
    """Layers in alternating directions, forwards first: x (N, d) -> (N, h)."""

    def __init__(self, width: int, hidden: int, layers: int, recurrent_dropout: float = 0.0) -> None:
        super().__init__()
        widths = [width] + [hidden] * (layers - 1)
        self.layers = nn.ModuleList(HighwayLayer(each, hidden, recurrent_dropout) for each in widths)

    def forward(self, x: Tensor, order: Tensor, ptr: Tensor) -> Tensor:
        """order (N,) boxes image by image, ptr (G + 1,)."""
        steps = [make_steps(order, ptr), make_steps(order, ptr, backwards=True)]
        for k, layer in enumerate(self.layers):
            x = layer(x, steps[k % 2])
        return x
