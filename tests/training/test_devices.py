"""Prediction, scoring and a step of training on a second device: nothing is left on the CPU, figures are the CPU's."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from elsewhere import OTHER, Elsewhere, SecondDevice, moved
from models.model_cases import predict_graphs, random_graphs, small_model
from scenegpi.features.batch import SceneBatch
from scenegpi.prediction import Predictor
from scenegpi.training import photo_module
from scenegpi.training.config import PhotoFitConfig
from scenegpi.training.losses import scene_loss
from scenegpi.training.module import scored
from scenegpi.training.photo_batches import PhotoBatch
from scenegpi.training.photo_sets import LabelSets
from scenegpi.training.recipes import train_config
from scenegpi.vision.find import Finder
from scenegpi.vision.model import VisionModel
from vision.vision_cases import TINY_EYES, VOCABULARY

GRAPHS = random_graphs((3, 5))


@pytest.fixture(autouse=True)
def _there(monkeypatch):
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)  # which knows no device of this name
    with SecondDevice():
        yield


def stepped(module: torch.nn.Module, loss: torch.Tensor, optimiser: torch.optim.Optimizer) -> list[torch.Tensor]:
    """The weights after a step of training."""
    loss.backward()
    torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
    optimiser.step()
    return [each.detach().cpu() for each in module.parameters()]


def test_a_model_predicts_is_scored_and_trained():
    still = {"dropout": 0.0, "input_dropout": 0.0}  # each kind of device draws its own
    here, there = (small_model("gpi-feature-attention", **still) for _ in range(2))
    moved(there)
    options = train_config({"preset": "baseline", "data": {"path": "x"}}).baseline.loss
    for a, b in zip(predict_graphs(here, GRAPHS), scored(there, GRAPHS, "predcls"), strict=True):
        np.testing.assert_allclose(a.pair_dist, b.pair_dist, atol=1e-5)
    assert len(list(Predictor(there, device=OTHER).stream(GRAPHS))) == len(GRAPHS)
    losses, weights = [], []
    for model, where in ((here, "cpu"), (there, OTHER)):
        batch = SceneBatch.of(GRAPHS).to(where)
        losses.append(scene_loss(model.train()(batch), batch, options).sum())
        weights.append(stepped(model, losses[-1], torch.optim.SGD(model.parameters(), 0.1)))
    assert isinstance(losses[1], Elsewhere)
    assert losses[1].item() == pytest.approx(losses[0].item(), rel=1e-4)
    for a, b in zip(*weights, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


def test_the_photo_network_finds_names_and_is_trained(monkeypatch):
    monkeypatch.setattr(photo_module.PhotoModule, "trainer", SimpleNamespace(world_size=1))
    monkeypatch.setattr(photo_module.PhotoModule, "log_dict", lambda *_, **__: None)
    monkeypatch.setattr(photo_module, "JITTER", 0.0)
    photo = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    boxes = torch.tensor([[0.1, 0.1, 0.5, 0.5], [0.2, 0.2, 0.9, 0.9], [0.1, 0.1, 0.2, 0.3]])
    tensors = (torch.rand(2, 3, 64, 64) * 255, boxes, *torch.tensor([[0, 1, 2], [0, 1, 1], [0, 0, 1]]))
    options, found, losses, weights = PhotoFitConfig(sizes=(64,), batch=2, frozen=6), [], [], []
    for where in ("cpu", OTHER):
        torch.manual_seed(0)
        vision = VisionModel(TINY_EYES, VOCABULARY)
        vision = vision if where == "cpu" else moved(vision)
        found.append(Finder(vision.eval()).detect(photo).boxes)
        module = photo_module.PhotoModule(vision.train(), LabelSets(vision.labels.objects, vision.names), options, 20)
        batch = PhotoBatch(*(each.to(where) for each in tensors), torch.ones(2, 2, dtype=torch.bool).to(where))
        torch.manual_seed(0)
        losses.append(module.training_step(batch, 0))
        weights.append(stepped(module, losses[-1], module.configure_optimizers()["optimizer"]))
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)
    assert isinstance(losses[1], Elsewhere)
    assert losses[1].item() == pytest.approx(losses[0].item(), rel=1e-4)
    assert all(bool(torch.isfinite(each).all()) for each in weights[1])


def test_a_tensor_that_was_left_on_the_cpu_is_noticed():
    batch = SceneBatch.of(GRAPHS)
    with pytest.raises(RuntimeError, match="tensors on two devices"):
        moved(small_model("baseline"))(batch)
