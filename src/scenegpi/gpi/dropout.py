"""Dropout with a mask that is cheap to draw on a CPU, where torch's own takes a third of a training step: it draws 16
random bits per value, torch a number in double precision.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

BITS = 16
"""Of the mask: a rate is rounded to 1 / 65,536."""


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Values of any shape, each 0 at the rate `p` and otherwise scaled so that the mean stays; in training only."""
    if not training or not p:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p)
    lowest, count = -(2 ** (BITS - 1)), 2**BITS
    words = torch.empty(-(-x.numel() * BITS // 64), dtype=torch.int64).random_(-(2**63), None)
    dropped = min(round(p * count), count - 1)
    kept = words.view(torch.int16)[: x.numel()].view(x.shape) >= lowest + dropped
    return x * kept.to(x.dtype).mul_(count / (count - dropped))
