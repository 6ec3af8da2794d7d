"""Autocast: the photo network trains in bfloat16 on a CPU, and its losses are those of full precision, nearly."""

from __future__ import annotations

import re

import pytest
import torch

from scenegpi.data import open_dataset
from scenegpi.training import MachineConfig, photo_module, photo_network
from scenegpi.training.config import PhotoFitConfig
from scenegpi.training.photo_sets import LabelSets, own_photos
from training.coloured import write_scenes
from vision.vision_cases import TINY_EYES, needs_package


@needs_package
def test_the_photo_network_trains_in_bfloat16(tmp_path, monkeypatch, capsys):
    torch.set_num_threads(1)
    monkeypatch.setattr(photo_module, "JITTER", 0.0)
    dataset = open_dataset(write_scenes(tmp_path, 6, 6) / "data.jsonl", images=tmp_path / "images")
    photos = own_photos([dataset.image_path(i) for i in range(6)], list(dataset))
    losses = []
    for precision in ("32-true", "bf16-mixed"):
        vision = photo_network.new_vision(TINY_EYES, dataset.vocabulary, 0)
        sets = LabelSets(vision.labels.objects, vision.names)
        options, machine = PhotoFitConfig(epochs=1, sizes=(64,), batch=3, frozen=6), MachineConfig(precision=precision)
        photo_network.fit_network(vision, photos, sets, options, tmp_path / precision, machine=machine)
        losses.append(float(re.findall(r"[, ]loss ([\d.]+)", capsys.readouterr().out)[-1]))
        assert all(bool(torch.isfinite(value).all()) for value in vision.state_dict().values())
    assert losses[1] == pytest.approx(losses[0], rel=0.05)
    assert losses[1] != losses[0]
