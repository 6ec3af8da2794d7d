"""Which candidates answer for a box, and how the loss judges them."""

from __future__ import annotations

import torch

from scenegpi.training.finder_loss import RATIO, STRIDES, assigned, finder_loss, giou
from scenegpi.vision.finder import ANCHORS, LEVELS, Candidates

SIDE = 64


def some_boxes(count: int, seed: int = 0) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    size = 0.03 + 0.6 * torch.rand(count, 2, generator=rng)
    centre = size / 2 + (1 - size) * torch.rand(count, 2, generator=rng)
    return torch.cat([centre, size], 1)


def expected(boxes: torch.Tensor) -> set[tuple[int, int]]:
    """(candidate, box), cell by cell: the cell of the centre and the nearer neighbours across and down."""
    found, first = set(), 0
    for name in LEVELS:
        n = SIDE // STRIDES[name]
        for a, (width, height) in enumerate(ANCHORS[name]):
            for b, (x, y, w, h) in enumerate(boxes.tolist()):
                if max(w / width, width / w, h / height, height / h) >= RATIO:
                    continue
                column, row = min(int(x * n), n - 1), min(int(y * n), n - 1)
                beside = column + (1 if x * n - column >= 0.5 else -1)
                below = row + (1 if y * n - row >= 0.5 else -1)
                for r, c in ((row, column), (row, beside), (below, column)):
                    if 0 <= r < n and 0 <= c < n:
                        found.add((first + (a * n + r) * n + c, b))
        first += len(ANCHORS[name]) * n * n
    return found


def candidates() -> int:
    return sum(len(ANCHORS[name]) * (SIDE // STRIDES[name]) ** 2 for name in LEVELS)


def test_assignment_equals_a_plain_loop():
    boxes = some_boxes(30)
    rows, which = assigned(boxes, SIDE)
    pairs = list(zip(rows.tolist(), which.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected(boxes)


def test_giou_of_known_boxes():
    a = torch.tensor([[0.5, 0.5, 0.2, 0.2], [0.25, 0.5, 0.5, 1.0], [0.1, 0.5, 0.2, 1.0]])
    b = torch.tensor([[0.5, 0.5, 0.2, 0.2], [0.5, 0.5, 1.0, 1.0], [0.9, 0.5, 0.2, 1.0]])
    torch.testing.assert_close(giou(a, b), torch.tensor([1.0, 0.5, -0.6]))


def loss_of(logits: torch.Tensor, boxes: torch.Tensor, truth: torch.Tensor, complete: bool) -> float:
    image = torch.zeros(len(truth), dtype=torch.long)
    found = finder_loss(Candidates(boxes[None], logits[None]), truth, image, SIDE, complete)
    return float(found.overlap + found.objectness)


def test_what_is_right_costs_nothing_and_a_missed_box_does():
    truth = torch.tensor([[0.2, 0.2, 0.2, 0.2], [0.8, 0.7, 0.1, 0.3]])  # no candidate answers for both
    rows, which = assigned(truth, SIDE)
    boxes = torch.full((candidates(), 4), 0.5)
    boxes[rows] = truth[which]
    sure = torch.full((candidates(),), -12.0)
    sure[rows] = 12.0
    assert loss_of(sure, boxes, truth, True) < 0.05
    assert loss_of(-sure.abs(), boxes, truth, True) > 1
    moved = boxes.clone()
    moved[rows, 0] += 0.3
    assert loss_of(sure, moved, truth, True) > 0.5


def test_where_boxes_are_missing_a_sure_candidate_is_left_in_peace():
    truth = some_boxes(3)
    boxes = torch.full((candidates(), 4), 0.5)
    logits = torch.full((candidates(),), -12.0)
    free = next(k for k in range(len(logits)) if k not in set(assigned(truth, SIDE)[0].tolist()))
    pushes = {}
    for complete in (True, False):
        for value in (0.0, 8.0):
            leaf = logits.clone()
            leaf[free] = value
            leaf.requires_grad_(True)
            image = torch.zeros(len(truth), dtype=torch.long)
            loss = finder_loss(Candidates(boxes[None], leaf[None]), truth, image, SIDE, complete)
            loss.objectness.backward()
            pushes[complete, value] = float(leaf.grad[free])
    assert all(push > 0 for push in pushes.values())
    assert pushes[True, 8.0] > pushes[True, 0.0]
    assert pushes[False, 8.0] < 0.2 * pushes[False, 0.0]


def test_no_box_at_all_is_a_loss_too():
    boxes = torch.full((candidates(), 4), 0.5)
    value = loss_of(torch.zeros(candidates()), boxes, torch.zeros(0, 4), True)
    assert value > 0
