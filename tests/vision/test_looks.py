"""Looks: the right pixels, any boxes, any order, in chunks or at once, cached or fresh."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from scenegpi import SceneGraph
from scenegpi.errors import DataError
from scenegpi.features.batch import SceneBatch
from scenegpi.vision import LookConfig, LookExtractor, cache, looks, open_photo, photo_boxes, photo_looks
from scenegpi.vision.backbone import load_backbone
from scenegpi.vision.crops import clipped, cut_crops, shrink, with_margin
from vision.vision_cases import SMALL_LOOKS, VOCABULARY, colour_scene, needs_package

CONFIGS = [
    SMALL_LOOKS,
    replace(SMALL_LOOKS, nodes="roi", roi_layers=("middle", "head"), roi_bins=2),
    replace(SMALL_LOOKS, nodes="both", crop_layers=("middle", "head"), flip=True, scene=True, square=True),
    replace(SMALL_LOOKS, pair_layers=(), mask_size=0),
]


def extractor(config: LookConfig) -> LookExtractor:
    torch.manual_seed(3)
    return LookExtractor(config, load_backbone(config.backbone).eval())


def close(a, b):
    torch.testing.assert_close(a.float(), b.float(), atol=2e-3, rtol=2e-3)  # half precision


@pytest.mark.parametrize("config", CONFIGS)
def test_shapes(config):
    photo, graph = colour_scene(0)
    look = extractor(config)
    for n in (0, 1, 2, len(graph)):
        found = look(photo, graph.boxes[:n])
        assert found.nodes.shape == (n, look.node_width)
        assert found.pairs.shape == (n * max(n - 1, 0), look.pair_width)
        assert found.nodes.dtype == found.pairs.dtype == torch.half
        assert len(found) == n


@pytest.mark.parametrize("config", CONFIGS)
@settings(max_examples=5)
@given(order=st.permutations(range(6)))
def test_another_order_of_boxes_gives_the_same_looks_in_that_order(config, order):
    photo, graph = colour_scene(1)
    look = extractor(config)
    plain, turned = look(photo, graph.boxes), look(photo, graph.permute(order).boxes)
    close(turned.nodes, plain.nodes[list(order)])
    n = len(graph)
    number = {(i, j): i * (n - 1) + j - (j > i) for i in range(n) for j in range(n) if i != j}
    pairs = SceneBatch.of([graph]).edge_index.T.tolist()
    close(turned.pairs, plain.pairs[[number[order[i], order[j]] for i, j in pairs]])


@pytest.mark.parametrize("config", CONFIGS)
def test_chunks_change_nothing(config, monkeypatch):
    photo, graph = colour_scene(2, boxes=9)
    whole = extractor(config)(photo, graph.boxes)
    monkeypatch.setattr(looks, "CROP_CHUNK", 2)
    monkeypatch.setattr(looks, "ROI_CHUNK", 3)
    parts = extractor(config)(photo, graph.boxes)
    close(parts.nodes, whole.nodes)
    close(parts.pairs, whole.pairs)


def test_masks_show_who_is_subject_and_lie_in_the_union():
    config = replace(SMALL_LOOKS, pair_layers=(), mask_size=2)
    found = extractor(config)(np.zeros((40, 40, 3), np.uint8), np.array([[0.0, 0, 20, 40], [20, 0, 40, 40]]))
    left, right = [1.0, 0, 1, 0], [0.0, 1, 0, 1]
    assert found.pairs.tolist() == [left + right, right + left]


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 90), st.integers(1, 90))
def test_boxes_anywhere_give_finite_looks_and_crops_inside_the_photo(seed, height, width):
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.uniform(-150, 250, (5, 2, 2)), axis=1).reshape(5, 4)
    corners[0] = [10, 10, 10, 10]  # no area
    corners[1] = [-50, -50, -20, -20]  # wholly outside
    corners[2] = [0, 0, 1e7, 1e7]
    inside = clipped(corners, width, height)
    assert (inside >= 0).all()
    assert (inside <= [width, height] * 2).all()
    assert (inside[:, 2:] - inside[:, :2] >= np.minimum([width, height], 2) - 1e-9).all()
    photo = rng.integers(0, 255, (height, width, 3)).astype(np.uint8)
    found = extractor(CONFIGS[2])(photo, corners)
    assert bool(torch.isfinite(found.nodes).all())
    assert bool(torch.isfinite(found.pairs).all())


def test_crops_show_the_box():
    photo, graph = colour_scene(3)
    crops = cut_crops(Image.fromarray(photo), graph.boxes, 32)
    assert crops.shape == (len(graph), 3, 32, 32)
    for crop, box in zip(crops, graph.boxes.astype(int), strict=True):
        patch = photo[box[1] : box[3], box[0] : box[2]]
        np.testing.assert_allclose(crop.float().mean((1, 2)), patch.mean((0, 1)), atol=4)


def test_margin_and_square_by_hand():
    box = np.array([[10.0, 20, 30, 24]])
    assert with_margin(box, 0.5, square=False).tolist() == [[0, 18, 40, 26]]
    assert with_margin(box, 0.0, square=True).tolist() == [[10, 12, 30, 32]]


def test_the_whole_photo_keeps_its_shape():
    image, scale = shrink(Image.new("RGB", (100, 50)), 64)
    assert image.shape == (3, 32, 64)
    assert scale == (0.64, 0.64)
    image, scale = shrink(Image.new("RGB", (1000, 1)), 64)
    assert image.shape == (3, 32, 64)
    assert scale == (0.064, 1.0)


def test_three_hundred_boxes_in_bounded_memory(monkeypatch):
    config = replace(SMALL_LOOKS, pair_layers=("last",), mask_size=2)
    rng = np.random.default_rng(0)
    boxes = np.sort(rng.uniform(0, 200, (300, 2, 2)), axis=1).reshape(300, 4)
    seen = []
    align = looks.roi_align
    monkeypatch.setattr(
        looks, "roi_align", lambda maps, boxes, *more: seen.append(len(boxes)) or align(maps, boxes, *more)
    )
    found = extractor(config)(rng.integers(0, 255, (200, 200, 3)).astype(np.uint8), boxes)
    assert found.pairs.shape == (300 * 299, 96 + 8)
    assert max(seen) <= looks.ROI_CHUNK
    assert sum(seen) == 300 * 299 // 2


@pytest.fixture
def photo_file(tmp_path):
    photo, graph = colour_scene(4)
    Image.fromarray(photo).save(tmp_path / "photo.png")
    return tmp_path / "photo.png", graph


def test_cached_equals_fresh(tmp_path, photo_file, monkeypatch):
    path, graph = photo_file
    look = extractor(SMALL_LOOKS)
    fresh = look(open_photo(path), photo_boxes(graph, open_photo(path)))
    first = photo_looks(look, path, graph, tmp_path / "cache")
    monkeypatch.setattr(cache, "_fresh", lambda *_: pytest.fail("computed again"))
    second = photo_looks(look, path, graph, tmp_path / "cache")
    for found in (first, second):
        assert torch.equal(found.nodes, fresh.nodes)
        assert torch.equal(found.pairs, fresh.pairs)


@pytest.mark.parametrize("damage", ["cut", "bit", "text", "other"])
def test_a_damaged_cache_file_is_made_anew(tmp_path, photo_file, damage):
    path, graph = photo_file
    look = extractor(SMALL_LOOKS)
    fresh = photo_looks(look, path, graph, tmp_path / "cache")
    (file,) = (tmp_path / "cache").rglob("*.safetensors")
    data = file.read_bytes()
    if damage == "cut":
        file.write_bytes(data[:-10])
    elif damage == "bit":
        file.write_bytes(data[:-10] + bytes([data[-10] ^ 4]) + data[-9:])
    elif damage == "text":
        file.write_bytes(b"not a tensor")
    else:
        cache.write_looks(file, looks.Looks(fresh.nodes[:2], fresh.pairs))
    found = photo_looks(look, path, graph, tmp_path / "cache")
    assert torch.equal(found.nodes, fresh.nodes)
    assert file.read_bytes() == data


def test_the_key_knows_photo_boxes_settings_and_weights(tmp_path, photo_file):
    path, graph = photo_file
    look = extractor(SMALL_LOOKS)
    keys = [cache.look_key(look, path, graph)]
    keys.append(cache.look_key(look, path, graph.permute(np.arange(len(graph))[::-1])))
    keys.append(cache.look_key(look, path, graph.replace(width=320)))
    keys.append(cache.look_key(extractor(replace(SMALL_LOOKS, margin=0.2)), path, graph))
    with torch.no_grad():
        look.backbone.steps[0].down.weight.add_(1)
    keys.append(cache.look_key(look, path, graph))
    Image.fromarray(255 - open_photo(path)).save(tmp_path / "other.png")
    keys.append(cache.look_key(look, tmp_path / "other.png", graph))
    assert len(set(keys)) == len(keys)


def test_a_broken_photo_is_one_line_and_leaves_no_file(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"no photo")
    graph = SceneGraph([[0, 0, 5, 5]], [0], VOCABULARY)
    with pytest.raises(DataError, match=r"a\.jpg"):
        photo_looks(extractor(SMALL_LOOKS), tmp_path / "a.jpg", graph, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@needs_package
def test_the_default_look_at_any_photo():
    photo, graph = colour_scene(5)
    look = extractor(LookConfig())
    plain = look(photo, graph.boxes)
    order = [3, 1, 0, 5, 4, 2]
    close(look(photo, graph.boxes[order]).nodes, plain.nodes[order])
    larger = np.asarray(Image.fromarray(photo).resize((640, 480), Image.Resampling.BICUBIC))
    same = look(larger, graph.boxes * 4)
    likeness = torch.nn.functional.cosine_similarity(plain.nodes.float(), same.nodes.float())
    assert bool((likeness > 0.9).all()), likeness
