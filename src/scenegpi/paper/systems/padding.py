"""A flat batch of boxes as rows of equal length, and back."""

from __future__ import annotations

import torch
from torch import Tensor


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
