"""A flat batch of boxes as rows of equal length, and back."""

from __future__ import annotations

import torch
from torch import Tensor


class Padding:
    """Boxes (N, d) <-> (G', T, d): images without boxes are left out; `mask` (G', T) says which places are taken."""

    def __init__(self, batch: Tensor, ptr: Tensor) -> None:
        counts = ptr[1:] - ptr[:-1]
        full = counts > 0
        self.images = full.nonzero().flatten()
        self.row = (torch.cumsum(full, 0) - 1)[batch]
        self.place = torch.arange(len(batch), device=batch.device) - ptr[batch]
        longest = int(counts.max()) if len(batch) else 0
        self.mask = torch.arange(longest, device=batch.device) < counts[full, None]

    def pad(self, x: Tensor) -> Tensor:
        """(N, d) -> (G', T, d), zero where no box is."""
        return x.new_zeros(*self.mask.shape, x.shape[1]).index_put((self.row, self.place), x)

    def flat(self, padded: Tensor) -> Tensor:
        """(G', T, d) -> (N, d)."""
        return padded[self.row, self.place]
