"""The second look: what is read of a box, and where its moves take it."""

from __future__ import annotations

import torch

from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.finder import KINDS
from scenegpi.vision.roi import roi_align
from scenegpi.vision.second_look import BINS, LARGEST, SecondLook, bins, moved


def some(batch: int = 2, rois: int = 5) -> tuple[FeatureMap, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    maps = FeatureMap(torch.randn(batch, 3, 8, 8, generator=rng), 8, 7.5)
    size = 8 + 30 * torch.rand(batch, rois, 2, generator=rng)
    centre = size / 2 + (64 - size) * torch.rand(batch, rois, 2, generator=rng)
    return maps, torch.cat([centre, size], 2)


def test_all_photos_at_once_are_read_as_each_by_roi_align():
    maps, boxes = some()
    read = bins(maps, boxes)
    assert read.shape == (2, 5, 3, BINS, BINS)
    for k in range(2):
        low, high = boxes[k, :, :2] - boxes[k, :, 2:] / 2, boxes[k, :, :2] + boxes[k, :, 2:] / 2
        alone = roi_align(maps.picture(k), torch.cat([low, high], 1), BINS, 1)
        torch.testing.assert_close(read[k], alone, rtol=1e-4, atol=1e-5)


def test_permuted_boxes_are_looked_at_alike():
    torch.manual_seed(1)
    look = SecondLook(3, 2, 7)
    for layer in (look.move, look.fit, look.name):
        torch.nn.init.normal_(layer.weight)
    maps, boxes = some()
    levels, order = look.narrowed([maps, maps]), torch.tensor([3, 0, 4, 1, 2])
    seen, permuted = look(levels, boxes / 64, 64), look(levels, boxes[:, order] / 64, 64)
    assert seen.logits.shape == (2, 5, KINDS)
    assert seen.names.shape == (2, 5, 7)
    for a, b in zip(seen, permuted, strict=True):
        torch.testing.assert_close(a[:, order], b, rtol=1e-4, atol=1e-5)


def test_a_move_is_in_sides_of_the_box():
    box = torch.tensor([0.5, 0.4, 0.2, 0.1])
    torch.testing.assert_close(moved(box, torch.zeros(4)), box)
    there = moved(box, torch.tensor([0.5, -1.0, torch.log(torch.tensor(2.0)), 9.0]))
    torch.testing.assert_close(there[:3], torch.tensor([0.6, 0.3, 0.4]))
    torch.testing.assert_close(there[3], 0.1 * torch.tensor(LARGEST).exp())
