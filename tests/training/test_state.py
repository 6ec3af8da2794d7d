"""A state that is damaged, incomplete or of another run is refused in one line."""

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


def nan(*keys):
    """The last of the numbers there is none."""

    def change(state):
        for key in keys:
            state = state[key]
        state.view(-1)[-1] = torch.nan

    return change


ADAM = ("optimizer_states", 0)
CHANGES = {
    "no weights": (drop("state_dict"), "state_dict"),
    "a weight missing": (drop("state_dict", LABEL), LABEL),
    "a weight too many": (put(torch.ones(2), "state_dict", "x"), "x"),
    "a wide weight": (put(torch.ones(5, 9), "current_model_state", LABEL), "size mismatch"),
    "no log": (drop("callbacks", "RunFolder", "rows"), "rows"),
    "odd mean": (put({"x": 1}, "averaging_state"), "n_averaged"),
    "groups missing": (put([], *ADAM, "param_groups"), "parameter group"),
    "a moment of another shape": (put(torch.ones(3), *ADAM, "state", 0, "exp_avg"), "size"),
    "no moments": (put({}, *ADAM, "state"), "optimizer_states: no moments"),
    "no optimizer": (put([], "optimizer_states"), "optimizer_states: no moments"),
    "a moment missing": (drop(*ADAM, "state", 0, "exp_avg_sq"), "exp_avg_sq"),
    "a moment that is not a number": (nan(*ADAM, "state", 0, "exp_avg"), "state.0.exp_avg: a number"),
    "a weight that is not a number": (nan("state_dict", LABEL), f"state_dict.{LABEL}: a number that is not finite"),
    "a running mean that is not a number": (nan("current_model_state", LABEL), "current_model_state"),
    "a rate of text": (put("fast", *ADAM, "param_groups", 0, "lr"), "TypeError"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_state_that_does_not_fit(name, run):
    change, said = CHANGES[name]
    path = run / "last.ckpt"
    state = torch.load(path, weights_only=True)
    change(state)
    torch.save(state, path)
    told = refusal(run)
    assert "cannot be resumed from" in told
    assert said in told


@pytest.mark.parametrize("keep", [0.0, 0.1, 0.5, 0.99])
def test_a_state_that_is_cut_off(keep, run):
    data = (run / "last.ckpt").read_bytes()
    (run / "last.ckpt").write_bytes(data[: int(keep * len(data))])
    assert "not a training state" in refusal(run) or not keep


def test_a_list_in_place_of_the_state(run):
    torch.save([1], run / "last.ckpt")
    assert "is not a training state (a list)" in refusal(run)


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
