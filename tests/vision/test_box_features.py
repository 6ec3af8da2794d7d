"""Box features: the right pixels, any boxes, any order, in chunks or at once, cached or fresh."""

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
from scenegpi.vision import (
    BoxFeatureConfig,
    BoxFeatureExtractor,
    box_features,
    cache,
    cached_box_features,
    open_photo,
    photo_boxes,
)
from scenegpi.vision.backbone import load_backbone
from scenegpi.vision.roi import clipped
from vision.vision_cases import TINY_FEATURES, VOCABULARY, colour_scene, needs_package

CONFIGS = [TINY_FEATURES, replace(TINY_FEATURES, roi_bins=1, mirror=True, surroundings=0.5)]


def extractor(config: BoxFeatureConfig) -> BoxFeatureExtractor:
    torch.manual_seed(3)
    return BoxFeatureExtractor(config, load_backbone(config).eval())


def close(a, b):
    torch.testing.assert_close(a.float(), b.float(), atol=2e-3, rtol=2e-3)  # those of a cache are in half precision


@pytest.mark.parametrize("config", CONFIGS)
def test_shapes(config):
    photo, graph = colour_scene(0)
    extract = extractor(config)
    for n in (0, 1, 2, len(graph)):
        found = extract(photo, graph.boxes[:n])
        assert found.shape == (n, extract.width)
        assert found.dtype == torch.float


@pytest.mark.parametrize("config", CONFIGS)
@settings(max_examples=5)
@given(order=st.permutations(range(6)))
def test_permuted_boxes_give_permuted_features(config, order):
    photo, graph = colour_scene(1)
    extract = extractor(config)
    close(extract(photo, graph.boxes[list(order)]), extract(photo, graph.boxes)[list(order)])


@pytest.mark.parametrize("config", CONFIGS)
def test_chunks_change_nothing(config, monkeypatch):
    photo, graph = colour_scene(2, boxes=9)
    whole = extractor(config)(photo, graph.boxes)
    monkeypatch.setattr(box_features, "ROI_CHUNK", 3)
    close(extractor(config)(photo, graph.boxes), whole)


def test_the_photo_goes_through_the_backbone_once():
    photo, graph = colour_scene(6)
    extract = extractor(CONFIGS[1])
    seen, features = [], extract.backbone.features
    extract.backbone.features = lambda images, layers: seen.append(tuple(images.shape)) or features(images, layers)
    extract(photo, graph.boxes)
    assert seen == [(2, 3, 64, 64)]


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 90), st.integers(1, 90))
def test_boxes_anywhere_give_finite_features_from_inside_the_photo(seed, height, width):
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.uniform(-150, 250, (5, 2, 2)), axis=1).reshape(5, 4)
    corners[0] = [10, 10, 10, 10]  # no area
    corners[1] = [-50, -50, -20, -20]  # wholly outside
    corners[2] = [0, 0, 1e7, 1e7]
    inside = clipped(torch.from_numpy(corners), torch.tensor([width, height])).numpy()
    assert (inside >= 0).all()
    assert (inside <= [width, height] * 2).all()
    assert (inside[:, 2:] - inside[:, :2] >= np.minimum([width, height], 2) - 1e-9).all()
    photo = rng.integers(0, 255, (height, width, 3)).astype(np.uint8)
    assert bool(torch.isfinite(extractor(CONFIGS[1])(photo, corners)).all())


@pytest.fixture
def photo_file(tmp_path):
    photo, graph = colour_scene(4)
    Image.fromarray(photo).save(tmp_path / "photo.png")
    return tmp_path / "photo.png", graph


def test_cached_equals_fresh(tmp_path, photo_file, monkeypatch):
    path, graph = photo_file
    extract = extractor(TINY_FEATURES)
    fresh = extract(open_photo(path), photo_boxes(graph, open_photo(path)))
    found = cached_box_features(extract, path, graph, tmp_path / "cache")
    assert found.dtype == torch.half
    close(found, fresh)
    monkeypatch.setattr(cache, "_fresh", lambda *_: pytest.fail("computed again"))
    close(cached_box_features(extract, path, graph, tmp_path / "cache"), fresh)


@pytest.mark.parametrize("damage", ["cut", "bit", "text", "other"])
def test_a_damaged_cache_file_is_computed_again(tmp_path, photo_file, damage):
    path, graph = photo_file
    extract = extractor(TINY_FEATURES)
    fresh = cached_box_features(extract, path, graph, tmp_path / "cache")
    (file,) = (tmp_path / "cache").rglob("*.safetensors")
    data = file.read_bytes()
    if damage == "cut":
        file.write_bytes(data[:-10])
    elif damage == "bit":
        file.write_bytes(data[:-10] + bytes([data[-10] ^ 4]) + data[-9:])
    elif damage == "text":
        file.write_bytes(b"not a tensor")
    else:
        cache.write_features(file, fresh[:2])
    close(cached_box_features(extract, path, graph, tmp_path / "cache"), fresh)
    found = cache.read_features(file, (len(graph), extract.width))
    assert found is not None
    close(found, fresh)


def test_the_key_knows_photo_boxes_settings_and_weights(tmp_path, photo_file):
    path, graph = photo_file
    extract = extractor(TINY_FEATURES)
    keys = [cache.cache_key(extract, path, graph)]
    keys.append(cache.cache_key(extract, path, graph.permute(np.arange(len(graph))[::-1])))
    keys.append(cache.cache_key(extract, path, graph.replace(width=320)))
    keys.append(cache.cache_key(extractor(replace(TINY_FEATURES, roi_bins=3)), path, graph))
    with torch.no_grad():
        extract.backbone.finder.out["early"].weight.add_(1)
    keys.append(cache.cache_key(extract, path, graph))
    Image.fromarray(255 - open_photo(path)).save(tmp_path / "other.png")
    keys.append(cache.cache_key(extract, tmp_path / "other.png", graph))
    assert len(set(keys)) == len(keys)


def test_a_broken_photo_is_one_line_and_leaves_no_file(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"no photo")
    graph = SceneGraph([[0, 0, 5, 5]], [0], VOCABULARY)
    with pytest.raises(DataError, match=r"a\.jpg"):
        cached_box_features(extractor(TINY_FEATURES), tmp_path / "a.jpg", graph, tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@needs_package
def test_default_features_do_not_depend_on_order_and_little_on_resolution():
    photo, graph = colour_scene(5)
    extract = extractor(BoxFeatureConfig())
    plain = extract(photo, graph.boxes)
    order = [3, 1, 0, 5, 4, 2]
    close(extract(photo, graph.boxes[order]), plain[order])
    larger = np.asarray(Image.fromarray(photo).resize((640, 480), Image.Resampling.BICUBIC))
    same = extract(larger, graph.boxes * 4)
    likeness = torch.nn.functional.cosine_similarity(plain.float(), same.float())
    assert bool((likeness > 0.9).all()), likeness
