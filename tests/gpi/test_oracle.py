"""The layers against the paper's equations written out n x n x d, as the speed benchmark compares them."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def cases():
    """The benchmark's modules, at a small width."""
    names = ("gpi_oracle", "gpi_cases")
    for name in names:
        spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    module.WIDTH = 24
    yield module
    for name in names:
        del sys.modules[name]


def outcome(cases, name, images):
    """Labels of every step, and some gradients."""
    model, call = cases.variant(name, images)
    steps = call()
    images.loss(steps).backward()
    layer = model.layer
    parts = layer.edge_rho.layers[1].weight, layer.phi.bias, layer.edge_gate.bias, layer.gamma.bias
    return [*steps[0], *steps[1], *(part.grad for part in parts)]


@pytest.mark.parametrize("sizes", [(5, 5, 5), (2, 7, 3)])
def test_all_variants_agree_forward_and_backward(cases, sizes):
    images = cases.Images(sizes)
    expected = outcome(cases, "per image", images)
    for name in set(cases.VARIANTS) - {"per image", cases.COMPILED}:
        torch.testing.assert_close(
            outcome(cases, name, images), expected, atol=1e-4, rtol=1e-4, msg=lambda m, name=name: f"{name}: {m}"
        )


def test_compiled_agrees(cases, monkeypatch):
    monkeypatch.setattr(cases, "STEPS", 1)  # a compiler takes minutes for two
    images = cases.Images((2, 7, 3))
    found, expected = (outcome(cases, name, images) for name in (cases.COMPILED, "per image"))
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_multiply_adds_of_one_pair(cases):
    # The paper's size: about 1.05 M multiply-adds a pair and step with dense words, 0.60 M with folded tables.
    cases.WIDTH, width = 500, cases.WIDTH
    for dense, expected in ((True, 1.05e6), (False, 0.60e6)):
        per_pair = cases.multiply_adds((2000,), dense)[0] / cases.STEPS / (2000 * 1999)
        assert abs(per_pair / expected - 1) < 0.01
    cases.WIDTH = width
