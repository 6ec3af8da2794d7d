"""Steps that follow each other over the boxes of a batch; images that have ended are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

State = tuple[Tensor, ...]
Step = Callable[[State, State], tuple[State, Tensor]]
"""A state, rows of what is read -> the next state, rows of what is said."""


class Sequence(NamedTuple):
    """The boxes of a batch, one of each image at a time.

    `boxes` (N,), those of step 1 of every image first, longer images first; `sizes`, the boxes of each step.
    """

    boxes: Tensor
    sizes: list[int]


def make_sequence(order: Tensor, ptr: Tensor, backwards: bool = False) -> Sequence:
    """order (N,) boxes image by image, ptr (G + 1,) the first of each image."""
    counts = ptr[1:] - ptr[:-1]
    at = torch.arange(order.shape[0], device=order.device)
    image = (at[:, None] >= ptr[1:]).sum(1)
    place = at - ptr[image]
    if backwards:
        place = counts[image] - 1 - place
    rank = torch.empty_like(counts)
    rank[torch.argsort(counts, descending=True, stable=True)] = torch.arange(len(counts), device=order.device)
    boxes = order[torch.argsort(place * len(counts) + rank[image])]
    return Sequence(boxes, torch.bincount(place).tolist() if len(order) else [])


def along(sequence: Sequence, step: Step, start: Callable[[int], State], read: State) -> Tensor:
    """What is said of each box, (N, ...), in the order of the list; `read` is of each box, too, each (N, ...).

    `start` gives the first state of a number of images.
    """
    rows = [each.index_select(0, sequence.boxes) for each in read]
    state, said, first = start(sequence.sizes[0] if sequence.sizes else 0), [], 0
    for size in sequence.sizes:
        state, out = step(tuple(each[:size] for each in state), tuple(each[first : first + size] for each in rows))
        said.append(out)
        first += size
    if not said:  # one step over nothing tells the shape
        return step(state, tuple(rows))[1]
    back = torch.empty_like(sequence.boxes)
    back[sequence.boxes] = torch.arange(len(back), device=back.device)
    return torch.cat(said).index_select(0, back)
