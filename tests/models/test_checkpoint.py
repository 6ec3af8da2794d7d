"""Saved = loaded; a hostile folder gives one clear line and allocates nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from models.model_cases import predict_graphs, random_graphs, small_model
from scenegpi.errors import DataError
from scenegpi.models import PRESETS, load_model, save_model


@pytest.mark.parametrize("name", list(PRESETS))
def test_saved_is_loaded(name, tmp_path):
    model = small_model(name)
    save_model(model, tmp_path / "m", {"validation": {"figures": {"R@50": 0.5}, "images": 3, "protocol": "PredCls"}})
    again = load_model(tmp_path / "m")
    assert again.config == model.config
    assert again.vocabulary == model.vocabulary
    for (key, a), b in zip(model.state_dict().items(), again.state_dict().values(), strict=True):
        assert torch.equal(a, b), key
    for a, b in zip(*(predict_graphs(m, random_graphs((4, 6))) for m in (model, again)), strict=True):
        np.testing.assert_allclose(a.pair_dist, b.pair_dist, atol=1e-6)
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == [
        "README.md",
        "config.json",
        "metrics.json",
        "model.safetensors",
        "vocabulary.json",
    ]
    assert "R@50 50.0" in (tmp_path / "m" / "README.md").read_text()


def test_loaded_weights_lie_at_aligned_addresses(tmp_path):
    """Files are mapped at any address, and products of unaligned matrices take another path in the last bit."""
    loaded = load_model(save_model(small_model("gpi-linguistic"), tmp_path / "m"))
    assert {each.data_ptr() % 16 for each in loaded.parameters()} == {0}


def test_half_precision_is_half_the_size_and_nearly_the_same(tmp_path):
    model = small_model("gpi-feature-attention")
    whole, half = (save_model(model, tmp_path / name, half=name == "half") for name in ("whole", "half"))
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (whole, half)]
    assert sizes[1] < 0.75 * sizes[0]
    again = load_model(half)
    assert all(each.dtype == torch.float32 for each in again.parameters())
    assert torch.equal(model.baseline.prior.counts, again.baseline.prior.counts)
    for a, b in zip(*(predict_graphs(m, random_graphs((4, 6)), "sgcls") for m in (model, again)), strict=True):
        assert np.allclose(a.pair_dist, b.pair_dist, atol=5e-3)
        assert np.allclose(a.label_dist, b.label_dist, atol=5e-3)


@pytest.fixture
def saved(tmp_path):
    return save_model(small_model("gpi-feature-attention"), tmp_path / "m")


def edit(path, *keys, value):
    data = json.loads(path.read_text())
    inner = data
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("format",), 3, "format: 3"),
        (("model",), [1], "model: expected a table"),
        (("model", "baseline", "hidden"), "wide", "model.baseline.hidden: expected a whole number"),
        (("model", "baseline", "hidden"), 10**12, "model.baseline.hidden: .* not between"),
        (("model", "baseline", "hidden"), True, "model.baseline.hidden: expected a whole number"),
        (("model", "baseline", "hidden"), 512, "shape .* but config.json makes it"),
        (("model", "baseline", "dropout"), 1e400, "dropout|NaN|Infinity|not"),
        (("model", "network", "aggregation"), "magic", "not one of sum, mean"),
        (("model", "network", "steps"), -1, "model.network.steps"),
        (("model", "network", "words"), 7, "missing|shape"),
        (("model", "network"), None, "not a tensor of this model"),
        (("model", "surprise"), 1, "model.surprise: no such setting"),
    ],
)
def test_a_hostile_configuration_is_one_line(saved, keys, value, message):
    edit(saved / "config.json", *keys, value=value)
    with pytest.raises(DataError, match=message) as caught:
        load_model(saved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("spoil", ["shape", "nan", "type", "missing", "extra", "cells", "truncated", "pickle", "none"])
def test_hostile_weights_are_one_line(saved, spoil, tmp_path):
    path = saved / "model.safetensors"
    state = load_file(path)
    counts = next(key for key in state if key.endswith("counts.cells"))
    if spoil == "shape":
        state["network.baseline.label"] = torch.zeros(2, 2)
    elif spoil == "nan":
        state["network.baseline.label"][0, 0] = float("nan")
    elif spoil == "type":
        state["network.baseline.label"] = state["network.baseline.label"].double()
    elif spoil == "missing":
        del state["network.baseline.label"]
    elif spoil == "extra":
        state["surprise"] = torch.zeros(1)
    elif spoil == "cells":
        state[counts] = state[counts] + 10**8
    save_file(state, path)
    if spoil == "truncated":
        path.write_bytes(path.read_bytes()[:-100])
    elif spoil == "pickle":
        torch.save(state, path)
    elif spoil == "none":
        path.unlink()
    with pytest.raises(DataError, match=r"model\.safetensors") as caught:
        load_model(saved)
    assert "\n" not in str(caught.value)


def test_a_hostile_vocabulary_is_one_line(saved):
    edit(saved / "vocabulary.json", "objects", value=[f"label {i}" for i in range(60_000)])
    with pytest.raises(DataError, match="are too many"):
        load_model(saved)
    edit(saved / "vocabulary.json", "objects", value=["a", "a"])
    with pytest.raises(DataError, match="is duplicated"):
        load_model(saved)


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(DataError, match="no such model"):
        load_model("nowhere")
    with pytest.raises(DataError, match=r"config\.json"):
        load_model(tmp_path)


def test_a_folder_is_not_replaced_by_chance(saved):
    with pytest.raises(DataError, match="exists already"):
        save_model(small_model("baseline"), saved)
    save_model(small_model("baseline"), saved, overwrite=True)
    assert load_model(saved).config.context is None
