"""Training the label head: it learns, it is cross-fitted honestly, calibrated, and repeatable."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from scenegpi import Vocabulary
from scenegpi.errors import GraphError
from scenegpi.training import FitOptions, fit_vision, label_head
from scenegpi.training.label_head import folds_of
from scenegpi.vision import BoxFeatureConfig, HeadConfig, VisionConfig
from vision.vision_cases import TINY_FEATURES, VOCABULARY, colour_scene, needs_package

TINY = VisionConfig(features=TINY_FEATURES, head=HeadConfig(hidden=32, input_dropout=0.0, dropout=0.2))


@pytest.fixture(scope="module")
def dozen(tmp_path_factory):
    """A dozen photos on disk, and their graphs."""
    folder = tmp_path_factory.mktemp("dozen")
    scenes = [colour_scene(100 + k, boxes=9) for k in range(12)]
    for k, (photo, _) in enumerate(scenes):
        Image.fromarray(photo).save(folder / f"{k}.png")
    return [folder / f"{k}.png" for k in range(12)], [graph for _, graph in scenes]


@needs_package
def test_colours_are_learned_from_a_dozen_photos(dozen, tmp_path):
    photos, graphs = dozen
    config = VisionConfig(features=BoxFeatureConfig(photo_size=96))
    fitted = fit_vision(config, VOCABULARY, photos, graphs, tmp_path, options=FitOptions(folds=3))
    assert fitted.figures["top-1"] > 0.9
    right = [(dist.argmax(1) == graph.labels).mean() for dist, graph in zip(fitted.held_out, graphs, strict=True)]
    assert np.mean(right) == pytest.approx(fitted.figures["top-1"])
    photo, graph = colour_scene(999)
    dist = fitted.model.label_dist(photo, graph)
    assert (dist.argmax(1) == graph.labels).mean() > 0.8
    np.testing.assert_allclose(dist.sum(1), 1, atol=1e-5)


def fit_chance(seed=0, **changes):
    """Features that say nothing about labels: held-out predictions cannot be better than chance."""
    config = VisionConfig(BoxFeatureConfig(mirror=False), HeadConfig(128, dropout=0.2))
    rng = np.random.default_rng(0)
    graphs = [colour_scene(k, boxes=6)[1].replace(labels=rng.integers(0, 4, 6)) for k in range(40)]
    features = {k: torch.from_numpy(rng.normal(size=(6, 2832))).half() for k in range(40)}
    options = FitOptions(**{"epochs": 40, "batch": 64} | changes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_head, "cached_box_features", lambda extractor, photo, graph, cache: features[photo])
        return fit_vision(config, VOCABULARY, range(40), graphs, options=options, seed=seed), features, graphs


@pytest.fixture(scope="module")
def chance():
    return fit_chance(folds=2, epochs=25)


def test_held_out_predictions_are_not_memorised(chance):
    fitted, features, graphs = chance
    assert fitted.figures["top-1"] < 0.5
    own = [fitted.model.label_dist_of(features[k], graph).argmax(1) for k, graph in enumerate(graphs)]
    assert np.mean([(a == graph.labels).mean() for a, graph in zip(own, graphs, strict=True)]) > 0.5


def test_calibration_helps_where_confidence_is_false(chance):
    fitted, *_ = chance
    assert fitted.figures["temperature"] > 1.5
    assert fitted.figures["calibration error"] < fitted.figures["calibration error before"] / 2


def test_the_same_seed_gives_the_same_model():
    a, b, c = (fit_chance(seed=seed, folds=2, epochs=2)[0] for seed in (0, 0, 1))
    for name, value in a.model.state_dict().items():
        torch.testing.assert_close(b.model.state_dict()[name], value)
    np.testing.assert_allclose(np.concatenate(a.held_out), np.concatenate(b.held_out), atol=1e-5)
    weights = [each.model.head.network[-1].weight for each in (a, c)]
    assert float((weights[0] - weights[1]).detach().abs().max()) > 1e-3


def test_training_leaves_the_random_numbers_of_others_alone():
    torch.manual_seed(5)
    want = torch.rand(3)
    torch.manual_seed(5)
    fit_chance(folds=2, epochs=2)
    assert torch.equal(torch.rand(3), want)


def test_a_photo_that_cannot_be_read_is_reported_and_left_out(dozen, tmp_path, caplog):
    photos, graphs = dozen
    (tmp_path / "broken.png").write_bytes(b"no photo")
    photos = [photos[0], tmp_path / "broken.png", *photos[1:]]
    graphs = [graphs[0], graphs[0], *graphs[1:]]
    quick = FitOptions(epochs=1, folds=2)
    fitted = fit_vision(TINY, VOCABULARY, photos, graphs, options=quick)
    assert "broken.png" in caplog.text
    assert [None if dist is None else len(dist) for dist in fitted.held_out] == [9, None, *[9] * 11]


@pytest.mark.parametrize("epochs", [1, 10])
def test_any_number_of_steps(epochs):
    fitted, *_ = fit_chance(folds=2, epochs=epochs, batch=10_000)
    assert all(bool(torch.isfinite(value).all()) for value in fitted.model.state_dict().values())


@given(st.integers(1, 200), st.integers(1, 10), st.integers(0, 99))
def test_folds_are_even(images, folds, seed):
    sizes = np.bincount(folds_of(images, folds, seed), minlength=folds)
    assert sizes.sum() == images
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"graphs": []}, "photos"),
        ({"folds": 50}, "50, but only"),
        ({"vocabulary": Vocabulary(["a"], ["b"])}, "vocabulary"),
    ],
)
def test_what_cannot_be_fitted_is_said(dozen, change, said):
    photos, graphs = dozen
    with pytest.raises(GraphError, match=said):
        fit_vision(
            TINY,
            change.get("vocabulary", VOCABULARY),
            photos,
            change.get("graphs", graphs),
            options=FitOptions(folds=change.get("folds", 2)),
        )
