r"""Entity features z_i of the paper's section 5.2.

=====  =========================  ======================================================================
part   columns                    meaning
=====  =========================  ======================================================================
(1)    C                          log P(label), clamped at `floor`; or P(label)
(2)    left, bottom,              the box in fractions of the image: x1 / W, 1 - y2 / H (measured upwards
       width, height, area        from the lower edge), w / W, h / H, their product
(3)    smaller, bigger            numbers of entities with a strictly smaller, bigger area
(4)    left, right, above, below  numbers of entities whose centre lies strictly there
(5)    surer, less sure           numbers of entities with a strictly higher, lower confidence max_c P(c)
(6)    d                          word vector of the most probable label, if a table is given
=====  =========================  ======================================================================

Counts are true counts by strict comparison; the default divides them by n - 1, the number of others (0 for an entity
alone), so that a crowded image does not drown the rest; `counts="number"` gives the paper's plain numbers.
Everything is exact under a new listing of the entities, and does not change when image and boxes are scaled together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

BOX_NAMES = ("left", "bottom", "width", "height", "area")
COUNT_NAMES = ("smaller", "bigger", "to the left", "to the right", "above", "below", "surer", "less sure")


@dataclass(frozen=True)
class EntityFeatures:
    """Which parts, in which form. `width(C)` is the number of columns without words.

    Args:
        distribution: "log" (default), "probability", or "none".
        floor: probabilities below it count as it, before the logarithm.
        box: part (2).
        counts: parts (3) to (5): "fraction" of the others, "number" (the paper's), or "none".
    """

    distribution: Literal["log", "probability", "none"] = "log"
    floor: float = 1e-4
    box: bool = True
    counts: Literal["fraction", "number", "none"] = "fraction"

    def width(self, num_labels: int) -> int:
        """Columns for C labels, words not counted."""
        return len(self.names([""] * num_labels))

    def names(self, labels: list[str] | tuple[str, ...]) -> list[str]:
        """A name for each column."""
        found = [] if self.distribution == "none" else [f"P({label})" for label in labels]
        found += BOX_NAMES if self.box else ()
        return found + list(() if self.counts == "none" else COUNT_NAMES)

    def __call__(
        self, boxes: Tensor, sizes: Tensor, label_dist: Tensor, batch: Tensor, ptr: Tensor, words: Tensor | None = None
    ) -> Tensor:
        """Features of a flat batch.

        boxes ``(N, 4)`` x1 y1 x2 y2, sizes ``(G, 2)`` width and height of each image, label_dist ``(N, C)``, batch
        ``(N,)``, ptr ``(G + 1,)``, words ``(C, d)`` -> ``(N, width + d)`` in the type of `label_dist`.
        """
        parts = []
        if self.distribution != "none":
            parts.append(clamped_log(label_dist, self.floor) if self.distribution == "log" else label_dist)
        if self.box:
            parts.append(relative_boxes(boxes, sizes[batch]).to(label_dist.dtype))
        if self.counts != "none":
            counts = entity_counts(boxes, label_dist.amax(1), batch, ptr).to(label_dist.dtype)
            if self.counts == "fraction":
                others = (ptr[1:] - ptr[:-1] - 1).clamp_min(1)
                counts = counts / others[batch, None]
            parts.append(counts)
        if words is not None:
            parts.append(words.to(label_dist.dtype)[label_dist.argmax(1)])
        return torch.cat([*parts, label_dist.new_zeros(boxes.shape[0], 0)], 1)


def clamped_log(dist: Tensor, floor: float = 1e-4) -> Tensor:
    """log max(p, floor), so that a certain input stays finite: ``(M, K)`` -> ``(M, K)``."""
    return dist.clamp_min(floor).log()


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
    r"""How many others of the same image lie strictly below and above a value.

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
    # One place more than there can be groups: the last group ends where the values do.
    first = place.new_full((flat.shape[0] + 1,), flat.shape[0]).scatter_reduce(0, group, place, "amin")
    below, above = torch.empty_like(place), torch.empty_like(place)
    below[order] = first[group] - start[image]
    above[order] = stop[image] - first[group + 1]
    return below.view(values.shape), above.view(values.shape)
