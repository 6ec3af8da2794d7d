"""Dropout by bytes: the right share, the right mean, nothing in evaluation."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from scenegpi.models.dropout import drop


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_share_and_mean(p):
    torch.manual_seed(0)
    x = torch.ones(300, 701, requires_grad=True)
    y = drop(nn.Module().train(), x, p)
    assert float((y == 0).float().mean()) == pytest.approx(p, abs=0.006)
    assert float(y.detach().mean()) == pytest.approx(1, abs=0.02)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    columns = (y == 0).float().mean(0)
    assert float(columns.std()) < 0.05  # no byte of a word is preferred


def test_nothing_in_evaluation_or_for_zero():
    x = torch.randn(3, 3)
    assert drop(nn.Module().eval(), x, 0.5) is x
    assert drop(nn.Module().train(), x, 0.0) is x
    assert drop(nn.Module().train(), torch.zeros(0, 4), 0.5).shape == (0, 4)
