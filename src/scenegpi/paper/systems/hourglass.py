"""An hourglass: features at half, a quarter, an eighth of the size, and back up, each added to what had that size."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import interpolate, max_pool2d


class Hourglass(nn.Module):
    """(G, c, S, S) -> (G, c, S, S); S must be divisible by 2 ** depth."""

    def __init__(self, channels: int, depth: int) -> None:
        super().__init__()
        self.beside, self.down, self.up = (Residual(channels) for _ in range(3))
        self.inner: nn.Module = Hourglass(channels, depth - 1) if depth > 1 else Residual(channels)

    def forward(self, x: Tensor) -> Tensor:
        low = self.up(self.inner(self.down(max_pool2d(x, 2))))
        return self.beside(x) + interpolate(low, scale_factor=2.0, mode="nearest")


class Residual(nn.Module):
    """x + convolution(ReLU(x))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.convolution(x.relu())
