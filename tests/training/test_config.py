"""Configurations: what is shared between stages, how epochs are divided, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenegpi.errors import OptionError
from scenegpi.options import override, plain
from scenegpi.training.config import TrainConfig, stored_config
from scenegpi.training.recipes import merged, train_config, with_epochs


def test_shared_settings_hold_for_both_stages_and_their_own_come_first():
    config = train_config(
        {
            "optim": {"batch": 7, "warmup": 5},
            "loss": {"kind": "paper"},
            "context": {"epochs": 9, "optim": {"batch": 3}, "augment": {"drop": 0.1}},
        }
    )
    assert (config.baseline.optim.batch, config.context.optim.batch) == (7, 3)
    assert (config.baseline.optim.warmup, config.context.optim.warmup) == (5, 5)
    assert config.baseline.loss.kind == config.context.loss.kind == "paper"
    assert (config.baseline.epochs, config.context.epochs) == (TrainConfig().baseline.epochs, 9)
    assert (config.baseline.augment.drop, config.context.augment.drop) == (0.0, 0.1)


def test_a_configuration_survives_its_plain_form():
    values = {
        "preset": "gpi-no-attention",
        "model": {"vision": {}},
        "data": {"path": "x", "limit": 9},
        "calibration": {"sgcls": {"labels": 1.5}},
        "optim": {"average": 0.0},
    }
    config = train_config(values)
    assert config.task == "both"  # a model that uses photos
    assert override(TrainConfig(), plain(config), "") == config
    alone = train_config({"preset": "baseline"})
    assert alone.model.context is None
    assert override(TrainConfig(), plain(alone), "") == alone


@given(st.integers(2, 500), st.integers(1, 30), st.integers(1, 30))
def test_epochs_are_divided_in_proportion_and_every_stage_gets_one(whole, first, second):
    config = train_config({"epochs": whole, "baseline": {"epochs": first}, "context": {"epochs": second}})
    found = config.baseline.epochs, config.context.epochs
    assert sum(found) == whole
    assert min(found) >= 1
    assert abs(found[0] - whole * first / (first + second)) <= 1


def test_one_epoch_is_enough_for_one_stage_only():
    with pytest.raises(OptionError, match="at least 2"):
        train_config({"epochs": 1})
    assert train_config({"epochs": 1, "preset": "baseline"}).baseline.epochs == 1
    assert train_config({"epochs": 1, "start": "run"}).context.epochs == 1
    assert with_epochs(train_config({}), 10).baseline.epochs == 6


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"optim": {"epochs": 3}}, r"optim\.epochs: no such setting"),
        ({"baseline": {"optim": {"rate": 1}}}, r"baseline\.optim\.rate: no such setting"),
        ({"epochs": 0}, "epochs: 0 is not between"),
        ({"epochs": "two"}, "epochs: expected a whole number"),
        ({"preset": 3}, "preset: expected a string"),
        ({"baseline": 4}, "baseline: expected a table"),
        ({"loss": {"kind": "coverage"}}, r"loss\.kind: 'coverage' is not one of"),
        ({"stage": "both"}, "stage: no such setting"),
    ],
)
def test_what_makes_no_sense_is_named(values, message):
    with pytest.raises(OptionError, match=message):
        train_config(values)


def test_tables_are_merged_all_the_way_down():
    below = {"a": 1, "b": {"c": 2, "d": {"e": 3}}}
    assert merged(below, {"b": {"d": {"f": 4}}, "g": 5}) == {"a": 1, "b": {"c": 2, "d": {"e": 3, "f": 4}}, "g": 5}
    assert merged(below, {"b": 7}) == {"a": 1, "b": 7}
    assert below == {"a": 1, "b": {"c": 2, "d": {"e": 3}}}


def test_a_run_of_before_is_read_if_its_settings_are_those_of_now():
    stored = plain(TrainConfig())
    stored |= {"simulate": None, "fit": stored["fit"] | {"weight_decay": 0.01}}
    stored["photo"] |= {"rate": 1e-3, "finder": 1.0, "keep": False}
    assert stored_config(stored) == TrainConfig()
    for other in ({"simulate": {"strength": 5.0}}, {"photo": stored["photo"] | {"rate": 0.1}}):
        with pytest.raises(OptionError, match="no such setting"):
            stored_config(stored | other)
