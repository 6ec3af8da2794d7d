"""Standardising: zero mean and unit spread, constant columns left alone, in chunks or at once."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scenegpi.features import standardise
from scenegpi.features.standardise import FARTHEST, Standardise, measured


@settings(max_examples=20)
@given(st.integers(0, 1000), st.integers(2, 60))
def test_measured_rows_have_mean_0_and_spread_1(seed, rows):
    x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(seed)) * torch.tensor([1.0, 1e3, 1e-2, 5]) + 7
    layer = Standardise(4)
    layer.measure(x)
    found = (x - layer.mean) * layer.scale
    torch.testing.assert_close(found.mean(0), torch.zeros(4), atol=1e-3, rtol=0)
    torch.testing.assert_close(found.std(0), torch.ones(4), atol=1e-3, rtol=0)
    torch.testing.assert_close(layer(x), found.clamp(-FARTHEST, FARTHEST))


def test_constant_columns_one_row_or_none_change_nothing():
    rows = torch.tensor([[3.0, 1], [3, 2], [3, 6]])
    layer = Standardise(2)
    layer.measure(rows)
    torch.testing.assert_close(layer(rows)[:, 0], rows[:, 0])
    for few in (rows[:1], rows[:0]):
        layer.measure(few)
        torch.testing.assert_close(layer(rows), rows)


def test_a_floor_keeps_quiet_columns_quiet():
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 1.0, 1e-4])
    mean, spread = measured(x, floor=0.05)
    assert float(((x - mean) / spread)[:, 2].abs().max()) < 0.02
    torch.testing.assert_close(spread[:2], x[:, :2].double().std(0))


def test_chunks_change_nothing(monkeypatch):
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(1)).half()
    whole = measured(x)
    monkeypatch.setattr(standardise, "CHUNK", 7)
    for a, b in zip(measured(x), whole, strict=True):
        torch.testing.assert_close(a, b)
