r"""A stack of highway LSTM layers that alternate in direction, over sequences of different length without padding.

.. math::
    (i, f, o, r) &= \sigma(W x_t + U h_{t-1} + b), \qquad g = \tanh(W_g x_t + U_g h_{t-1} + b_g) \\
    c_t &= i \odot g + f \odot c_{t-1}, \qquad
    h_t = r \odot o \odot \tanh c_t + (1 - r) \odot W_x x_t

Layer 1 runs forwards over the boxes of an image, layer 2 backwards over the outputs of layer 1, and so on: two layers
are what Neural Motifs calls one bidirectional LSTM.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import dropout

from scenegpi.paper.systems.recurrence import Sequence, State, along, make_sequence

FORGET = 1.0


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

    def forward(self, x: Tensor, sequence: Sequence) -> Tensor:
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
