r"""How many others of the same image lie strictly below and above a value.

.. math:: b_i = \#\{j \in \text{image}(i) : v_j < v_i\}, \qquad a_i = \#\{j \in \text{image}(i) : v_j > v_i\}

By sorting, not by comparing pairs: O(N log N) for all images of a flat batch at once, exact, ties count for neither
side, so the result moves with the entities when they are listed in another order.
"""

from __future__ import annotations

import torch
from torch import Tensor


def strict_counts(values: Tensor, batch: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    """values ``(K, N)``, batch ``(N,)`` ascending image numbers, ptr ``(G + 1,)`` -> below, above ``(K, N)``.

    Each of the K rows is counted by itself: as K times as many images, all are sorted at once.
    """
    shape, rows, graphs = values.shape, len(values), len(ptr) - 1
    shift = torch.arange(rows, device=values.device)[:, None]
    batch = (batch + shift * graphs).flatten()
    ptr = torch.cat([(ptr[:-1] + shift * shape[1]).flatten(), ptr.new_tensor([values.numel()])])
    values = values.flatten()
    by_value = torch.argsort(values, stable=True)
    order = by_value[torch.argsort(batch[by_value], stable=True)]
    value, image = values[order], batch[order]
    place = torch.arange(len(values), device=values.device)
    new = torch.ones_like(place, dtype=torch.bool)
    new[1:] = (value[1:] != value[:-1]) | (image[1:] != image[:-1])
    group = torch.cumsum(new, 0) - 1
    first = place[new]
    stop = torch.cat([first[1:], place.new_tensor([len(values)])])
    below, above = torch.empty_like(place), torch.empty_like(place)
    below[order] = first[group] - ptr[image]
    above[order] = ptr[image + 1] - stop[group]
    return below.view(shape), above.view(shape)
