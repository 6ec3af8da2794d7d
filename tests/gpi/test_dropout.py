"""Dropout: rate, mean, gradient, and what is left alone."""

import pytest
import torch

from scenegpi.gpi.dropout import dropout


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_values_are_dropped_at_the_rate_and_the_mean_stays(p: float) -> None:
    torch.manual_seed(0)
    out = dropout(torch.ones(400, 1001), p)
    zero = (out == 0).double()
    assert float(zero.mean()) == pytest.approx(p, abs=4e-3)  # standard deviation below 1e-3
    assert float(out.mean()) == pytest.approx(1, abs=4e-3 / (1 - p))
    assert out[out != 0].unique().numel() == 1
    # Neither rows nor columns, nor the four values of one random word, depend on each other.
    assert float(zero.mean(0).std()) < 2 * (p * (1 - p) / 400) ** 0.5
    assert float(zero.mean(1).std()) < 2 * (p * (1 - p) / 1001) ** 0.5
    for lag in (1, 2, 3, 4):
        both = (zero.flatten()[lag:] * zero.flatten()[:-lag]).mean()
        assert float(both) == pytest.approx(p * p, abs=4e-3)


def test_gradient_reaches_what_is_kept() -> None:
    x = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(1)
    out = dropout(x, 0.5)
    out.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(out == 0, 0.0, 2.0).double())


def test_nothing_changes_without_training_or_rate() -> None:
    x = torch.randn(3, 4)
    assert dropout(x, 0.5, False) is x
    assert dropout(x, 0.0) is x


@pytest.mark.parametrize("shape", [(), (0, 4), (1,), (3, 1, 5)])
def test_any_shape_and_the_seed_decides(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape, dtype=torch.bfloat16)
    torch.manual_seed(2)
    first = dropout(x, 0.4)
    torch.manual_seed(2)
    assert torch.equal(first, dropout(x, 0.4))
    assert first.shape == x.shape
    assert first.dtype == x.dtype


def test_nearly_everything_may_be_dropped() -> None:
    assert torch.isfinite(dropout(torch.ones(100), 0.999999)).all()
