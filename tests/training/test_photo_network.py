"""The photo network from photos to a model that finds boxes: a tiny run, killed and resumed, and what it predicts."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from scenegpi.cli import _behave
from scenegpi.data import open_dataset
from scenegpi.errors import DataError
from scenegpi.files import read_object
from scenegpi.models import load_model
from scenegpi.models.calibration import Calibration, Calibrations
from scenegpi.models.checkpoint import save_model
from scenegpi.prediction import Predictor
from scenegpi.training import photo_network, resume, train
from scenegpi.training.config import stored_config
from scenegpi.training.data_split import open_images
from scenegpi.training.finder_calibration import fit_finder
from scenegpi.training.label_head import folds_of
from scenegpi.training.label_predictor import stage_figures
from scenegpi.training.photo_batches import PhotoBatch, TrainingPhotos, jittered
from scenegpi.training.photo_module import PhotoModule
from scenegpi.training.photo_sets import LabelSets, own_photos
from scenegpi.training.recipes import train_config
from scenegpi.vision.efficientnet import packaged_network
from training.coloured import write_scenes

pytestmark = pytest.mark.filterwarnings("ignore:.*does not have many workers.*")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    try:
        packaged_network()
    except Exception as error:
        pytest.skip(str(error))
    return write_scenes(tmp_path_factory.mktemp("photos"), images=22, photos=20)


def settings(data, **photo):
    values = {
        "data": {"path": str(data / "data.jsonl"), "photos": str(data / "images"), "validation": 2},
        "model": {
            "vision": {
                "features": {
                    "backbone": "photo",
                    "photo_size": 64,
                    "mirror": False,
                },
                "head": {"hidden": 16},
                "second_look": True,
                "finder": {"floor": 0.01},
            },
            "baseline": {"hidden": 16, "embedding": 8, "rank": 4},
            "network": {"hidden": 12, "phi": 10, "alpha": 9},
        },
        "photo": {
            "epochs": 1,
            "whole_epochs": 1,
            "batch": 4,
            "sizes": [64],
            "other": {"path": str(data / "data.jsonl"), "photos": str(data / "images"), "limit": 4},
            **photo,
        },
        "baseline": {"epochs": 1},
        "context": {"epochs": 1},
        "optim": {"batch": 6, "warmup": 1},
    }
    return train_config(values)


def settings_of(folder):
    return stored_config(read_object(folder / "config.json"))


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "photo"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(photo_network, "PART", 4)  # several parts in a pass
        train(settings(data), folder)
    return folder


def test_the_model_finds_names_and_relates(run, data):
    predictor = Predictor(run / "model")
    photo = data / "images" / "3.png"
    found = predictor(photo)
    assert found.width == 128
    prediction = next(predictor.stream([photo]))
    assert prediction.photo_read
    assert prediction.graph == found
    given = open_dataset(data / "data.jsonl")[3]
    named = predictor(photo, given.boxes)
    assert len(named) == len(given)


def test_scores_of_found_boxes_hold_the_chance_that_there_is_something(run, data):
    predictor = Predictor(run / "model")
    graph, task = predictor.prepare(data / "images" / "4.png")
    assert task == "sgcls"
    assert graph.scores is not None
    found = predictor(data / "images" / "4.png")
    assert (found.scores <= graph.scores + 1e-6).all()


def test_saved_is_loaded(run, data):
    models = [load_model(run / "model") for _ in range(2)]
    photo = data / "images" / "5.png"
    first, second = (Predictor(model)(photo) for model in models)
    assert first == second


def test_held_out_distributions_come_from_the_other_half(run):
    from safetensors.torch import load_file

    rows = load_file(run / "vision" / "held_out.safetensors")["label_dist"]
    assert bool(torch.isfinite(rows).all())
    assert all((run / "vision" / name).is_dir() for name in ("half0", "half1", "whole"))
    assert not list((run / "vision").rglob("last.ckpt"))


def test_every_step_trains_where_it_is_told_to(data, tmp_path, monkeypatch):
    devices = {}

    def no_training(vision, photos, sets, options, folder, *, machine, **_):
        devices[folder.name] = machine.device

    monkeypatch.setattr(photo_network, "fit_network", no_training)
    monkeypatch.setattr(photo_network, "held_out_logits", lambda *_, **__: {})
    monkeypatch.setattr(photo_network, "calibrated", lambda *_: None)
    config = replace(settings(data), device="cuda")
    images = open_images(config.data, photos=True)
    some = images.train_photos[:4], images.train[:4]
    photo_network.fit_photo_network(config, config.model.vision, images.vocabulary, *some, tmp_path)
    assert devices == {"half0": "cuda", "half1": "cuda", "whole": "cuda"}


def test_a_network_that_is_trained_on_leaves_the_graph_model_alone(run, data, tmp_path):
    config = replace(settings(data, continued=True), start=str(run / "model"))
    made = load_model(train(config, tmp_path / "on"))
    before = load_model(run / "model")
    for name, value in before.network.state_dict().items():
        torch.testing.assert_close(made.network.state_dict()[name], value, msg=name)
    old, new = before.vision.state_dict(), made.vision.state_dict()
    changed = {name.split(".")[1] for name in old if not torch.equal(old[name], new[name])}
    assert {"lite0", "naming", "finding", "finder", "look", "network"} <= changed
    kept = [name for name in old if ".stem." in name or ".stages.0." in name]
    assert kept
    assert all(torch.equal(old[name], new[name]) for name in kept)
    assert made.vision.config.finder.weights != before.vision.config.finder.weights  # fitted to what it says now
    assert Predictor(made)(data / "images" / "3.png").width == 128


def test_a_run_that_starts_from_a_photo_model_takes_its_network_and_trains_the_halves(run, data, tmp_path):
    start, folder, model = str(tmp_path / "start"), tmp_path / "row", load_model(run / "model")
    model.vision.head.temperature.fill_(3.0)
    save_model(model, start, {}, {})
    made = load_model(train(replace(settings(data), start=start), folder))
    before, after = (model.vision.state_dict() for model in (load_model(start), made))
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert {path.name for path in (folder / "vision").iterdir() if path.is_dir()} == {"features", "half0", "half1"}
    assert stage_figures(folder)["temperature"] != 3.0  # that of the halves
    assert read_object(folder / "model" / "config.json")["training"]["baseline"] == "start"  # without its path
    wider = settings(data)
    wider = replace(wider, start=start, model=replace(wider.model, vision=replace(wider.model.vision, everyday=True)))
    with pytest.raises(DataError, match=r"model\.vision: its settings differ"):
        train(wider, tmp_path / "other")
    assert not (tmp_path / "other" / "vision").exists()


def test_of_a_network_that_is_trained_on_the_mean_is_kept(run, data, tmp_path):
    folder = tmp_path / "on"
    made = load_model(
        train(replace(settings(data, continued=True, before=0.25), start=str(run / "model")), folder)
    ).vision.state_dict()
    old = load_model(run / "model").vision.state_dict()
    new = photo_network.read_tensors(folder / "vision" / "whole" / photo_network.WEIGHTS, old)
    for name in ("backbone.finder.out.last.weight", "head.network.1.weight"):
        torch.testing.assert_close(made[name], 0.75 * new[name] + 0.25 * old[name])
        assert not torch.equal(old[name], new[name])


def test_a_network_that_is_trained_on_gets_the_calibration_that_is_given(run, data, tmp_path, monkeypatch):
    monkeypatch.setattr(photo_network, "fit_network", lambda *_, **__: None)
    given = Calibrations(sgcls=Calibration(labels=2.0))
    config = replace(settings(data, continued=True), start=str(run / "model"), calibration=given)
    assert load_model(train(config, tmp_path / "on")).calibration == given


def test_a_validation_photo_that_cannot_be_read_costs_that_photo(run, data, tmp_path, caplog):
    images = open_images(settings_of(run).data, photos=True)
    photos, graphs = photo_network.with_photos(images.validation_photos, images.validation)
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"no picture")

    def calibrated(photos, graphs):
        model = load_model(run / "model")
        figures = photo_network.calibrate_model(model, model.vision, photos, graphs)
        return figures, model.config, model.calibration

    assert calibrated([broken, *photos], [graphs[0], *graphs]) == calibrated(photos, graphs)
    assert "broken.png" in caplog.text
    assert calibrated([broken], graphs[:1])[0] == {}
    vision = load_model(run / "model").vision
    assert fit_finder(vision, [(broken, graphs[0])]) == vision.config.finder


def test_photos_of_another_annotation_do_not_teach_how_often_a_label_occurs(data):
    config, vocabulary = settings(data), open_dataset(data / "data.jsonl").vocabulary
    vision = photo_network.new_vision(config.model.vision, vocabulary, 0)
    sets = LabelSets(vocabulary.objects, vocabulary.objects, vocabulary.objects)
    module = PhotoModule(vision, sets, config.photo, 10)
    module.log_dict, module._trainer = lambda *_, **__: None, SimpleNamespace(world_size=1)
    boxes = torch.tensor([[0.1, 0.1, 0.6, 0.7]])

    def gradient(row):
        torch.manual_seed(0)
        module.zero_grad()
        photo = torch.full((1, 3, 64, 64), 90, dtype=torch.uint8)
        batch = PhotoBatch(photo, boxes, torch.tensor([row]), torch.tensor([0]), torch.tensor([0]), torch.ones(1, 2))
        module.training_step(batch, 0).backward()
        return module.frequency.grad

    assert gradient(sets.other[1]).abs().sum() > 0
    for own in (1, sets.alone[1]):
        grad = gradient(own)
        assert grad is None or not grad.any()


def test_what_a_half_said_of_the_others_is_kept(run, monkeypatch):
    vision = load_model(run / "model").vision
    graphs = open_images(settings_of(run).data, photos=True).train
    file = run / "vision" / "half1" / photo_network.HELD_OUT
    monkeypatch.setattr(photo_network, "box_logits", None)  # nothing is computed anew
    others = np.flatnonzero(folds_of(18, 2, 0) == 1).tolist()
    kept = photo_network.held_out_logits(vision, others, [], graphs, file)
    assert [len(kept[i]) for i in others] == [len(graphs[i]) for i in others]
    with pytest.raises(DataError, match=r"held_out\.safetensors: logits: .*shape"):
        photo_network.held_out_logits(vision, others[1:], [], graphs, file)


def test_weights_that_are_read_back_are_laid_out_as_they_were_trained(data, tmp_path):
    config = settings(data)
    made = [
        photo_network.new_vision(config.model.vision, open_dataset(data / "data.jsonl").vocabulary, 0) for _ in "ab"
    ]
    photo_network.save_weights(made[0], tmp_path / photo_network.WEIGHTS)
    read = photo_network.fit_network(made[1], [], None, config.photo, tmp_path)
    weights = [each for each in read.backbone.parameters() if each.dim() == 4]
    assert len(weights) > 10
    assert all(each.is_contiguous(memory_format=torch.channels_last) for each in weights)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, None)])
def test_a_signal_while_the_network_trains_ends_the_command_as_elsewhere(data, tmp_path, monkeypatch, number, code):
    """Lightning makes an exit code of its own of what our handlers raise."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE)}
    monkeypatch.setattr(photo_network.PhotoModule, "training_step", lambda *_: os.kill(os.getpid(), number))
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in its background
        _behave()
        with pytest.raises((SystemExit, KeyboardInterrupt)) as stopped:
            train(settings(data), tmp_path / "run")
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert getattr(stopped.value, "code", None) == code
    assert not list((tmp_path / "run").rglob(".*"))  # neither locked nor half-written


def test_a_killed_run_ends_where_an_undisturbed_one_does(run, data, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    real = photo_network._KeepState.on_train_epoch_end
    monkeypatch.setattr(photo_network, "PART", 4)  # as in `run`: the kill comes in the middle of a pass

    def stop(self, trainer, module):
        real(self, trainer, module)
        if self.folder.name == "half1":
            raise Killed

    monkeypatch.setattr(photo_network._KeepState, "on_train_epoch_end", stop)
    folder = tmp_path / "killed"
    with pytest.raises(Killed):
        train(settings(data), folder)
    monkeypatch.setattr(photo_network._KeepState, "on_train_epoch_end", real)
    resume(folder)
    first, second = (load_model(each / "model").state_dict() for each in (run, folder))
    for name, value in first.items():
        if not name.startswith("vision."):
            continue  # what is trained on its answers differs by what a last bit of them makes of the first steps
        torch.testing.assert_close(value, second[name], rtol=1e-3, atol=1e-4, msg=name)


def test_photos_of_an_epoch_depend_on_seed_epoch_and_number_alone(data):
    dataset = open_dataset(data / "data.jsonl", images=data / "images")
    paths = [dataset.image_path(i) for i in range(6)]
    photos = TrainingPhotos(own_photos(paths, [dataset[i] for i in range(6)]), (64,), seed=1)
    again = TrainingPhotos(own_photos(paths, [dataset[i] for i in range(6)]), (64,), seed=1)
    keys = [(0, i) for i in range(6)]
    for a, b in zip(photos[keys], again[keys], strict=True):
        assert torch.equal(a, b)
    assert not np.array_equal(photos.seen(64, 0, 0)[0], photos.seen(64, 1, 0)[0])


def test_boxes_follow_the_photo(data):
    """What is inside a box keeps its colour, however the photo is mirrored and zoomed."""
    dataset = open_dataset(data / "data.jsonl", images=data / "images")
    paths = [dataset.image_path(i) for i in range(8)]
    photos = TrainingPhotos(own_photos(paths, [dataset[i] for i in range(8)]), (128,), seed=0)
    seen = right = 0
    for epoch in range(3):
        for i in range(8):
            pixels, boxes, kept = photos.seen(128, epoch, i)
            for (x1, y1, x2, y2), label in zip((boxes * 128).tolist(), photos.photos[i].rows[kept], strict=True):
                x, y = (x1 + x2) / 2, (y1 + y2) / 2
                patch = pixels[int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2].mean((0, 1))
                seen += 1
                right += int(patch.argmax()) == label
    assert seen > 30
    assert right > 0.75 * seen  # some squares lie on others


def test_jitter_stays_near_and_inside():
    boxes = torch.tensor([[0.0, 0.0, 0.5, 0.5], [0.2, 0.3, 0.9, 1.0]])
    moved = jittered(boxes, 0.1)
    assert bool(((moved >= 0) & (moved <= 1)).all())
    assert bool(((moved - boxes).abs() <= 0.1 * 0.7 + 1e-6).all())


def test_a_photo_that_cannot_be_read_is_left_out(data, tmp_path, caplog):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no photo")
    dataset = open_dataset(data / "data.jsonl", images=data / "images")
    photos = TrainingPhotos(own_photos([bad], [dataset[0]]), (64,), seed=0)
    batch = photos[[(0, 0)]]
    assert batch.photos.shape == (1, 3, 64, 64)
    assert len(batch.boxes) == len(batch.rows) == 0
    assert "left out" in caplog.text
