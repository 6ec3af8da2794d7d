r"""Geometry of ordered pairs (subject i, object j).

Distinguishes "on" from "near" or "wearing" without pixels. All columns are scale-free. Columns written as
squash(x) = sign(x) log(1 + |x|) bound the values of far and tiny boxes; a side used as a divisor counts as at least a
thousandth of the image's diagonal, so boxes without area do no harm.

====================================  =========================================================================
columns                               meaning
====================================  =========================================================================
dx, dy                                from the subject's centre to the object's, in fractions of the image
dx, dy in subjects / objects          the same, squash, in widths and heights of the subject / of the object
log width ratio, log height ratio     log w_j / w_i, log h_j / h_i
IoU                                   intersection over union
subject / object covered              share of its area, and of its width, and of its height inside the other
overlap x, overlap y                  signed: common length over joint length of the two intervals, < 0 for a gap
inset left, right, top, bottom        squash of how far the subject's side lies inside the object's, in objects'
                                      widths and heights; and the object's within the subject
margin left, right, top, bottom       from the union box's side to the subject's, to the object's, in unions
union left, right, top, bottom        from the image's side to the union box's, in fractions of the image
distance, gap                         between centres, and between the boxes (0 if they touch), over the diagonal
near                                  squash of the distance between centres over the mean of the box diagonals
cos, sin                              direction to the object's centre, 0 where the centres agree
subject size, object size             square root of the box's share of the image
subject shape, object shape           log width / height of the box, in pixels
inside, contains, disjoint            1 or 0: subject within object, object within subject, no common area
====================================  =========================================================================
"""

from __future__ import annotations

import torch
from torch import Tensor

_SIDES = ("left", "right", "top", "bottom")
_NAMES = """
dx, dy, dx in subjects, dy in subjects, dx in objects, dy in objects, log width ratio, log height ratio, IoU,
subject covered, object covered, subject width covered, subject height covered, object width covered,
object height covered, overlap x, overlap y, subject inset *, object inset *, subject margin *, object margin *,
union *, distance, gap, near, cos, sin, subject size, object size, subject shape, object shape, inside, contains,
disjoint
"""
PAIR_NAMES = tuple(
    name.replace("*", side)
    for name in _NAMES.replace("\n", " ").strip().split(", ")
    for side in (_SIDES if "*" in name else ("",))
)
PAIR_WIDTH = len(PAIR_NAMES)
CHUNK = 1 << 16
_THINNEST = 1e-3


def pair_geometry(boxes: Tensor, sizes: Tensor, edge_index: Tensor, batch: Tensor, chunk: int = CHUNK) -> Tensor:
    """Geometry of every edge: row 0 of `edge_index` is the subject, row 1 the object.

    boxes ``(N, 4)`` x1 y1 x2 y2, sizes ``(G, 2)`` width and height, edge_index ``(2, E)``, batch ``(N,)`` ->
    ``(E, PAIR_WIDTH)`` in single precision; computed in double precision (on mps in single), `chunk` edges at a time.
    """
    boxes, sizes = precise(boxes), precise(sizes)
    if edge_index.shape[1] <= chunk:
        i, j = edge_index
        return _columns(boxes[i], boxes[j], sizes[batch[i]]).float()
    return torch.cat([pair_geometry(boxes, sizes, piece, batch, chunk) for piece in edge_index.split(chunk, 1)])


def precise(tensor: Tensor) -> Tensor:
    """In double precision, or in single on mps, which has no doubles."""
    return tensor.float() if tensor.device.type == "mps" else tensor.double()


def _columns(s: Tensor, o: Tensor, size: Tensor) -> Tensor:
    """s, o ``(E, 4)`` subject and object boxes, size ``(E, 2)`` -> ``(E, PAIR_WIDTH)``."""
    low_s, high_s, low_o, high_o = s[:, :2], s[:, 2:], o[:, :2], o[:, 2:]
    diagonal = size.norm(dim=1, keepdim=True)
    thin = diagonal * _THINNEST
    side_s, side_o = torch.maximum(high_s - low_s, thin), torch.maximum(high_o - low_o, thin)
    step = (low_o + high_o - low_s - high_s) / 2
    common = torch.minimum(high_s, high_o) - torch.maximum(low_s, low_o)
    low_u, high_u = torch.minimum(low_s, low_o), torch.maximum(high_s, high_o)
    side_u = torch.maximum(high_u - low_u, thin)
    shared = common.clamp_min(0)
    area_s, area_o, area = (side.prod(1, keepdim=True) for side in (side_s, side_o, shared))
    distance = step.norm(dim=1, keepdim=True)
    mean_diagonal = (side_s.norm(dim=1, keepdim=True) + side_o.norm(dim=1, keepdim=True)) / 2
    above, under = low_s - low_o, high_o - high_s
    whole = size.prod(1, keepdim=True)
    steps = [step / side_s, step / side_o, above / side_o, under / side_o, -above / side_s, -under / side_s]
    far = torch.cat([*steps, distance / mean_diagonal], 1)
    squashed = far.sign() * far.abs().log1p()
    logs = torch.cat([side_o / side_s, side_s[:, :1] / side_s[:, 1:], side_o[:, :1] / side_o[:, 1:]], 1).log()
    flags = torch.stack([_within(s, o), _within(o, s), (common <= 0).any(1)], 1).to(s.dtype)
    return torch.cat(
        [
            step / size,
            squashed[:, :4],
            logs[:, :2],
            area / (area_s + area_o - area),
            area / area_s,
            area / area_o,
            shared / side_s,
            shared / side_o,
            common / side_u,
            _sides(squashed[:, 4:6], squashed[:, 6:8]),
            _sides(squashed[:, 8:10], squashed[:, 10:12]),
            _sides((low_s - low_u) / side_u, (high_u - high_s) / side_u),
            _sides((low_o - low_u) / side_u, (high_u - high_o) / side_u),
            _sides(low_u / size, 1 - high_u / size),
            distance / diagonal,
            (-common).clamp_min(0).norm(dim=1, keepdim=True) / diagonal,
            squashed[:, 12:],
            step / torch.maximum(distance, diagonal * 1e-9),
            (torch.cat([area_s, area_o], 1) / whole).sqrt(),
            logs[:, 2:],
            flags,
        ],
        1,
    )


def _sides(low: Tensor, high: Tensor) -> Tensor:
    """Values of the low sides and of the high sides ``(E, 2)`` -> left, right, top, bottom ``(E, 4)``."""
    return torch.stack([low, high], 2).flatten(1)


def _within(a: Tensor, b: Tensor) -> Tensor:
    return ((a[:, :2] >= b[:, :2]) & (a[:, 2:] <= b[:, 2:])).all(1)
