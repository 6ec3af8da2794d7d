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
    rows, count = values.shape
    shift = torch.arange(rows, device=values.device)[:, None]
    batch = (batch + shift * (ptr.shape[0] - 1)).flatten()
    start, stop = ((end + shift * count).flatten() for end in (ptr[:-1], ptr[1:]))
    flat = values.flatten()
    by_value = torch.argsort(flat, stable=True)
    order = by_value[torch.argsort(batch[by_value], stable=True)]
    value, image = flat[order], batch[order]
    place = torch.arange(flat.shape[0], device=values.device)
    new = (value[1:] != value[:-1]) | (image[1:] != image[:-1])
    group = torch.cat([place[:1], new.long()]).cumsum(0)
    # One place more than there can be groups: the last group ends where the values do.
    first = place.new_full((flat.shape[0] + 1,), flat.shape[0]).scatter_reduce(0, group, place, "amin")
    below, above = torch.empty_like(place), torch.empty_like(place)
    below[order] = first[group] - start[image]
    above[order] = stop[image] - first[group + 1]
    return below.view(values.shape), above.view(values.shape)
