r"""Brings columns to one scale, measured once on training rows and kept with the model:

.. math:: \hat x = (x - \mu) / \sigma, \qquad |\hat x| \le 6.

A prediction then does not depend on what else is in its batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

FARTHEST = 6.0
CONSTANT = 1e-6
"""A column with a smaller spread counts as constant, and is not changed."""
CHUNK = 1 << 14


class Standardise(nn.Module):
    """``(M, d)`` -> ``(M, d)``, column by column, clipped at six deviations."""

    mean: Tensor
    scale: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def measure(self, rows: Tensor) -> None:
        """Sets mean and scale from rows ``(M, d)``."""
        mean, spread = measured(rows)
        self.mean.copy_(mean)
        self.scale.copy_(1 / spread)

    def forward(self, rows: Tensor) -> Tensor:
        return standardised(rows, self.mean, self.scale)


def measured(rows: Tensor, floor: float = 0.0) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the columns of rows ``(M, d)``: two of ``(d,)``, in double precision.

    With a `floor` no deviation is below that fraction of the mean deviation, so that a column that hardly varies is not
    amplified. Constant columns get 0 and 1.
    """
    if len(rows) < 2:
        return rows.new_zeros(rows.shape[1], dtype=torch.double), rows.new_ones(rows.shape[1], dtype=torch.double)
    parts = rows.split(CHUNK)  # in double precision only piece by piece: rows may be half of the memory
    mean = torch.stack([part.sum(0, dtype=torch.double) for part in parts]).sum(0) / len(rows)
    squares = torch.stack([(part.double() - mean).square().sum(0) for part in parts]).sum(0)
    spread = (squares / (len(rows) - 1)).sqrt()
    spread = spread.clamp_min(floor * float(spread.mean()))
    constant = spread < CONSTANT
    return torch.where(constant, 0.0, mean), torch.where(constant, 1.0, spread)


def standardised(rows: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    """``(M, d)`` -> ``(M, d)``, clipped at six deviations."""
    return ((rows - mean) * scale).clamp(-FARTHEST, FARTHEST)
