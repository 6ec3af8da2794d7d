"""Backbones of transformers: small checkpoints saved by its own code, read from disk, under the photo network."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

pytest.importorskip("transformers", reason="the extra [hf] is not installed")

from models.model_cases import small
from scenegpi.errors import DataError, OptionError
from scenegpi.models import PRESETS, build_model
from scenegpi.vision.config import BoxFeatureConfig, HeadConfig, VisionConfig
from scenegpi.vision.find import Finder
from scenegpi.vision.hf_trunk import STRIDES, HFTrunk, read_architecture
from scenegpi.vision.model import VisionModel
from vision.hf_backbones import BACKBONES, MEAN, STD, save_backbone
from vision.vision_cases import VOCABULARY, colour_scene


@pytest.fixture(scope="module", params=BACKBONES)
def folder(request, tmp_path_factory):
    return save_backbone(request.param, tmp_path_factory.mktemp("hf") / request.param)


def trunk(folder) -> HFTrunk:
    found = HFTrunk(read_architecture(str(folder)))
    found.start(str(folder))
    return found.eval()


@torch.no_grad()
def test_maps_have_the_widths_and_strides_they_say(folder):
    net = trunk(folder)
    photos = torch.randint(0, 256, (2, 3, 64, 96), generator=torch.Generator().manual_seed(0))
    maps = net.maps(photos, tuple(STRIDES))
    for (layer, stride), each in zip(STRIDES.items(), maps, strict=True):
        assert each.values.shape == (2, net.widths[layer], 64 // stride, 96 // stride)
    again = HFTrunk(read_architecture(str(folder))).eval()
    again.load_state_dict(net.state_dict())  # what a model holds is all that there is
    for a, b in zip(maps, again.maps(photos, tuple(STRIDES)), strict=True):
        torch.testing.assert_close(a.values, b.values)


def test_its_own_normalisation_and_weights(folder):
    net = trunk(folder)
    torch.testing.assert_close(net.mean.flatten(), 255 * torch.tensor(MEAN))
    torch.testing.assert_close(net.std.flatten(), 255 * torch.tensor(STD))
    saved = BACKBONES[folder.name]  # saved after the seed was set to 0
    torch.manual_seed(0)
    one = next(each for each in saved().modules() if isinstance(each, torch.nn.Conv2d))
    other = next(each for each in net.modules() if isinstance(each, torch.nn.Conv2d))
    torch.testing.assert_close(one.weight, other.weight)


def test_cells_lie_where_they_say(folder):
    """A bright column moves the centre of what a map says to where the column is, within half a cell."""
    if folder.name == "dinov2":
        pytest.skip("attention lets every pixel reach every cell")
    net = trunk(folder)
    for layer in ("early", "middle"):
        image = torch.rand(1, 3, 64, 320, generator=torch.Generator().manual_seed(0)) * 255
        image.requires_grad_()
        found = net.maps(image, (layer,))[0]
        k = found.values.shape[3] // 2
        found.values[0, :, :, k].square().sum().backward()
        reach = image.grad.abs().sum((0, 1, 2))
        middle = float((reach * (torch.arange(320) + 0.5)).sum() / reach.sum())
        assert abs(middle - (found.first + k * found.stride)) <= found.stride / 2


def test_frozen_or_fine_tuned(folder):
    net = trunk(folder)
    trained = []
    for stages in (0, 3, 7):
        net.freeze(stages)
        trained.append(sum(each.requires_grad for each in net.parameters()))
    assert trained[0] == len(list(net.parameters())) > trained[1] > trained[2] == 0
    statistics = {name: value.clone() for name, value in net.state_dict().items() if "running" in name}
    net.train().maps(torch.zeros(1, 3, 64, 64), ("last",))
    for name, value in statistics.items():
        assert torch.equal(net.state_dict()[name], value)


def test_the_photo_network_reads_finds_and_is_loaded_without_the_folder(folder):
    features = BoxFeatureConfig(backbone=f"hf:{folder}", photo_size=64, mirror=False)
    torch.manual_seed(0)
    vision = VisionModel(VisionConfig(features, HeadConfig(hidden=8)), VOCABULARY).eval()
    vision.backbone.start(features.backbone)
    photo, graph = colour_scene(0)
    named = vision.label_dist(photo, graph)
    gone = replace(features, backbone="hf:no/such/folder", architecture=read_architecture(str(folder)))
    other = VisionModel(VisionConfig(gone, HeadConfig(hidden=8)), VOCABULARY).eval()
    other.load_state_dict(vision.state_dict())
    np.testing.assert_allclose(other.label_dist(photo, graph), named, atol=1e-5)
    assert Finder(other).detect(photo).size == (160, 120)
    assert {value.dtype for value in vision.state_dict().values()} == {torch.float32}


def test_it_is_exported_or_refused_in_one_line(folder):
    pytest.importorskip("onnxruntime", reason="the extra [onnx] is not installed")
    from scenegpi.onnx.export import model_bytes
    from scenegpi.onnx.runtime import OnnxModel

    features = BoxFeatureConfig(backbone=f"hf:{folder}", photo_size=64, mirror=False)
    vision = VisionConfig(features, HeadConfig(hidden=8))
    model = build_model(replace(small(PRESETS["baseline"]), vision=vision), VOCABULARY).eval()
    if folder.name == "dinov2":
        with pytest.raises(DataError, match="cannot be exported: it resizes the photo"):
            model_bytes(model, "photo")
        return
    photo, graph = colour_scene(0)
    found = OnnxModel(model_bytes(model, "photo")).vision.label_dist(photo, graph)
    np.testing.assert_allclose(found, model.vision.label_dist(photo, graph), atol=1e-5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "bert"}, "model_type: 'bert' is not one of resnet"),
        ({"depths": [10**6, 1, 1, 1]}, "depths: too large"),
        ({"hidden_sizes": [10**9, 8, 8, 8]}, "hidden_sizes: too large"),
        ({"hidden_sizes": [40_000] * 4}, "weights are too many"),
        ({"hidden_sizes": "wide"}, "cannot be built"),
    ],
)
def test_what_cannot_be_built_is_said_in_one_line(change, said):
    values = {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8] * 4, "depths": [1] * 4} | change
    with pytest.raises(OptionError, match=said) as error:
        HFTrunk(json.dumps(values))
    assert "\n" not in str(error.value)


def test_a_folder_without_weights_is_said(tmp_path):
    save_backbone("resnet", tmp_path)
    net = HFTrunk(read_architecture(str(tmp_path)))
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(DataError, match="cannot be loaded"):
        net.start(str(tmp_path))
    with pytest.raises(DataError, match=r"config\.json"):
        read_architecture(str(tmp_path / "none"))
