r"""Entity features z_i of the paper's section 5.2, without the label distribution itself, which models read separately.

=========================  ======================================================================================
columns                    meaning
=========================  ======================================================================================
left, bottom,              the box in fractions of the image: x1 / W, 1 - y2 / H (measured upwards from the lower
width, height, area        edge), w / W, h / H, their product
smaller, bigger            share of the other entities with a strictly smaller, bigger area
left, right, above, below  share of the others whose centre lies strictly there
surer, less sure           share of the others with a strictly higher, lower confidence max_c P(c)
=========================  ======================================================================================

The paper uses plain counts of entities; they are divided by n - 1 here (0 for a single entity), so that crowded images
do not dominate. Everything is exactly independent of the order of entities and of the scale of image and boxes.
"""

from __future__ import annotations

import torch
from torch import Tensor

BOX_NAMES = ("left", "bottom", "width", "height", "area")
COUNT_NAMES = ("smaller", "bigger", "to the left", "to the right", "above", "below", "surer", "less sure")


def entity_features(boxes: Tensor, sizes: Tensor, label_dist: Tensor, batch: Tensor, ptr: Tensor) -> Tensor:
    """Features of a flat batch, in the type of `label_dist`.

    boxes ``(N, 4)`` x1 y1 x2 y2, sizes ``(G, 2)`` width and height of each image, label_dist ``(N, C)``, batch
    ``(N,)``, ptr ``(G + 1,)`` -> ``(N, 13)``, columns as in `BOX_NAMES` and `COUNT_NAMES`.
    """
    counts = entity_counts(boxes, label_dist.amax(1), batch, ptr).to(label_dist.dtype)
    others = (ptr[1:] - ptr[:-1] - 1).clamp_min(1)
    return torch.cat([relative_boxes(boxes, sizes[batch]).to(label_dist.dtype), counts / others[batch, None]], 1)


def clamped_log(dist: Tensor) -> Tensor:
    """log max(p, 0.0001), so that a certain input stays finite: ``(M, K)`` -> ``(M, K)``."""
    return dist.clamp_min(1e-4).log()


def relative_boxes(boxes: Tensor, sizes: Tensor) -> Tensor:
    """boxes ``(N, 4)``, sizes ``(N, 2)`` -> left, bottom, width, height, area in fractions of the image ``(N, 5)``."""
    x1, y1, x2, y2 = (boxes / sizes.repeat(1, 2)).unbind(1)
    width, height = x2 - x1, y2 - y1
    return torch.stack([x1, 1 - y2, width, height, width * height], 1)


def entity_counts(boxes: Tensor, confidence: Tensor, batch: Tensor, ptr: Tensor) -> Tensor:
    """boxes ``(N, 4)``, confidence ``(N,)`` -> ``(N, 8)`` whole numbers in the order of `COUNT_NAMES`."""
    x1, y1, x2, y2 = boxes.unbind(1)
    values = torch.stack([(x2 - x1) * (y2 - y1), x1 + x2, y1 + y2, -confidence.to(boxes.dtype)])
    below, above = strict_counts(values, batch, ptr)
    return torch.stack([below, above], 2).transpose(0, 1).flatten(1)


def strict_counts(values: Tensor, batch: Tensor, ptr: Tensor) -> tuple[Tensor, Tensor]:
    r"""Number of others in the same image strictly below and above a value.

    .. math:: b_i = \#\{j \in \text{image}(i) : v_j < v_i\}, \qquad a_i = \#\{j \in \text{image}(i) : v_j > v_i\}

    values ``(K, N)``, batch ``(N,)`` ascending image numbers, ptr ``(G + 1,)`` -> below, above ``(K, N)``. By sorting,
    O(N log N) for all images at once, and exact: ties count for neither side. Each of the K rows is counted by itself,
    as K times as many images.
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
    # One entry more than the maximum number of groups: the last group ends where the values do.
    first = place.new_full((flat.shape[0] + 1,), flat.shape[0]).scatter_reduce(0, group, place, "amin")
    below, above = torch.empty_like(place), torch.empty_like(place)
    below[order] = first[group] - start[image]
    above[order] = stop[image] - first[group + 1]
    return below.view(values.shape), above.view(values.shape)
