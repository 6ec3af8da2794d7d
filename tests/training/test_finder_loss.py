"""Which candidates answer for a box, and how the loss judges them."""

from __future__ import annotations

import pytest
import torch

from scenegpi.training.photo_module import RATIO, STRIDES, assigned, finder_loss, giou
from scenegpi.vision.finder import ANCHORS, KINDS, LEVELS, Candidates

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


def judged(
    logits: torch.Tensor, boxes: torch.Tensor, truth: torch.Tensor, kind: int, listed=(True, True)
) -> dict[str, torch.Tensor]:
    count = len(truth)
    kinds, image = torch.full((count,), kind), torch.zeros(count, dtype=torch.long)
    return finder_loss(Candidates(boxes[None], logits[None]), truth, kinds, image, torch.tensor([listed]), SIDE)


def loss_of(logits: torch.Tensor, boxes: torch.Tensor, truth: torch.Tensor, kind: int) -> float:
    return float(sum(judged(logits, boxes, truth, kind).values()))


@pytest.mark.parametrize("kind", range(KINDS))
def test_what_is_right_costs_nothing_and_a_missed_box_does(kind):
    truth = torch.tensor([[0.2, 0.2, 0.2, 0.2], [0.8, 0.7, 0.1, 0.3]])  # no candidate answers for both
    rows, which = assigned(truth, SIDE)
    boxes = torch.full((candidates(), 4), 0.5)
    boxes[rows] = truth[which]
    sure = torch.full((candidates(), KINDS), -12.0)
    sure[rows, kind] = 12.0
    assert loss_of(sure, boxes, truth, kind) < 0.05
    assert loss_of(-sure.abs(), boxes, truth, kind) > 1
    assert loss_of(sure, boxes, truth, 1 - kind) > 1  # of the other kind it is another thing
    moved = boxes.clone()
    moved[rows, 0] += 0.3
    assert loss_of(sure, moved, truth, kind) > 0.5


def test_where_boxes_are_missing_a_confident_candidate_is_hardly_penalized():
    truth = some_boxes(3)
    boxes = torch.full((candidates(), 4), 0.5)
    free = next(k for k in range(candidates()) if k not in set(assigned(truth, SIDE)[0].tolist()))
    pushes = {}
    for kind in range(KINDS):
        for value in (0.0, 8.0):
            leaf = torch.full((candidates(), KINDS), -12.0)
            leaf[free, kind] = value
            leaf.requires_grad_(True)
            judged(leaf, boxes, truth, kind)["objectness"].backward()
            pushes[kind, value] = float(leaf.grad[free, kind])
    assert all(push > 0 for push in pushes.values())
    assert pushes[0, 8.0] > pushes[0, 0.0]
    assert pushes[1, 8.0] < 0.2 * pushes[1, 0.0]


def test_a_kind_that_nobody_listed_says_nothing():
    boxes = torch.full((candidates(), 4), 0.5)
    leaf = torch.zeros(candidates(), KINDS, requires_grad=True)
    judged(leaf, boxes, some_boxes(3), 1, (False, True))["objectness"].backward()
    assert not bool(leaf.grad[:, 0].any())
    assert bool(leaf.grad[:, 1].any())


def test_the_loss_of_a_batch_is_the_mean_over_its_photos():
    rng = torch.Generator().manual_seed(2)
    logits = torch.randn(2, candidates(), KINDS, generator=rng)
    boxes, truth = torch.rand(2, candidates(), 4, generator=rng), [some_boxes(4, 1), some_boxes(7, 2)]
    image = torch.tensor([0] * 4 + [1] * 7)
    kinds, listed = image % KINDS, torch.tensor([[True, False], [True, True]])
    whole = finder_loss(Candidates(boxes, logits), torch.cat(truth), kinds, image, listed, SIDE)
    alone = [
        finder_loss(
            Candidates(boxes[k : k + 1], logits[k : k + 1]),
            truth[k],
            kinds[image == k],
            image[image == k] * 0,
            listed[k : k + 1],
            SIDE,
        )
        for k in range(2)
    ]
    for name, value in whole.items():
        torch.testing.assert_close(value, (alone[0][name] + alone[1][name]) / 2)


def test_no_box_at_all_is_a_loss_too():
    boxes = torch.full((candidates(), 4), 0.5)
    assert loss_of(torch.zeros(candidates(), KINDS), boxes, torch.zeros(0, 4), 0) > 0
