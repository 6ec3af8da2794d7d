"""The label head: calibrated, cross-fitted honestly, saved and loaded without trust."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch.nn import functional as F

from scenegpi import SceneGraph, Vocabulary
from scenegpi.errors import DataError, GraphError, OptionError
from scenegpi.options import override, plain
from scenegpi.vision import FitOptions, HeadConfig, LookConfig, VisionConfig, VisionModel, fit_labels, fit_vision
from scenegpi.vision.calibration import calibration_error, fit_temperature
from scenegpi.vision.fit import folds_of
from scenegpi.vision.labels import layout_of, mirrored
from vision.vision_cases import SMALL_LOOKS, VOCABULARY, colour_scene, needs_package

TINY = VisionConfig(looks=SMALL_LOOKS, head=HeadConfig(hidden=32, input_dropout=0.0, dropout=0.2))


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
    heard = []
    config = VisionConfig(looks=LookConfig(crop_size=64, photo_size=96))
    fitted = fit_vision(
        config, VOCABULARY, photos, graphs, tmp_path, folds=3, progress=lambda *given: heard.append(given)
    )
    assert fitted.figures["top-1"] > 0.9
    right = [(dist.argmax(1) == graph.labels).mean() for dist, graph in zip(fitted.held_out, graphs, strict=True)]
    assert np.mean(right) == pytest.approx(fitted.figures["top-1"])
    assert heard[-1] == ("label heads", 4, 4)
    photo, graph = colour_scene(999)
    dist = fitted.model.label_dist(fitted.model.looks(photo, graph), graph)
    assert (dist.argmax(1) == graph.labels).mean() > 0.8
    np.testing.assert_allclose(dist.sum(1), 1, atol=1e-5)


def test_the_small_backbone_learns_colours_from_scratch(dozen):
    photos, graphs = dozen
    fitted = fit_vision(TINY, VOCABULARY, photos, graphs, options=FitOptions(epochs=20, batch=16, rate=5e-3, folds=2))
    assert fitted.figures["top-1"] > 0.9
    photo, graph = colour_scene(999)
    dist = fitted.model.label_dist(fitted.model.looks(photo, graph), graph)
    assert (dist.argmax(1) == graph.labels).mean() > 0.8


def random_looks(seed=0, images=40, width=32):
    """Looks that say nothing about labels: what is held out can't be better than chance."""
    rng = np.random.default_rng(seed)
    graphs, nodes = [], []
    for _ in range(images):
        _, graph = colour_scene(int(rng.integers(1 << 30)), boxes=6)
        graphs.append(graph.replace(labels=rng.integers(0, 4, 6)))
        nodes.append(torch.from_numpy(rng.normal(size=(6, width))).half())
    return nodes, graphs


def fit_random(seed=0, **changes):
    nodes, graphs = random_looks()
    config = VisionConfig(replace(SMALL_LOOKS, crop_layers=("early",)), HeadConfig(128, dropout=0.2, input_dropout=0.1))
    with torch.device("meta"):
        width = VisionModel(config, VOCABULARY).node_width
    nodes = [F.pad(each, (0, width - each.shape[1])) for each in nodes]
    return (
        fit_labels(
            config,
            VOCABULARY,
            nodes,
            graphs,
            FitOptions(**{"epochs": 40, "batch": 64, "smoothing": 0.0, "seed": seed} | changes),
        ),
        nodes,
        graphs,
    )


@pytest.fixture(scope="module")
def chance():
    return fit_random(folds=4)


def test_held_out_predictions_are_not_memorised(chance):
    fitted, nodes, graphs = chance
    assert fitted.figures["top-1"] < 0.5
    seen = [fitted.model.head(each, torch.zeros(6, 16)).argmax(1).numpy() for each in nodes]
    assert np.mean([(a == graph.labels).mean() for a, graph in zip(seen, graphs, strict=True)]) > 0.5


def test_calibration_helps_where_confidence_is_false(chance):
    fitted, *_ = chance
    assert fitted.figures["temperature"] > 1.5
    assert fitted.figures["calibration error"] < fitted.figures["calibration error before"] / 2


def test_the_same_seed_gives_the_same_model():
    a, b, c = (fit_random(seed=seed, folds=2, epochs=2)[0] for seed in (0, 0, 1))
    assert all(
        torch.equal(x, y) for x, y in zip(a.model.state_dict().values(), b.model.state_dict().values(), strict=True)
    )
    np.testing.assert_array_equal(np.concatenate(a.held_out), np.concatenate(b.held_out))
    assert not torch.equal(a.model.head.network[-1].weight, c.model.head.network[-1].weight)


def test_training_leaves_the_random_numbers_of_others_alone():
    torch.manual_seed(5)
    want = torch.rand(3)
    torch.manual_seed(5)
    fit_random(folds=2, epochs=2)
    assert torch.equal(torch.rand(3), want)


@given(st.integers(1, 200), st.integers(1, 10), st.integers(0, 99))
def test_folds_are_even(images, folds, seed):
    sizes = np.bincount(folds_of(images, folds, seed), minlength=folds)
    assert sizes.sum() == images
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"graphs": []}, "photos"),
        ({"folds": 50}, "50 of only"),
        ({"vocabulary": Vocabulary(["a"], ["b"])}, "vocabulary"),
        ({"looks": replace(SMALL_LOOKS, nodes="roi")}, "plain crops"),
    ],
)
def test_what_cannot_be_fitted_is_said(dozen, change, said):
    photos, graphs = dozen
    config = replace(TINY, looks=change.get("looks", TINY.looks))
    with pytest.raises(GraphError, match=said):
        fit_vision(
            config,
            change.get("vocabulary", VOCABULARY),
            photos,
            change.get("graphs", graphs),
            folds=change.get("folds", 2),
        )


def test_saved_equals_loaded(tmp_path):
    from safetensors.torch import load_file, save_file

    torch.manual_seed(0)
    model = VisionModel(TINY, VOCABULARY).eval()
    model.head.temperature.fill_(1.7)
    save_file(model.state_dict(), tmp_path / "vision.safetensors")
    config = override(VisionConfig(), plain(TINY), "vision")
    assert config == TINY
    with torch.device("meta"):
        loaded = VisionModel(config, VOCABULARY)
    state = load_file(tmp_path / "vision.safetensors")
    assert {name: value.shape for name, value in state.items()} == {
        name: value.shape for name, value in loaded.state_dict().items()
    }
    assert {value.dtype for value in state.values()} == {torch.float32}
    loaded.load_state_dict(state, assign=True)
    photo, graph = colour_scene(7)
    np.testing.assert_array_equal(
        loaded.label_dist(loaded.looks(photo, graph), graph), model.label_dist(model.looks(photo, graph), graph)
    )


def test_a_model_on_the_packaged_backbone_holds_its_head_alone():
    with torch.device("meta"):
        model = VisionModel(VisionConfig(), VOCABULARY)
    assert {name.split(".")[0] for name in model.state_dict()} == {"head"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"looks": {"crop_size": 100}}, "multiple of 32"),
        ({"looks": {"crop_size": 10**6}}, "not within"),
        ({"looks": {"backbone": "vgg"}}, "none of"),
        ({"looks": {"crop_layers": ["head", "tail"]}}, "none of"),
        ({"looks": {"crop_layers": []}}, "a map to be looked at"),
        ({"head": {"hidden": -1}}, "not within"),
        ({"head": {"wings": 2}}, "no such setting"),
    ],
)
def test_settings_from_files_are_checked(data, said):
    with pytest.raises(OptionError, match=said):
        override(VisionConfig(), data, "vision")


def test_looks_of_another_model_are_refused():
    model = VisionModel(TINY, VOCABULARY)
    photo, graph = colour_scene(1)
    with pytest.raises(DataError, match="looks: shape"):
        model.label_dist(model.looks(photo, graph), graph.subset([0, 1]))


def test_no_boxes_no_labels():
    model = VisionModel(TINY, VOCABULARY)
    empty = SceneGraph(np.empty((0, 4)), [], VOCABULARY)
    assert model.label_dist(model.looks(np.zeros((9, 9, 3), np.uint8), empty), empty).shape == (0, 4)


def test_layout_by_hand_and_in_the_mirror():
    boxes, sizes = torch.tensor([[10.0, 20.0, 30.0, 60.0]]), torch.tensor([[100.0, 100.0]])
    area = 0.2 * 0.4
    expected = [0.1, 0.3, 0.4, 0.8, 0.2, 0.6, 0.2, 0.4, area, area**0.5, np.log(area) / 4, -np.log(2), 0, 0, 0, 0]
    torch.testing.assert_close(layout_of(boxes, sizes), torch.tensor([expected]).float())
    reaching = layout_of(torch.tensor([[-5.0, 50.0, 50.0, 99.5]]), sizes)
    assert reaching[0, 12:].tolist() == [1, 0, 1, 0]
    torch.testing.assert_close(mirrored(reaching), layout_of(torch.tensor([[50.0, 50.0, 105.0, 99.5]]), sizes))
    flipped = torch.tensor([[70.0, 20.0, 90.0, 60.0]])
    torch.testing.assert_close(mirrored(layout_of(boxes, sizes)), layout_of(flipped, sizes))


def test_temperature_by_brute_force():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(300, 5, generator=generator) * 4
    labels = torch.distributions.Categorical(logits=logits / 3)
    torch.manual_seed(0)
    drawn = labels.sample()
    grid = torch.linspace(0.5, 10, 2000)
    best = min(grid.tolist(), key=lambda t: float(F.cross_entropy(logits / t, drawn)))
    assert fit_temperature(logits, drawn) == pytest.approx(best, abs=0.01)
    assert fit_temperature(logits[:0], drawn[:0]) == 1.0


def test_a_few_outliers_do_not_move_the_temperature():
    logits = torch.zeros(200, 4)
    logits[:, 0] = 6.0
    labels = torch.zeros(200, dtype=torch.long)
    labels[:2] = 1  # right in 99 of 100 cases, which is what it says
    assert fit_temperature(logits, labels) == 1.0
    labels[:60] = 1
    assert fit_temperature(logits, labels) > 2


def test_calibration_error_by_hand():
    dist = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]])
    labels = torch.tensor([0, 1, 0, 0])  # half right at 0.9, all right at 0.6
    assert calibration_error(dist, labels) == pytest.approx((2 * 0.4 + 2 * 0.4) / 4, abs=1e-6)
    assert calibration_error(dist[:0], labels[:0]) == 0
