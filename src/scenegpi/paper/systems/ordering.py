"""The order in which a sequence model reads the boxes of an image, whatever the order in which they are listed.

Keys are sorted descending, as in the released code (so "left-right" reads from right to left). Boxes with equal keys
are put in order by their place, their size and their labels; only boxes that are equal in all of it remain tied, and
then it does not matter. Without that, ties would be broken by the listing, and they are common: boxes with the same
centre.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from scenegpi.features.batch import SceneBatch

Order = Literal["left-right", "size", "list"]


def reading_order(batch: SceneBatch, order: Order, dist: Tensor) -> Tensor:
    """(N,) boxes image by image, each in its order; dist (N, C) are the label distributions that tell boxes apart."""
    if order == "list":
        return torch.arange(batch.boxes.shape[0], device=batch.boxes.device)
    x1, y1, x2, y2 = batch.boxes.unbind(1)
    dist = dist.detach().double()
    key = x1 + x2 if order == "left-right" else (x2 - x1) * (y2 - y1)
    weights = torch.linspace(1, 2, dist.shape[1], dtype=torch.double, device=dist.device).sqrt()
    keys = [-key, x1 + x2, y1 + y2, x2 - x1, y2 - y1, dist.argmax(1), (dist * weights).sum(1)]
    return _sorted_by([batch.batch, *keys])


def _sorted_by(keys: list[Tensor]) -> Tensor:
    """Rows in the order of the first of keys (N,), then the second, and so on."""
    order = torch.arange(keys[0].shape[0], device=keys[0].device)
    for key in reversed(keys):
        order = order[torch.argsort(key[order], stable=True)]
    return order
