"""Photo and graph -> graph with `label_dist`: what it depends on, what it leaves alone, saved and loaded without trust."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from scenegpi import SceneGraph, Vocabulary
from scenegpi.errors import DataError, GraphError, OptionError
from scenegpi.options import override, plain
from scenegpi.vision import HeadConfig, VisionConfig, VisionModel, cached_box_features, open_photo, photos
from scenegpi.vision.labels import box_geometry, mirrored
from vision.vision_cases import TINY_FEATURES, VOCABULARY, colour_scene, needs_package, package_missing

TINY = VisionConfig(features=TINY_FEATURES, head=HeadConfig(hidden=32))


def vision_model(config: VisionConfig = TINY) -> VisionModel:
    torch.manual_seed(0)
    model = VisionModel(config, VOCABULARY).eval()
    if config is TINY and not package_missing():  # with random weights all photos look nearly the same
        model.backbone.start()
    return model


MODELS = [
    pytest.param(TINY, id="photo", marks=needs_package),
    pytest.param(VisionConfig(), id="efficientnet-lite0", marks=needs_package),
]


@pytest.mark.parametrize("config", MODELS)
@pytest.mark.parametrize("boxes", [6, 35])
def test_permuted_boxes_give_permuted_rows(config, boxes):
    """Few boxes, and more than one thread is used for."""
    photo, _ = colour_scene(1)
    rng = np.random.default_rng(boxes)
    corners = np.sort(rng.uniform(-10, 130, (boxes, 2, 2)), axis=1).reshape(boxes, 4)
    graph = SceneGraph(corners, rng.integers(0, 4, boxes), VOCABULARY, width=160, height=120)
    model = vision_model(config)
    rows = model.label_dist(photo, graph)
    for _ in range(3):
        order = rng.permutation(boxes)
        np.testing.assert_allclose(model.label_dist(photo, graph.permute(order)), rows[order], atol=1e-5)


@pytest.mark.parametrize("config", MODELS)
def test_another_photo_gives_other_labels(config):
    photo, graph = colour_scene(2)
    model = vision_model(config)
    noise = np.random.default_rng(0).integers(0, 255, photo.shape).astype(np.uint8)
    found = [model.label_dist(each, graph) for each in (photo, noise, np.zeros_like(photo))]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(found[a] - found[b]).max() > 1e-3


def test_every_form_of_a_photo_gives_the_same(tmp_path):
    photo, graph = colour_scene(3)
    image = Image.fromarray(photo)
    image.save(tmp_path / "photo.png")
    model = vision_model()
    plain_array = model.label_dist(photo, graph)
    clear = np.concatenate([photo, np.full((*photo.shape[:2], 1), 255, np.uint8)], axis=2)
    for form in (image, tmp_path / "photo.png", str(tmp_path / "photo.png"), clear, photo[:, ::-1][:, ::-1]):
        np.testing.assert_allclose(model.label_dist(form, graph), plain_array, atol=1e-5)


def test_boxes_are_scaled_to_the_photo():
    photo, graph = colour_scene(4)
    model = vision_model()
    half = graph.replace(boxes=graph.boxes / 2, width=graph.width // 2, height=graph.height // 2)
    np.testing.assert_allclose(model.label_dist(photo, half), model.label_dist(photo, graph), atol=1e-5)


@pytest.mark.parametrize("given", [True, False])
def test_boxes_follow_a_large_file_that_is_read_smaller(tmp_path, monkeypatch, given):
    photo, graph = colour_scene(8)
    large = np.asarray(Image.fromarray(photo).resize((640, 480), Image.Resampling.NEAREST))
    Image.fromarray(large).save(tmp_path / "large.png")
    boxes = graph.replace(boxes=graph.boxes * 4, width=640 if given else None, height=480 if given else None)
    model = vision_model()
    whole = model.box_features(tmp_path / "large.png", boxes).float()
    monkeypatch.setattr(photos, "MOST_PIXELS", photo.shape[0] * photo.shape[1])
    assert open_photo(tmp_path / "large.png").shape == photo.shape
    smaller = model.box_features(tmp_path / "large.png", boxes).float()
    likeness = torch.nn.functional.cosine_similarity(whole, smaller)
    assert bool((likeness > 0.95).all()), likeness


def test_cached_features_give_the_same_labels(tmp_path):
    photo, graph = colour_scene(5)
    Image.fromarray(photo).save(tmp_path / "photo.png")
    model = vision_model()
    for _ in range(2):  # computed, then read
        features = cached_box_features(model.extractor, tmp_path / "photo.png", graph, tmp_path / "cache")
        np.testing.assert_allclose(model.label_dist_of(features, graph), model.label_dist(photo, graph), atol=1e-3)


def test_labels_are_added_and_nothing_else_changes():
    photo, graph = colour_scene(6)
    graph = graph.replace(relations=[[0, 1, 0]], image_id=7, file="a.jpg", scores=np.full(len(graph), 0.5))
    model = vision_model().train()
    found = model.add_labels(photo, graph)
    assert model.training
    np.testing.assert_allclose(found.label_dist, model.label_dist(photo, graph), atol=1e-5)
    np.testing.assert_allclose(found.label_dist.sum(1), 1, atol=1e-5)
    assert found.replace(label_dist=None) == graph
    other = SceneGraph(graph.boxes, [0] * len(graph), Vocabulary(["a"], ["near"]))
    with pytest.raises(GraphError, match="vocabulary"):
        model.add_labels(photo, other)


def test_the_temperature_softens_and_keeps_the_order():
    photo, graph = colour_scene(7)
    model = vision_model()
    before = model.label_dist(photo, graph)
    model.head.temperature.fill_(3.0)
    after = model.label_dist(photo, graph)
    assert (after.max(1) < before.max(1)).all()
    assert (after.argmax(1) == before.argmax(1)).all()


def test_features_of_other_boxes_are_refused():
    model = vision_model()
    photo, graph = colour_scene(1)
    with pytest.raises(DataError, match="features: shape"):
        model.label_dist_of(model.box_features(photo, graph), graph.subset([0, 1]))


def test_no_boxes_no_labels():
    empty = SceneGraph(np.empty((0, 4)), [], VOCABULARY)
    assert vision_model().label_dist(np.zeros((9, 9, 3), np.uint8), empty).shape == (0, 4)


def test_saved_equals_loaded(tmp_path):
    from safetensors.torch import load_file, save_file

    model = vision_model()
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
    np.testing.assert_allclose(loaded.label_dist(photo, graph), model.label_dist(photo, graph), atol=1e-5)


def test_a_model_on_the_packaged_backbone_holds_its_head_alone():
    with torch.device("meta"):
        model = VisionModel(VisionConfig(), VOCABULARY)
    assert {name.split(".")[0] for name in model.state_dict()} == {"head"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"features": {"photo_size": 100}}, "multiple of 32"),
        ({"features": {"photo_size": 10**6}}, "not between"),
        ({"features": {"backbone": "vgg"}}, "not one of"),
        ({"head": {"hidden": -1}}, "not between"),
        ({"head": {"wings": 2}}, "no such setting"),
    ],
)
def test_settings_from_files_are_checked(data, said):
    with pytest.raises(OptionError, match=said):
        override(VisionConfig(), data, "vision")


def test_geometry_by_hand_and_in_the_mirror():
    boxes, sizes = torch.tensor([[10.0, 20.0, 30.0, 60.0]]), torch.tensor([[100.0, 100.0]])
    area = 0.2 * 0.4
    expected = [0.1, 0.3, 0.4, 0.8, 0.2, 0.6, 0.2, 0.4, area, area**0.5, np.log(area) / 4, -np.log(2), 0, 0, 0, 0]
    torch.testing.assert_close(box_geometry(boxes, sizes), torch.tensor([expected]).float())
    reaching = box_geometry(torch.tensor([[-5.0, 50.0, 50.0, 99.5]]), sizes)
    assert reaching[0, 12:].tolist() == [1, 0, 1, 0]
    torch.testing.assert_close(mirrored(reaching), box_geometry(torch.tensor([[50.0, 50.0, 105.0, 99.5]]), sizes))
    flipped = torch.tensor([[70.0, 20.0, 90.0, 60.0]])
    torch.testing.assert_close(mirrored(box_geometry(boxes, sizes)), box_geometry(flipped, sizes))
