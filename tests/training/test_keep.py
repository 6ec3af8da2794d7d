"""Which epoch is kept: the best by validation images, or the last, which needs none."""

from __future__ import annotations

import json

import pytest
import torch

from scenegpi.data import open_dataset
from scenegpi.errors import OptionError
from scenegpi.models import load_model
from scenegpi.training import train
from scenegpi.training.data_split import Images
from scenegpi.training.folder import RunFolder
from scenegpi.training.run import train_graph
from training.training_cases import data_file, small_config


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def last_weights(run):
    """Of the running mean, as it stood when the run ended."""
    state = torch.load(run / "last.ckpt", weights_only=True)["state_dict"]
    return {name.removeprefix("average."): value for name, value in state.items() if name.startswith("average.")}


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
        train(small_config(path, "baseline", optim={"epochs": 3, "keep": keep}, calibrate=False), run)
        assert epoch_of(run) == epoch
        assert json.loads((run / "finished.json").read_text())["R@50"] == figure
        kept, last = load_model(run / "model").state_dict(), last_weights(run)
        assert all(torch.equal(kept[name], last[name]) for name in kept) == (keep == "last")


def test_the_last_epoch_needs_no_validation_images(tmp_path, capsys):
    graphs = list(open_dataset(data_file(tmp_path)).drop_empty())
    images = Images(graphs, [], graphs[0].vocabulary)
    config = small_config(tmp_path / "data.jsonl", "baseline", optim={"keep": "last"})
    model = train_graph(config, images, None, tmp_path / "run", False, False)
    assert set(last_weights(tmp_path / "run")) >= set(load_model(model).state_dict())
    assert json.loads((model / "metrics.json").read_text()) == {}
    assert set(json.loads((tmp_path / "run" / "finished.json").read_text())) == {"epochs", "seconds"}
    assert "R@50" not in capsys.readouterr().out
    with pytest.raises(OptionError, match=r"optim\.keep: .* there are none"):
        train_graph(small_config(tmp_path / "data.jsonl", "baseline"), images, None, tmp_path / "best", False, False)
    assert not (tmp_path / "best").exists()
