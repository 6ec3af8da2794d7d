"""RoIAlign against values worked out by hand, and by brute force."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from scenegpi.vision.backbone import FeatureMap
from scenegpi.vision.roi import roi_align

RAMP = torch.arange(12, dtype=torch.double).view(1, 1, 3, 4)  # value = 4 row + column


def test_bins_of_a_ramp_by_hand():
    # Cells of 8 pixels centred on 4, 12, 20, ...: the box from 4 to 20 spans columns 0..2 and rows 0..2 of the map.
    # Its four bins are centred on cells 0.5 and 1.5, and a ramp is the same at a bin's centre and on average.
    found = roi_align(FeatureMap(RAMP, 8, 4.0), torch.tensor([[4.0, 4.0, 20.0, 20.0]]), 2, 2)
    torch.testing.assert_close(found, torch.tensor([[[[2.5, 3.5], [6.5, 7.5]]]], dtype=torch.double))


def test_one_point_between_cells_by_hand():
    # One sample in the middle of the box: pixel (10, 6) is column 0.75, row 0.25.
    found = roi_align(FeatureMap(RAMP, 8, 4.0), torch.tensor([[9.0, 5.0, 11.0, 7.0]]), 1, 1)
    torch.testing.assert_close(found.flatten(), torch.tensor([1.75], dtype=torch.double))


def test_the_place_of_the_first_cell_counts():
    found = roi_align(FeatureMap(RAMP, 8, 7.5), torch.tensor([[15.5, 15.5, 15.5, 15.5]]), 1, 1)
    torch.testing.assert_close(found.flatten(), torch.tensor([5.0], dtype=torch.double))


def test_beyond_the_map_the_border_goes_on():
    box = torch.tensor([[-500.0, -500.0, -400.0, -400.0], [400.0, 400.0, 500.0, 500.0]])
    found = roi_align(FeatureMap(RAMP, 8, 4.0), box, 1, 2)
    torch.testing.assert_close(found.flatten(), torch.tensor([0.0, 11.0], dtype=torch.double))


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 1000))
def test_the_whole_picture_is_its_mean(side, bins, seed):
    side *= bins
    values = torch.randn(1, 3, side, side, dtype=torch.double, generator=torch.Generator().manual_seed(seed))
    whole = torch.tensor([[0.0, 0.0, 16.0 * side, 16.0 * side]])
    # With as many points as cells a side, each point is the centre of a cell.
    found = roi_align(FeatureMap(values, 16, 8.0), whole, bins, side // bins)
    torch.testing.assert_close(found.mean((0, 2, 3)), values.mean((0, 2, 3)))


def brute_force(values, box, size, samples, stride, first):
    """One bin, one point, one corner at a time."""
    rows, columns = values.shape[1:]
    out = np.zeros((len(values), size, size))
    for by in range(size):
        for bx in range(size):
            for sy in range(samples):
                for sx in range(samples):
                    x = box[0] + (box[2] - box[0]) * (bx * samples + sx + 0.5) / (size * samples)
                    y = box[1] + (box[3] - box[1]) * (by * samples + sy + 0.5) / (size * samples)
                    x, y = np.clip((x - first) / stride, 0, columns - 1), np.clip((y - first) / stride, 0, rows - 1)
                    c, r = min(int(x), max(columns - 2, 0)), min(int(y), max(rows - 2, 0))
                    for dr in (0, 1):
                        for dc in (0, 1):
                            weight = (1 - abs(y - r - dr)) * (1 - abs(x - c - dc))
                            if weight > 0:
                                out[:, by, bx] += weight * values[:, r + dr, c + dc]
    return out / samples**2


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.5, 8.0, 15.5]))
def test_equals_brute_force(seed, size, samples, first):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(2, rng.integers(1, 6), rng.integers(1, 6)))
    corners = np.sort(rng.uniform(-40, 130, (3, 2, 2)), axis=1)
    boxes = corners.reshape(3, 4)
    found = roi_align(FeatureMap(torch.tensor(values)[None], 16, first), torch.tensor(boxes), size, samples)
    for box, each in zip(boxes, found, strict=True):
        np.testing.assert_allclose(each.numpy(), brute_force(values, box, size, samples, 16, first), atol=1e-9)


def test_gradients():
    values = torch.randn(1, 2, 4, 5, dtype=torch.double, requires_grad=True)
    boxes = torch.tensor([[3.0, 5.0, 50.0, 44.0], [-20.0, 10.0, 30.0, 100.0], [7.0, 7.0, 7.0, 7.0]], dtype=torch.double)
    assert torch.autograd.gradcheck(lambda v: roi_align(FeatureMap(v, 16, 8.0), boxes, 3, 2), values)


def test_no_boxes():
    assert roi_align(FeatureMap(RAMP, 8, 4.0), torch.empty(0, 4), 2, 2).shape == (0, 1, 2, 2)
