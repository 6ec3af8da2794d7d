"""Temperatures: the likeliest one is found, noise and outliers do not move it; calibration error by hand."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, softplus

from scenegpi.metrics.calibration import (
    FEWEST_GROUPS,
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    calibration_error,
    fit_convex,
    fit_temperature,
)


def drawn(temperature: float, rows: int = 2000, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (rows, 5), and classes drawn from softmax(logits / temperature)."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, 5, generator=generator) * 4
    return logits, torch.multinomial((logits / temperature).softmax(1), 1, generator=generator)[:, 0]


@settings(max_examples=10)
@given(st.floats(0.3, 6), st.integers(0, 1000))
def test_no_other_temperature_is_likelier(temperature, seed):
    logits, chosen = drawn(temperature, 500, seed)
    found = fit_temperature(logits, chosen)
    if found == 1:  # left alone
        assert 0.8 < temperature < 1.25
        return
    best = min(float(cross_entropy(logits / t, chosen)) for t in torch.logspace(-1.3, 1.3, 300).tolist())
    assert float(cross_entropy(logits / found, chosen)) <= best + 1e-6


def test_calibrated_logits_are_mostly_left_alone():
    assert sum(fit_temperature(*drawn(1.0, 500, seed)) != 1 for seed in range(30)) <= 4


def test_logits_that_say_nothing_become_flat():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(3000, 4, generator=generator) * 50
    chosen = torch.randint(0, 4, (3000,), generator=generator)
    assert fit_temperature(logits, chosen) == pytest.approx(MAX_TEMPERATURE)


def test_what_is_always_right_is_left_alone():
    chosen = torch.arange(100) % 4
    assert fit_temperature(torch.eye(4)[chosen], chosen) == 1.0
    assert MIN_TEMPERATURE < 1 < MAX_TEMPERATURE


def test_few_groups_or_none_are_not_enough():
    logits, chosen = drawn(5.0)
    assert fit_temperature(logits[:0], chosen[:0]) == 1.0
    few = torch.arange(len(logits)) % (FEWEST_GROUPS - 1)
    assert fit_temperature(logits, chosen, few) == 1.0
    assert fit_temperature(logits, chosen, few + (few == 0) * torch.arange(len(few))) > 2


def test_errors_in_one_image_count_once():
    logits = torch.zeros(400, 4)
    logits[:, 0] = 6.0
    chosen = torch.zeros(400, dtype=torch.long)
    chosen[:40] = 1
    spread, together = torch.arange(400) % 100, torch.arange(400) // 4
    together[:40] = 0  # all errors in one image
    assert fit_temperature(logits, chosen, spread) > 1.5
    assert fit_temperature(logits, chosen, together) == 1.0


def test_numbers_of_groups_do_not_matter():
    logits, chosen = drawn(1.7, 600)
    image = torch.arange(600) // 6
    found = fit_temperature(logits, chosen, image)
    assert found != 1
    assert fit_temperature(logits, chosen, image * 977 - 5000) == pytest.approx(found)


def test_a_logistic_fit_is_found():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(5000, generator=generator, dtype=torch.double) * 2
    y = (torch.rand(5000, generator=generator) < (0.5 * x - 0.7).sigmoid()).double()

    def loss(w: torch.Tensor) -> torch.Tensor:
        z = x * w[0] + w[1]
        return softplus(z) - y * z

    assert fit_convex(loss, (1.0, 0.0), torch.arange(5000)) == pytest.approx((0.5, -0.7), abs=0.1)
    slope, offset = fit_convex(loss, (1.0, 0.0), torch.arange(5000), least=0.8)
    grid = [float(loss(torch.tensor([0.8, b])).mean()) for b in torch.linspace(-2, 2, 201).tolist()]
    assert slope == pytest.approx(0.8)
    assert float(loss(torch.tensor([slope, offset])).mean()) <= min(grid) + 1e-6


def test_calibration_error_by_hand():
    dist = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]])
    chosen = torch.tensor([0, 1, 0, 0])  # half right at 0.9, all right at 0.6
    assert calibration_error(dist, chosen) == pytest.approx((2 * 0.4 + 2 * 0.4) / 4, abs=1e-6)
    assert calibration_error(dist[:0], chosen[:0]) == 0
    sure = torch.tensor([[1.0 + 1e-6, 0.0], [0.0, 1.0]])
    assert calibration_error(sure, torch.tensor([0, 1])) == pytest.approx(0, abs=1e-6)
