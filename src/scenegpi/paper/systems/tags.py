r"""Associative embeddings: who a relation is about is told by vectors that lie near each other.

A box has a tag t_a; a relation slot has a tag for its subject and one for its object, and belongs to the boxes whose
tags are nearest. In training

.. math:: \text{pull} = \|t - t_a\|^2, \qquad \text{push} = \text{mean}_{a \ne b} \max(0, m - \|t_a - t_b\|)^2

The true relations of a cell are matched to its slots by the best of all orders of the slots.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations

import torch
from torch import Tensor

from scenegpi.features.batch import SceneBatch
from scenegpi.paper.systems.sequences import Padding


def push(tags: Tensor, batch: SceneBatch, margin: float) -> Tensor:
    """tags (N, d) of the boxes -> (G,), the mean over ordered pairs of an image; 0 where all are a margin apart."""
    i, j = batch.edge_index
    # The square root has no gradient at 0, where two boxes have the same tag.
    distance = (tags[i] - tags[j]).square().sum(1).clamp_min(1e-6).sqrt()
    loss = (margin - distance).clamp_min(0).square()
    total = tags.new_zeros(batch.num_graphs).index_add(0, batch.batch[i], loss)
    return total / (batch.edge_ptr[1:] - batch.edge_ptr[:-1]).clamp_min(1)


def match(gain: Tensor) -> Tensor:
    """The slot (Q, S) of each true relation: of all orders of the slots the one with the largest sum of gains.

    gain (Q, S, S) is that of relation k in slot s, 0 where there is no relation k.
    """
    orders = _orders(gain.shape[1]).to(gain.device)
    total = sum(gain[:, k].index_select(1, orders[:, k]) for k in range(gain.shape[1]))
    assert isinstance(total, Tensor)
    return orders[total.argmax(1)]


@lru_cache
def _orders(slots: int) -> Tensor:
    return torch.tensor(list(permutations(range(slots))))


def nearest(tags: Tensor, image: Tensor, boxes: Tensor, batch: SceneBatch) -> Tensor:
    """The box whose tag is nearest: tags (M, d) of slots of images (M,), boxes (N, d) -> (M,)."""
    places = Padding(batch.batch, batch.ptr)
    padded = places.pad(boxes)
    far = tags.new_zeros(1).masked_fill(~places.mask, torch.inf)[image]
    for k in range(tags.shape[1]):  # not all at once: (M, T, d) is large
        far = far + (tags[:, k, None] - padded[:, :, k][image]).square()
    return batch.ptr[image] + far.argmin(1)
