r"""The features of a box -> its label.

.. math:: P(c) = softmax(f([x - m] / s, geometry) / T)_c

m and s are mean and spread over the training boxes; the temperature T is fitted on predictions for boxes that the
network was not trained on, so that its probabilities mean what they say.

An everyday name n that a label c stands for takes a share of its probability, the label keeps the rest:

.. math:: P(n) = P(c) \frac{e^{t_n}}{1 + \sum_{n'} e^{t_{n'}}}, \qquad t = g(\text{hidden layer of } f),

so without the names, which are summed back, the labels are as probable as ever.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from scenegpi.features.entities import relative_boxes
from scenegpi.features.standardise import measured, standardised
from scenegpi.vision.config import HeadConfig

GEOMETRY_WIDTH = 16
RARE, SUREST = -3.0, 15.0
"""Before training an everyday name is rare beside its label; no logit of one is larger."""
EDGE = 0.01
"""A box that ends within this share of the image's side touches its edge."""
LEAST_SPREAD = 0.05
"""No spread is below this share of the mean spread: a dead channel must not be blown up."""


class LabelHead(nn.Module):
    """A network with one hidden layer.

    Args:
        config: its width and dropout.
        width: of the features.
        stands: the label that stands for each name: the labels themselves first, then everyday names.
    """

    mean: Tensor
    spread: Tensor
    temperature: Tensor
    stands: Tensor

    def __init__(self, config: HeadConfig, width: int, stands: Sequence[int]) -> None:
        super().__init__()
        labels = len(set(stands))
        self.network = nn.Sequential(
            nn.Dropout(config.input_dropout),
            nn.Linear(width + GEOMETRY_WIDTH, config.hidden),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.hidden, labels),
        )
        self.everyday = nn.Linear(config.hidden, len(stands) - labels) if len(stands) > labels else None
        if self.everyday is not None:
            nn.init.zeros_(self.everyday.weight)
            nn.init.constant_(self.everyday.bias, RARE)
        self.register_buffer("stands", torch.tensor(stands), persistent=False)
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, features: Tensor, geometry: Tensor) -> Tensor:
        """features ``(N, d)``, geometry ``(N, GEOMETRY_WIDTH)`` -> logits of the names ``(N, names)``, the temperature
        not applied.

        Features ``(N, 2 d)`` are those of a box and of its mirror image; what is said is the mean of both.
        """
        labels, names = self.said(features, geometry)
        return labels if names is None else labels[:, self.stands] + self.shares(names)

    def said(self, features: Tensor, geometry: Tensor) -> tuple[Tensor, Tensor | None]:
        """Logits of the labels ``(N, labels)``, and what everyday names have against them ``(N, names - labels)``."""
        width = self.mean.shape[0]
        if features.shape[1] > width:
            one, other = self.said(features[:, :width], geometry), self.said(features[:, width:], mirrored(geometry))
            names = None if one[1] is None or other[1] is None else (one[1] + other[1]) / 2
            return (one[0] + other[0]) / 2, names
        x = standardised(features.float(), self.mean, 1 / self.spread)
        hidden = self.network[:-1](torch.cat([x, geometry], 1))
        return self.network[-1](hidden), None if self.everyday is None else self.everyday(hidden)

    def shares(self, names: Tensor) -> Tensor:
        """Logarithm of the share that each name has of the label that stands for it: ``(N, names - labels)`` ->
        ``(N, names)``."""
        own = names.new_zeros(names.shape[0], len(self.stands) - names.shape[1])
        against = torch.cat([own, names.clamp(-SUREST, SUREST)], 1)
        whole = torch.zeros_like(own).index_add(1, self.stands, against.exp())
        return against - whole.log()[:, self.stands]

    def distribution(self, features: Tensor, geometry: Tensor) -> Tensor:
        """Calibrated probabilities ``(N, names)``."""
        labels, names = self.said(features, geometry)
        dist = (labels / self.temperature).softmax(1)
        return dist if names is None else dist[:, self.stands] * self.shares(names).exp()

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
