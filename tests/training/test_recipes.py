"""Recipes make the shipped models: the same configuration, and each path to the end on a few rendered scenes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from scenegpi.data import open_dataset
from scenegpi.models import load_model, shipped_models
from scenegpi.models.config import ModelConfig
from scenegpi.options import override
from scenegpi.paper.rendered import render_folder
from scenegpi.prediction import Predictor
from scenegpi.training import find_recipe, read_config, train
from scenegpi.training.recipes import recipe_files
from scenegpi.vision.config import FinderConfig
from training.training_cases import SMALL
from vision.vision_cases import needs_package

RECIPES = list(recipe_files())


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def uncalibrated(model: ModelConfig) -> ModelConfig:
    """Without what is fitted to validation photos: how sure a finder is."""
    if model.vision is None or model.vision.finder is None:
        return model
    finder = replace(model.vision.finder, weights=FinderConfig().weights)
    return replace(model, vision=replace(model.vision, finder=finder))


def test_every_shipped_model_has_its_recipe():
    assert set(RECIPES) - set(shipped_models()) == {
        "vg150-actions",
        "vg150-eyes",
        "vg150-photo-large",
        "vg150-table",
    }  # a part; for GPUs; compared systems
    assert set(shipped_models()) < set(RECIPES)


@pytest.mark.parametrize("name", sorted(shipped_models()))
def test_a_recipe_builds_what_ships(name):
    recipe = read_config(find_recipe(name), {})
    shipped = json.loads((shipped_models()[name] / "config.json").read_text())
    assert uncalibrated(recipe.model) == uncalibrated(override(ModelConfig(), shipped["model"], "model"))
    assert recipe.half
    for key in ("preset", "task", "seed"):
        assert shipped["training"][key] == getattr(recipe, key)
    if recipe.calibration is not None:
        assert load_model(name).calibration == recipe.calibration


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Rendered scenes; the photos of some training images are taken away, as most of VRD's are not to be had."""
    folder = tmp_path_factory.mktemp("scenes") / "scenes"
    render_folder(folder, 26, seed=2, validation=0.0, test=0.5)
    train_part = open_dataset(folder, "train")
    for i in range(0, len(train_part), 4):
        train_part.image_path(i).unlink()
    return folder


def tiny(name: str, path: Path) -> dict:
    """The recipe, with fewer epochs, narrower layers and smaller photos."""
    values = {"epochs": 2, "model": SMALL, "data": {"path": str(path)}}
    if name.startswith("vg150") or name.endswith("-layout"):
        values["data"]["validation"] = 3
    if not name.endswith("-layout"):
        values["fit"] = {"epochs": 2, "folds": 2}
        values["photo"] = {"epochs": 1, "whole_epochs": 1, "batch": 4, "sizes": [64]}
        values["model"] = {**SMALL, "vision": {"features": {"photo_size": 64}, "head": {"hidden": 8}}}
    return values


@needs_package
@pytest.mark.parametrize("name", sorted(shipped_models()))
def test_a_small_version_of_every_recipe(name, scenes, tmp_path):
    config = read_config(find_recipe(name), tiny(name, scenes))
    model = load_model(train(config, tmp_path / "run"))
    assert uncalibrated(model.config) == uncalibrated(config.model)
    assert (model.vision is not None) == (not name.endswith("-layout"))
    data = open_dataset(scenes)
    splits = data.split_codes()
    seen = np.array([model.trained_on.seen(graph) for graph in data])
    assert seen.any()
    assert not seen[splits != 0].any()


@needs_package
def test_the_photo_recipe_with_a_backbone_of_transformers(scenes, tmp_path):
    pytest.importorskip("transformers", reason="the extra [hf] is not installed")
    from vision.hf_backbones import save_backbone

    folder = save_backbone("resnet", tmp_path / "checkpoint")
    values = tiny("vg150-photo", scenes)
    values["model"]["vision"]["features"]["backbone"] = f"hf:{folder}"
    model = train(read_config(find_recipe("vg150-photo"), values), tmp_path / "run")
    before = load_file(folder / "model.safetensors")
    shutil.rmtree(folder)  # the model has what it needs
    vision = load_model(model).vision
    after = {name: value for name, value in vision.backbone.trunk.net.state_dict().items() if name in before}
    changed = [float((value.float() - before[name].half()).abs().max()) for name, value in after.items()]
    assert len(changed) > 20
    assert 0 < max(changed) < 0.1  # fine-tuned, from these weights
    data = open_dataset(scenes, "test")
    assert Predictor(model)(data.image_path(0)).width == data[0].width
