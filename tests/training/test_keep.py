"""Which epoch is kept: the best by validation images, or the last, which needs none."""

from __future__ import annotations

import json

import pytest
import torch

from scenegpi.errors import OptionError
from scenegpi.models import load_model
from scenegpi.training import train
from scenegpi.training.folder import RunFolder
from training.training_cases import data_file, small_config


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def last_weights(run):
    """The running mean, as it stood when the run ended."""
    state = torch.load(run / "last.ckpt", weights_only=True)["state_dict"]
    return {name.removeprefix("model."): value for name, value in state.items() if name.startswith("model.")}


def epoch_of(run):
    (entry,) = json.loads((run / "model" / "metrics.json").read_text()).values()
    return entry["epoch"]


def test_the_last_epoch_is_kept_however_it_scores(tmp_path, monkeypatch):
    path, told = data_file(tmp_path), iter([90.0, 10.0, 20.0] * 2)
    plain_end = RunFolder.on_train_epoch_end

    def worse_and_worse(self, trainer, module):
        trainer.callback_metrics["R@50"] = torch.tensor(next(told))
        plain_end(self, trainer, module)

    monkeypatch.setattr(RunFolder, "on_train_epoch_end", worse_and_worse)
    for keep, epoch, figure in (("best", 1, 90.0), ("last", 3, 20.0)):
        run = tmp_path / keep
        train(small_config(path, "baseline", epochs=3, optim={"keep": keep}), run)
        assert epoch_of(run) == epoch
        assert json.loads((run / "finished.json").read_text())["R@50"] == figure
        kept, last = load_model(run / "model").state_dict(), last_weights(run)
        assert all(torch.equal(kept[name], last[name]) for name in kept) == (keep == "last")


def test_the_last_epoch_needs_no_validation_images(tmp_path, capsys):
    path = data_file(tmp_path)
    config = small_config(path, data={"validation": 0}, optim={"keep": "last"})
    model = train(config, tmp_path / "run")
    assert set(last_weights(tmp_path / "run")) >= set(load_model(model).state_dict())
    assert json.loads((model / "metrics.json").read_text()) == {}
    assert set(json.loads((tmp_path / "run" / "finished.json").read_text())) == {"epochs", "seconds"}
    assert "R@50" not in capsys.readouterr().out
    with pytest.raises(OptionError, match=r"optim\.keep: .* there are none"):
        train(small_config(path, data={"validation": 0}), tmp_path / "best")
    assert not list((tmp_path / "best").iterdir())  # the folder can be used again


def test_without_a_mean_the_weights_themselves_are_kept(tmp_path):
    run = tmp_path / "run"
    train(small_config(data_file(tmp_path), "baseline", epochs=2, optim={"keep": "last", "average": 0.0}), run)
    kept, last = load_model(run / "model").state_dict(), last_weights(run)
    assert all(torch.equal(kept[name], last[name]) for name in kept)


def test_half_precision_is_for_the_finished_model(tmp_path):
    path = data_file(tmp_path)
    for half in (False, True):
        train(small_config(path, half=half), tmp_path / str(half))
    sizes = {
        (half, stage): (tmp_path / str(half) / stage / "model" / "model.safetensors").stat().st_size
        for half in (False, True)
        for stage in (".", "baseline")
    }
    assert sizes[True, "."] < 0.8 * sizes[False, "."]
    assert sizes[True, "baseline"] == sizes[False, "baseline"]
