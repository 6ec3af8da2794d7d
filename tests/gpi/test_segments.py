"""Segment reductions against a loop, and the softmax at its limits."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scenegpi.gpi import segment_max, segment_mean, segment_softmax, segment_sum


@settings(max_examples=50, deadline=None)
@given(index=st.lists(st.integers(0, 4), max_size=12), width=st.sampled_from([(), (1,), (3,), (2, 2)]))
def test_equal_a_loop(index, width):
    values = torch.randn(len(index), *width, dtype=torch.double)
    where = torch.tensor(index, dtype=torch.long)
    for reduce, one in (
        (segment_sum, lambda rows: rows.sum(0)),
        (segment_mean, lambda rows: rows.mean(0)),
        (segment_max, lambda rows: rows.amax(0)),
    ):
        found = reduce(values, where, 5)
        assert found.shape == (5, *width)
        for segment in range(5):
            rows = values[where == segment]
            expected = one(rows) if len(rows) else torch.zeros(width, dtype=torch.double)
            torch.testing.assert_close(found[segment], expected)
    weights = segment_softmax(values, where, 5)
    for segment in set(index):
        torch.testing.assert_close(weights[where == segment], values[where == segment].softmax(0))


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_softmax_is_stable(shift):
    scores = torch.tensor([1.0, 2.0, 3.0, -5.0]) + shift
    weights = segment_softmax(scores, torch.tensor([0, 0, 1, 1]), 3)
    torch.testing.assert_close(weights, torch.tensor([0.26894, 0.73106, 0.99966, 0.00034]), atol=1e-3, rtol=0)


def test_softmax_with_masked_scores():
    scores = torch.tensor([-torch.inf, 0.5, -torch.inf], requires_grad=True)
    weights = segment_softmax(scores, torch.tensor([0, 0, 1]), 2)
    assert weights.tolist() == [0, 1, 0]
    weights[1].backward()
    assert scores.grad.isfinite().all()


def test_softmax_gradient():
    scores = torch.randn(6, 2, dtype=torch.double, requires_grad=True)
    index = torch.tensor([0, 2, 0, 2, 2, 3])
    assert torch.autograd.gradcheck(lambda s: segment_softmax(s, index, 4), scores)


def test_half_precision_is_summed_in_single():
    ones = torch.ones(3000, dtype=torch.bfloat16)  # 256 + 1 = 256 in bfloat16
    index = torch.zeros(3000, dtype=torch.long)
    assert segment_sum(ones, index, 1).item() == 3008  # 3000 rounded once
    assert segment_mean(ones, index, 1).item() == 1
    assert segment_softmax(ones, index, 1).dtype == torch.bfloat16
