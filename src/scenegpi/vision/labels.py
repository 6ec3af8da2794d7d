r"""The features of a box -> its label.

.. math:: P(c) = softmax(f([x - m] / s, geometry) / T)_c

m and s are mean and spread over the training boxes; the temperature T is fitted on predictions for boxes that the
network was not trained on, so that its probabilities are calibrated.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from scenegpi.features.entities import relative_boxes
from scenegpi.features.standardise import measured, standardised
from scenegpi.vision.config import HeadConfig

GEOMETRY_WIDTH = 16
EDGE = 0.01
"""A box that ends within this fraction of the image's side touches its edge."""
LEAST_SPREAD = 0.05
"""No spread is below this fraction of the mean spread, so that a dead channel is not amplified."""


class LabelHead(nn.Module):
    """A network with one hidden layer.

    Args:
        config: its width and dropout.
        width: of the features.
        labels: number of them.
    """

    mean: Tensor
    spread: Tensor
    temperature: Tensor

    def __init__(self, config: HeadConfig, width: int, labels: int) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Dropout(config.input_dropout),
            nn.Linear(width + GEOMETRY_WIDTH, config.hidden),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.hidden, labels),
        )
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, features: Tensor, geometry: Tensor) -> Tensor:
        """features ``(N, d)``, geometry ``(N, GEOMETRY_WIDTH)`` -> logits ``(N, C)``, before the temperature.

        Features ``(N, 2 d)`` are those of a box and of its mirror image; the outputs are averaged.
        """
        width = self.mean.shape[0]
        if features.shape[1] > width:
            return (self(features[:, :width], geometry) + self(features[:, width:], mirrored(geometry))) / 2
        x = standardised(features.float(), self.mean, 1 / self.spread)
        return self.network(torch.cat([x, geometry], 1))

    def log_probabilities(self, features: Tensor, geometry: Tensor) -> Tensor:
        """Calibrated, ``(N, C)``."""
        return (self(features, geometry) / self.temperature).log_softmax(1)

    def measure(self, features: Tensor) -> None:
        """Sets mean and spread from the features ``(N, d)`` of training boxes."""
        mean, spread = measured(features, LEAST_SPREAD)
        self.mean.copy_(mean)
        self.spread.copy_(spread)


def box_geometry(boxes: Tensor, sizes: Tensor) -> Tensor:
    """Position, size and shape: boxes ``(N, 4)``, sizes ``(N, 2)`` of their images -> ``(N, GEOMETRY_WIDTH)``.

    In fractions of the image, y upwards: left, right, bottom, top, centre across and up, width, height, area and its
    root; log area and log width / height; and whether the box touches the left, right, lower, upper edge of the
    image. Boxes are clipped to the image.
    """
    inside = torch.minimum(boxes.double().clamp_min(0), sizes.double().repeat(1, 2))
    left, bottom, width, height, area = relative_boxes(inside, sizes.double()).unbind(1)
    right, top = left + width, bottom + height
    side = (inside[:, 2:] - inside[:, :2]).clamp_min(1)
    shape = (side[:, 0] / side[:, 1]).log().clamp(-3, 3)
    touches = [(each < EDGE).double() for each in (left, 1 - right, bottom, 1 - top)]
    centre = [(left + right) / 2, (bottom + top) / 2]
    columns = [left, right, bottom, top, *centre, width, height, area, area.clamp_min(0).sqrt()]
    return torch.stack([*columns, area.clamp_min(1e-4).log() / 4, shape, *touches], 1).float()


def mirrored(geometry: Tensor) -> Tensor:
    """The geometry of the mirror image, ``(N, GEOMETRY_WIDTH)`` -> ``(N, GEOMETRY_WIDTH)``."""
    out = geometry.clone()
    out[:, [0, 1, 4]] = 1 - geometry[:, [1, 0, 4]]
    out[:, [12, 13]] = geometry[:, [13, 12]]
    return out
