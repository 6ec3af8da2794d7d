r"""The look of a box -> its label.

.. math:: P(c) = softmax(f([x - m] / s, layout) / T)_c

m and s are mean and spread over the training boxes; the temperature T is fitted on predictions for boxes that the
network was not trained on, so that its probabilities mean what they say.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from scenegpi.features.entities import relative_boxes
from scenegpi.vision.config import HeadConfig

LAYOUT_WIDTH = 16
EDGE = 0.01
"""A box that ends within so much of the image's side touches its edge."""
FAR = 6.0
"""Inputs count as no further from their mean than so many spreads."""


class LabelHead(nn.Module):
    """Linear, or with one hidden layer. `nodes` is the width of a look, `labels` how many there are."""

    mean: Tensor
    spread: Tensor
    temperature: Tensor

    def __init__(self, config: HeadConfig, nodes: int, labels: int) -> None:
        super().__init__()
        self.config = config
        inputs = nodes + (LAYOUT_WIDTH if config.layout else 0)
        hidden = [nn.Linear(inputs, config.hidden), nn.ReLU(), nn.Dropout(config.dropout)] if config.hidden else []
        last = nn.Linear(config.hidden or inputs, labels)
        self.network = nn.Sequential(nn.Dropout(config.input_dropout), *hidden, last)
        self.register_buffer("mean", torch.zeros(nodes))
        self.register_buffer("spread", torch.ones(nodes))
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, nodes: Tensor, layout: Tensor) -> Tensor:
        """nodes ``(N, d)``, layout ``(N, LAYOUT_WIDTH)`` -> logits ``(N, C)``, the temperature not applied."""
        x = ((nodes.float() - self.mean) / self.spread).clamp(-FAR, FAR)
        return self.network(torch.cat([x, layout], 1) if self.config.layout else x)

    def distribution(self, nodes: Tensor, layout: Tensor) -> Tensor:
        """Calibrated probabilities ``(N, C)``."""
        return (self(nodes, layout) / self.temperature).softmax(1)

    @torch.no_grad()
    def measure(self, nodes: Tensor) -> None:
        """Mean and spread of the inputs, of the training boxes ``(N, d)``."""
        values = nodes.float()
        self.mean.copy_(values.mean(0))
        spread = values.std(0, correction=0)
        # A column that hardly varies, a dead channel, says nothing and must not be blown up.
        self.spread.copy_(spread.clamp_min(1e-3 + 0.05 * float(spread.mean())))


def layout_of(boxes: Tensor, sizes: Tensor) -> Tensor:
    """Place, size and shape of each box: boxes ``(N, 4)``, sizes ``(N, 2)`` of their images -> ``(N, LAYOUT_WIDTH)``.

    In fractions of the image, y upwards: left, right, bottom, top, centre across and up, width, height, area and its
    root; log area and log width / height; and whether the box touches the left, right, lower, upper edge of the
    image. Boxes are cut off at the image.
    """
    inside = torch.minimum(boxes.double().clamp_min(0), sizes.double().repeat(1, 2))
    left, bottom, width, height, area = relative_boxes(inside, sizes.double()).unbind(1)
    right, top = left + width, bottom + height
    side = (inside[:, 2:] - inside[:, :2]).clamp_min(1)
    shape = (side[:, 0] / side[:, 1]).log().clamp(-3, 3)
    touches = [each < EDGE for each in (left, 1 - right, bottom, 1 - top)]
    centre = [(left + right) / 2, (bottom + top) / 2]
    columns = [left, right, bottom, top, *centre, width, height, area, area.clamp_min(0).sqrt()]
    return torch.stack([*columns, area.clamp_min(1e-4).log() / 4, shape, *touches], 1).float()


def mirrored(layout: Tensor) -> Tensor:
    """The layout of the mirror image, ``(N, LAYOUT_WIDTH)`` -> ``(N, LAYOUT_WIDTH)``."""
    out = layout.clone()
    out[:, [0, 1, 4]] = 1 - layout[:, [1, 0, 4]]
    out[:, [12, 13]] = layout[:, [13, 12]]
    return out
