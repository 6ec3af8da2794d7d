"""The tables of compared systems: equal schedules, one first stage for all, and what stands beside the figures."""

from __future__ import annotations

import pytest
import torch

from models.model_cases import random_graphs
from models.systems.system_cases import NARROW, small_system
from rows import preset_config, usable_presets
from scenegpi.data import open_dataset
from scenegpi.metrics import Plan, Protocol
from scenegpi.models import load_model
from scenegpi.models.presets import PRESETS, SYSTEMS
from system_sides import DRAWS, cost, facts, random_orders, relisting
from systems import FIRST, OWN, Entry, entries, first_epochs, row_config, train_row
from training.training_cases import data_file

DATA = {"data": {"path": "-"}}


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def test_whole_systems_differ_in_the_model_only():
    configs = {name: row_config(entry, DATA, 10, None) for name, entry in entries("whole", words=True).items()}
    assert configs.keys() == PRESETS.keys() | SYSTEMS.keys()
    for config in configs.values():
        epochs = config.baseline.epochs + (config.context.epochs if config.model.two_stages else 0)
        assert epochs == 10
        assert (config.stage.loss, config.stage.augment.drop) == (configs["baseline"].stage.loss, 0.5)
        assert config.stage.optim == configs["baseline"].stage.optim
        assert config.model.baseline == configs["baseline"].model.baseline


def test_rows_without_words():
    found = entries("whole", words=False)
    assert (PRESETS.keys() | SYSTEMS.keys()) - found.keys() == {"gpi-linguistic", "lu", "pe-net"}


def test_published_recipes_are_settings_that_exist():
    for name, entry in entries("own", words=True).items():
        config = row_config(entry, DATA, 4, None)
        assert config.preset == name
        assert config.stage.loss.kind == OWN[name].get("loss", {}).get("kind", "metric")


def test_a_swapped_context_starts_from_the_first_stage_of_its_seed(tmp_path):
    path = data_file(tmp_path, images=12)
    options = {"data": {"path": str(path), "validation": 0}, "optim": {"batch": 6}}
    options["model"] = {"baseline": {"hidden": 8, "embedding": 6, "rank": 4}}
    entry = Entry("imp", {"model": {"on_baseline": True, "imp": NARROW["imp"]}}, FIRST)
    model = load_model(train_row(entry, "swapped", "imp, swapped", tmp_path / "runs", 3, options, 4))
    first = load_model(tmp_path / "runs" / FIRST / "seed3" / "model")
    assert torch.equal(model.baseline.label, first.baseline.label)
    below = entries("swapped", words=False)["baseline"]
    assert train_row(below, "swapped", "baseline", tmp_path / "runs", 3, options, 4).parent.parent.name == FIRST
    assert (first_epochs(4), first_epochs(10), first_epochs(2)) == (2, 6, 1)


def test_a_system_on_vrd_has_the_epochs_of_both_stages():
    gpi, imp = (preset_config("vrd-layout", name, {}) for name in ("gpi-neighbour-attention", "imp"))
    assert imp.stage.epochs == gpi.baseline.epochs + gpi.context.epochs
    assert preset_config("vrd-layout", "imp", {"epochs": 3}).stage.epochs == 3
    assert set(usable_presets(None, systems=True)) == entries("whole", words=False).keys()


def test_what_a_new_listing_changes():
    images = random_graphs((6, 8, 1, 0), dist=False)
    fixed, by_list = (relisting(small_system(name), images) for name in ("imp", "motifs-list"))
    assert fixed["largest change"] < 1e-5
    assert fixed["images changed"] == 0
    assert by_list["largest change"] > 1e-4


def test_cost_and_random_orders(tmp_path):
    images = random_graphs((5, 6, 7), dist=False)
    model = small_system("motifs-random")
    row = cost(model, row_config(Entry("motifs-random", {}), DATA, 2, None), images)
    assert row["weights"] == model.num_parameters()
    assert row["forward and backward"] > 0
    assert "| 12 | 1.0e-03 | 50.0 |" in facts(
        {"a": {**row, "training seconds": 12.0, "largest change": 1e-3, "images changed": 50.0}}
    )
    data = list(open_dataset(data_file(tmp_path, images=5)))
    found = random_orders(model, data, Plan(Protocol("predcls"), data[0].vocabulary), "R@20")
    assert len(found) == DRAWS
    assert model.network.config.draw == 0
