"""A state that is damaged, incomplete or of another run is refused in one line that names the field."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from scenegpi.errors import DataError
from scenegpi.training import resume, train
from training.training_cases import data_file, small_config

LABEL = "model.network.label"


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run of two epochs that stopped after the first."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("state")
    run = folder / "run"
    train(small_config(data_file(folder), "baseline"), run)
    (run / "finished.json").unlink()
    config = json.loads((run / "config.json").read_text())
    config["baseline"]["epochs"] = 2
    (run / "config.json").write_text(json.dumps(config))
    return run


@pytest.fixture
def run(stopped, tmp_path):
    return shutil.copytree(stopped, tmp_path / "run")


def put(value, *keys):
    """A change of the state: the value at these keys."""

    def change(state):
        for key in keys[:-1]:
            state = state[key]
        state[keys[-1]] = value

    return change


def drop(*keys):
    def change(state):
        for key in keys[:-1]:
            state = state[key]
        del state[keys[-1]]

    return change


ADAM = ("optimizer_states", 0)
CHANGES = {
    "no epoch": (drop("epoch"), "epoch: missing"),
    "epoch of text": (put("1", "epoch"), "epoch: expected int, found str"),
    "another epoch": (put(7, "epoch"), "epoch: 7 and 1 done, but 1 in the log"),
    "no loops": (put({}, "loops"), "epoch: 0 and None done"),
    "no weights": (drop("state_dict"), "state_dict: missing"),
    "a weight missing": (drop("state_dict", LABEL), f"state_dict.{LABEL}: missing"),
    "a weight too many": (put(torch.ones(2), "state_dict", "x"), "state_dict.x: not a weight of this run"),
    "a wide weight": (
        put(torch.ones(5, 9), "current_model_state", LABEL),
        f"{LABEL}: expected (5, 8) of torch.float32",
    ),
    "a whole weight": (put(torch.ones(5, 8).long(), "state_dict", LABEL), "found (5, 8) of torch.int64"),
    "a weight of text": (put("x", "state_dict", LABEL), f"{LABEL}: expected (5, 8) of torch.float32, found str"),
    "not finite": (put(torch.full((5, 8), torch.nan), "state_dict", LABEL), "holds a number that is not finite"),
    "no mean": (drop("averaging_state"), "averaging_state: missing"),
    "odd mean": (put({"x": 1}, "averaging_state"), "cannot be resumed from"),
    "no log": (drop("callbacks", "RunFolder"), "callbacks.RunFolder: expected a table"),
    "rows of text": (put([{"epoch": "1"}], "callbacks", "RunFolder", "rows"), "callbacks.RunFolder.rows: expected"),
    "odd figures": (
        put({"validation": 3}, "callbacks", "RunFolder", "metrics"),
        "metrics.validation: expected figures",
    ),
    "no optimizer": (put([], "optimizer_states"), "optimizer_states: expected 1, found 0"),
    "no moments": (put({}, *ADAM, "state"), "optimizer_states.state: empty"),
    "no schedule": (put([], "lr_schedulers"), "lr_schedulers: expected 1, found 0"),
    "groups missing": (put([], *ADAM, "param_groups"), "cannot be resumed from"),
    "another optimizer": (put({"momentum_buffer": torch.ones(5, 8)}, *ADAM, "state", 0), "found {'momentum_buffer'"),
    "a moment of another shape": (
        put(torch.ones(3), *ADAM, "state", 0, "exp_avg"),
        "weight 0 of group 0, exp_avg: expected finite numbers of shape (5, 8)",
    ),
    "a rate of text": (put("fast", *ADAM, "param_groups", 0, "lr"), "param_groups.0.lr: expected float, found 'fast'"),
    "an odd schedule": (put([{"last_epoch": "x", "step": 3}], "lr_schedulers"), "cannot be resumed from"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_state_that_does_not_fit(name, run):
    change, said = CHANGES[name]
    path = run / "last.ckpt"
    state = torch.load(path, weights_only=True)
    change(state)
    torch.save(state, path)
    assert said in refusal(run)


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.99])
def test_a_state_that_is_cut_off(keep, run):
    data = (run / "last.ckpt").read_bytes()
    (run / "last.ckpt").write_bytes(data[: int(keep * len(data))])
    assert "no state to resume from" in refusal(run) or not keep


def test_a_list_in_place_of_the_state(run):
    torch.save([1], run / "last.ckpt")
    assert "state: expected a table, found list" in refusal(run)


def test_the_state_as_it_was_is_fine(run):
    resume(run)
    assert json.loads((run / "finished.json").read_text())["epochs"] == 2


def refusal(run):
    with pytest.raises(DataError) as caught:
        resume(run)
    message = str(caught.value)
    assert message.startswith(str(run / "last.ckpt"))
    assert message.isprintable()
    return message
