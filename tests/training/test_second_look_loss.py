"""What the second look is shown, and how its moves and its confidence are judged."""

from __future__ import annotations

import torch

from scenegpi.training.photo_module import ROIS, look_loss, looked_at
from scenegpi.training.photo_sets import LabelSets
from scenegpi.vision.finder import KINDS, Candidates
from scenegpi.vision.second_look import Looked

TRUTH = torch.tensor([[0.3, 0.3, 0.2, 0.2], [0.7, 0.6, 0.3, 0.5]])
IMAGE = torch.tensor([0, 0])


SETS = LabelSets(("man", "woman", "car"), ("man", "woman", "car"), ("person",))
PERSON = 3
"""The row of what may be a man or a woman."""


def judged(rois, moves, logits, kinds=(0, 1), listed=(True, True), names=None, rows=(PERSON, 2)):
    looked = Looked(moves[None], logits[None], torch.zeros(1, len(rois), 3) if names is None else names[None])
    where = torch.tensor(kinds), IMAGE, torch.tensor([listed]), torch.tensor(rows)
    return look_loss(looked, rois[None], TRUTH, *where, SETS)


def test_names_are_those_that_the_box_may_have():
    moves, logits = torch.zeros(2, 4), torch.zeros(2, KINDS)
    right = torch.tensor([[9.0, 9.0, -9.0], [-9.0, -9.0, 9.0]])
    assert float(judged(TRUTH, moves, logits, names=right)["name"]) < 1e-3
    assert float(judged(TRUTH, moves, logits, names=right.flip(0))["name"]) > 5
    away = torch.tensor([[0.1, 0.9, 0.1, 0.1]]).repeat(2, 1)
    assert float(judged(away, moves, logits, names=right.flip(0))["name"]) == 0


def test_moves_onto_the_annotated_boxes_cost_nothing():
    rois = torch.tensor([[0.32, 0.28, 0.25, 0.2], [0.7, 0.6, 0.3, 0.4]])
    right = torch.cat([(TRUTH[:, :2] - rois[:, :2]) / rois[:, 2:], (TRUTH[:, 2:] / rois[:, 2:]).log()], 1)
    logits = torch.tensor([[12.0, -12.0], [-12.0, 12.0]])
    good = judged(rois, right, logits)
    assert float(good["move"]) < 1e-4
    assert float(good["fit"]) < 0.01
    assert float(judged(rois, torch.zeros(2, 4), logits)["move"]) > 0.5
    assert float(judged(rois, right, -logits)["fit"]) > 5
    assert float(judged(rois, right, -logits, listed=(False, False))["fit"]) == 0


def test_a_box_on_nothing_is_not_moved():
    rois = torch.tensor([[0.1, 0.9, 0.1, 0.1]])
    moves = torch.zeros(1, 4, requires_grad=True)
    logits = torch.zeros(1, KINDS, requires_grad=True)
    loss = judged(rois, moves, logits)
    (loss["move"] + loss["fit"]).backward()
    assert not bool(moves.grad.any())
    assert bool((logits.grad > 0).all())


def test_it_is_shown_candidates_and_shaken_boxes_within_the_photo():
    torch.manual_seed(0)
    found = Candidates(torch.rand(2, 300, 4), torch.randn(2, 300, KINDS))
    rois = looked_at(found, TRUTH, IMAGE)
    assert rois.shape == (2, ROIS, 4)
    low, high = rois[..., :2] - rois[..., 2:] / 2, rois[..., :2] + rois[..., 2:] / 2
    assert float(low.min()) > -0.01
    assert float(high.max()) < 1.01
    near = (rois[0, :, None, :2] - TRUTH[:, :2]).abs().amax(-1).amin(1)
    assert int((near < 0.15).sum()) >= ROIS // 2  # the second half are the photo's own boxes, shaken
