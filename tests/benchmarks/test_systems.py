"""The tables of compared systems: equal schedules, one first stage for all, and what stands beside the figures."""

from __future__ import annotations

import pytest
import torch

from paper.systems.system_cases import NARROW, SYSTEMS
from rows import preset_config
from scenegpi.models import load_model
from scenegpi.models.presets import PRESETS
from systems import FIRST, OWN, Entry, entries, first_epochs, row_config, train_row
from training.training_cases import data_file

DATA = {"data": {"path": "-"}}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def test_whole_systems_differ_in_the_model_only():
    configs = {name: row_config(entry, DATA, 10, None) for name, entry in entries("whole").items()}
    assert configs.keys() == PRESETS.keys() | SYSTEMS.keys()
    for config in configs.values():
        epochs = config.baseline.epochs + (config.context.epochs if config.model.two_stages else 0)
        assert epochs == 10
        assert (config.stage.loss, config.stage.augment.drop) == (configs["baseline"].stage.loss, 0.5)
        assert config.stage.optim == configs["baseline"].stage.optim
        assert config.model.baseline == configs["baseline"].model.baseline


def test_published_recipes_are_settings_that_exist():
    for name, entry in entries("own").items():
        config = row_config(entry, DATA, 4, None)
        assert config.preset == name
        assert config.stage.loss.kind == OWN[name].get("loss", {}).get("kind", "metric")


def test_a_swapped_context_starts_from_the_first_stage_of_its_seed(tmp_path):
    path = data_file(tmp_path, images=12)
    options = {"data": {"path": str(path), "validation": 0}, "optim": {"batch": 6}}
    options["model"] = {"baseline": {"hidden": 8, "embedding": 6, "rank": 4}}
    entry = Entry("imp", {"model": {"on_baseline": True, "network": {"width": NARROW}}}, FIRST)
    model = load_model(train_row(entry, "swapped", "imp, swapped", tmp_path / "runs", 3, options, 4))
    first = load_model(tmp_path / "runs" / FIRST / "seed3" / "model")
    assert torch.equal(model.baseline.label, first.baseline.label)
    below = entries("swapped")["baseline"]
    assert train_row(below, "swapped", "baseline", tmp_path / "runs", 3, options, 4).parent.parent.name == FIRST
    assert (first_epochs(4), first_epochs(10), first_epochs(2)) == (2, 6, 1)


def test_a_system_on_vrd_has_the_epochs_of_both_stages():
    gpi, imp = (preset_config("vrd-layout", name, {}) for name in ("gpi-neighbour-attention", "imp"))
    assert imp.stage.epochs == gpi.baseline.epochs + gpi.context.epochs
    assert preset_config("vrd-layout", "imp", {"epochs": 3}).stage.epochs == 3
