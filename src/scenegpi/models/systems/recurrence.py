"""Steps that follow each other: a loop in Python, and one operator (Scan) in a program that is traced.

Both run the same step; a loop leaves out images that have ended, a traced program computes them and throws them away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from scenegpi.models.systems.padding import longest

State = tuple[Tensor, ...]
Step = Callable[[State, State], tuple[State, Tensor]]
"""A state, rows of what is read -> the next state, rows of what is said."""


class Sequence(NamedTuple):
    """The boxes of a batch, one of each image at a time.

    `boxes` (N,), those of step 1 of every image first, longer images first; `sizes`, the boxes of each step. While a
    program is traced there are no sizes; `image` and `place` (N,) say where a box comes instead.
    """

    boxes: Tensor
    sizes: list[int]
    image: Tensor
    place: Tensor
    counts: Tensor


def make_sequence(order: Tensor, ptr: Tensor, backwards: bool = False) -> Sequence:
    """order (N,) boxes image by image, ptr (G + 1,) the first of each image."""
    counts = ptr[1:] - ptr[:-1]
    at = torch.arange(order.shape[0], device=order.device)
    image = (at[:, None] >= ptr[1:]).sum(1)
    place = at - ptr[image]
    if backwards:
        place = counts[image] - 1 - place
    if torch.compiler.is_compiling():
        boxes, sizes = order, []
    else:
        rank = torch.empty_like(counts)
        rank[torch.argsort(counts, descending=True, stable=True)] = torch.arange(len(counts), device=order.device)
        boxes = order[torch.argsort(place * len(counts) + rank[image])]
        sizes = torch.bincount(place).tolist() if len(order) else []
    image, place = (each.new_zeros(each.shape).index_copy(0, order, each) for each in (image, place))
    return Sequence(boxes, sizes, image, place, counts)


def along(sequence: Sequence, step: Step, start: Callable[[int], State], read: State) -> Tensor:
    """What is said of each box, (N, ...), in the order of the list; `read` is of each box, too, each (N, ...).

    `start` gives the first state of a number of images.
    """
    if torch.compiler.is_compiling():
        shape, where = (longest(sequence.counts), sequence.counts.shape[0]), (sequence.place, sequence.image)
        padded = tuple(each.new_zeros(*shape, *each.shape[1:]).index_put(where, each) for each in read)
        return scan(step, start(shape[1]), padded)[1][where]
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


def scan(step: Step, state: State, read: State) -> tuple[State, Tensor]:
    """read, each (T, ...) -> the last state, and what was said, (T, ...); T is at least 1."""
    if not torch.compiler.is_compiling():
        said = []
        for rows in zip(*read, strict=True):
            state, out = step(state, rows)
            said.append(out)
        return state, torch.stack(said)
    from torch._higher_order_ops.scan import scan as traced

    def copied(state: State, rows: State) -> tuple[State, Tensor]:
        after, out = step(state, rows)
        return tuple(each.clone() for each in after), out.clone()

    found: tuple[State, Tensor] = traced(copied, state, read)
    return found
