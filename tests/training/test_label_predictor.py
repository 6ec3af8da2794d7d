"""The vision stage of a run: graphs get held-out label distributions, broken photos are reported, a kill costs nothing."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from PIL import Image

from scenegpi.errors import DataError, OptionError
from scenegpi.graph import SceneGraph
from scenegpi.training import label_head, label_predictor
from scenegpi.training.data_split import Images
from scenegpi.training.label_predictor import FIGURES, STAGE, fit_stage, load_stage, stage_figures, with_label_dist
from scenegpi.training.recipes import train_config
from scenegpi.vocabulary import Vocabulary

COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (40, 60, 220)}
VOCABULARY = Vocabulary(list(COLOURS), ["near"])
BROKEN, ABSENT = 3, 5


def settings(**fit):
    values = {
        "data": {"path": "colours"},
        "model": {
            "vision": {
                "features": {"photo_size": 64},
                "head": {"hidden": 16, "dropout": 0.1, "input_dropout": 0.0},
            }
        },
        "fit": {"epochs": 25, "folds": 2, "rate": 5e-3, "batch": 16} | fit,
    }
    return train_config(values)


def labelled(config, images, folder):
    return with_label_dist(config, images, folder, load_stage(config, images.vocabulary, folder))


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """24 images to train on, one with a broken photo and one without any; 4 to validate, the last with a broken photo."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    graphs, paths = [], []
    for k in range(28):
        pixels = rng.integers(100, 140, (64, 96, 3)).astype(np.uint8)
        labels = rng.integers(0, 3, 3)
        boxes = [[32 * i, 10, 32 * i + 28, 50] for i in range(3)]
        for (x1, y1, x2, y2), label in zip(boxes, labels, strict=True):
            pixels[y1:y2, x1:x2] = COLOURS[VOCABULARY.objects[label]]
        graphs.append(SceneGraph(boxes, labels, VOCABULARY, [[0, 1, 0]], width=96, height=64, image_id=k))
        paths.append(folder / f"{k}.png")
        Image.fromarray(pixels).save(paths[-1])
    for k in (BROKEN, 27):
        paths[k].write_bytes(b"no photo")
    paths[ABSENT] = None
    return Images(graphs[:24], graphs[24:], VOCABULARY, paths[:24], paths[24:])


@pytest.fixture(scope="module")
def stage(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return folder, fit_stage(settings(), images, folder)


def test_the_stage_gives_its_figures(stage):
    folder, figures = stage
    assert figures["photos"] == 22
    assert figures["top-1"] > 0.8
    assert stage_figures(folder) == figures


def test_graphs_get_label_distributions_and_nothing_else_changes(stage, images, caplog):
    folder, figures = stage
    with caplog.at_level(logging.WARNING):
        found = labelled(settings(), images, folder)
    assert "27.png" in caplog.text
    for before, after in ((images.train, found.train), (images.validation, found.validation)):
        assert [graph.replace(label_dist=None) for graph in after] == before
    without = [graph.image_id for graph in [*found.train, *found.validation] if graph.label_dist is None]
    assert without == [BROKEN, ABSENT, 27]
    right = [(g.label_dist.argmax(1) == g.labels).mean() for g in found.train if g.label_dist is not None]
    assert np.mean(right) == pytest.approx(figures["top-1"])
    vision = load_stage(settings(), VOCABULARY, folder)
    for graph, path in zip(found.validation[:3], images.validation_photos, strict=False):
        np.testing.assert_allclose(graph.label_dist, vision.label_dist(path, graph), atol=1e-3)


def test_training_distributions_are_held_out_and_broken_photos_are_reported(images, tmp_path, caplog):
    """They are not what the final label predictor, trained on all photos, says of them."""
    with caplog.at_level(logging.WARNING):
        fit_stage(settings(epochs=2), images, tmp_path)
    assert f"{BROKEN}.png" in caplog.text
    assert len(caplog.records) == 1
    vision, found = load_stage(settings(), VOCABULARY, tmp_path), labelled(settings(), images, tmp_path)
    own = vision.label_dist(images.train_photos[0], images.train[0])
    assert np.abs(found.train[0].label_dist - own).max() > 1e-3


@pytest.mark.parametrize("kill", range(4))
def test_a_kill_at_any_moment_leaves_no_half_stage(images, tmp_path, monkeypatch, kill):
    """Between the files of a stage that replaces an older one, and while photos are read."""
    fit_stage(settings(epochs=1), images, tmp_path)
    writes, whole_file = [], label_predictor.whole_file

    def write(path, *more):
        writes.append(path)
        if len(writes) == kill:
            raise KeyboardInterrupt
        return whole_file(path, *more)

    def json(path, data):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if kill:
            patch.setattr(label_predictor, "whole_file", write)
            patch.setattr(label_predictor, "write_json", json)
        else:
            patch.setattr(label_head, "_train", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            fit_stage(settings(epochs=2), images, tmp_path)
    if kill:
        assert stage_figures(tmp_path) is None
        with pytest.raises(DataError, match="not trained yet"):
            labelled(settings(), images, tmp_path)
    else:  # nothing was replaced: the older stage still stands
        assert stage_figures(tmp_path) is not None
    figures = fit_stage(settings(epochs=2), images, tmp_path)
    assert stage_figures(tmp_path) == figures
    assert len(labelled(settings(), images, tmp_path).train) == 24
    assert sorted(path.name for path in (tmp_path / STAGE).iterdir() if path.is_file()) == [
        FIGURES,
        "held_out.safetensors",
        "vision.safetensors",
    ]


def test_what_cannot_be_fitted_is_said(images, tmp_path):
    with pytest.raises(OptionError, match=r"fit\.folds: 1 is not between 2"):
        settings(folds=1)
    with pytest.raises(DataError, match="photos of 0 training images"):
        fit_stage(settings(), images._replace(train_photos=[None] * 24), tmp_path)
    with pytest.raises(DataError, match="not trained yet"):
        labelled(settings(), images, tmp_path)
    assert stage_figures(tmp_path) is None


def test_another_data_set_is_refused(stage, images):
    folder, _ = stage
    fewer = images._replace(train=images.train[:20], train_photos=images.train_photos[:20])
    with pytest.raises(DataError, match="label_dist: shape"):
        labelled(settings(), fewer, folder)
