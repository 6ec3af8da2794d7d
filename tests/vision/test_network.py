"""The photo network and its finder: maps, candidates, and boxes in pixels of the photo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from scenegpi.boxes import box_iou
from scenegpi.errors import OptionError
from scenegpi.vision import find
from scenegpi.vision.config import FinderConfig, VisionConfig
from scenegpi.vision.find import Finder, mirrored, reported, single
from scenegpi.vision.finder import ANCHORS, KINDS, LEVELS, corners
from scenegpi.vision.model import VisionModel
from scenegpi.vocabulary import Vocabulary
from vision.vision_cases import TINY_EYES as TINY
from vision.vision_cases import VOCABULARY, colour_scene


@pytest.fixture(scope="module")
def vision():
    torch.manual_seed(0)
    model = VisionModel(TINY, VOCABULARY).eval()
    look = model.backbone.look
    for layer, spread in (
        (look.move, 0.3),
        (look.fit, 3.0),
        *((each, 0.5) for each in model.backbone.finder.out.values()),
    ):
        torch.nn.init.normal_(layer.weight, std=spread)  # not all alike before training
    return model


def test_maps_and_candidates_count_cells(vision):
    maps = vision.backbone.features(torch.zeros(2, 3, 64, 96))
    assert [tuple(each.values.shape) for each in maps] == [(2, 96, 8, 12), (2, 96, 4, 6), (2, 96, 2, 3)]
    found = vision.backbone.finder(maps)
    cells = sum(len(ANCHORS[name]) * each.values[0, 0].numel() for name, each in zip(LEVELS, maps, strict=True))
    assert found.boxes.shape == (2, cells, 4)
    assert found.logits.shape == (2, cells, KINDS)


def test_a_batch_is_a_loop_over_photos(vision):
    photos = torch.randint(0, 256, (3, 3, 64, 64), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        whole = vision.backbone.finder(vision.backbone.features(photos))
        for k in range(3):
            alone = vision.backbone.finder(vision.backbone.features(photos[k : k + 1]))
            torch.testing.assert_close(whole.boxes[k], alone.boxes[0], rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(whole.logits[k], alone.logits[0], rtol=1e-4, atol=1e-4)


def test_candidates_lie_around_their_cells(vision):
    with torch.no_grad():
        found = vision.backbone.finder(vision.backbone.features(torch.zeros(1, 3, 64, 64)))
    level = found.boxes[0, : 3 * 8 * 8].view(3, 8, 8, 4)
    cell = torch.arange(8) / 8
    assert bool(((level[..., 0] - cell).abs() <= 1.5 / 8 + 1e-6).all())
    assert bool(((level[..., 1] - cell[:, None]).abs() <= 1.5 / 8 + 1e-6).all())
    assert bool((level[..., 2:] <= 4 * torch.tensor(ANCHORS["early"])[:, None, None] + 1e-6).all())


def test_boxes_come_in_pixels_best_first_and_do_not_repeat(vision):
    photo, _ = colour_scene(1, width=200, height=100)
    config = FinderConfig(floor=0.0, overlap=0.6, same_label=0.4, most=15)
    found = Finder(vision, config).detect(photo)
    assert 0 < len(found) <= 15
    assert found.size == (200, 100)
    assert (found.boxes >= 0).all()
    assert (found.boxes <= [200, 100, 200, 100]).all()
    assert (np.diff(found.scores) <= 1e-9).all()
    over = box_iou(found.boxes, found.boxes) - np.eye(len(found))
    assert over.max() <= 0.6
    same = found.labels[:, None] == found.labels
    assert (over * same).max() <= 0.4
    np.testing.assert_allclose(found.label_dist.sum(1), 1, atol=1e-5)
    np.testing.assert_array_equal(found.label_dist.argmax(1), found.labels)


def test_names_of_found_boxes_are_those_of_the_label_predictor(vision, monkeypatch):
    monkeypatch.setattr(find, "SAME", 2.0)  # no box is moved: names are read where the finder saw a thing
    photo, graph = colour_scene(2)
    found = Finder(vision, FinderConfig(floor=0.0, most=8)).detect(photo)
    given = graph.replace(boxes=found.boxes, labels=np.zeros(len(found), dtype=int))
    np.testing.assert_allclose(vision.label_dist(photo, given), found.label_dist, atol=1e-4)


def test_a_photo_and_its_mirror_image_are_named_alike(vision):
    photo, graph = colour_scene(3, width=64, height=64)
    boxes = graph.boxes.copy()
    boxes[:, [0, 2]] = 64 - graph.boxes[:, [2, 0]]
    turned = vision.label_dist(photo[:, ::-1].copy(), graph.replace(boxes=boxes))
    named = vision.label_dist(photo, graph)
    np.testing.assert_allclose(turned, named, atol=1e-5)
    one = VisionModel(replace(TINY, features=replace(TINY.features, mirror=False)), VOCABULARY).eval()
    one.load_state_dict(vision.state_dict())
    assert np.abs(one.label_dist(photo, graph) - named).max() > 1e-4  # what a single look says is not the same


def test_boxes_are_found_alike_in_a_photo_and_its_mirror_image(vision):
    photo, _ = colour_scene(3, width=64, height=64)
    finder = Finder(vision, FinderConfig(floor=0.0, most=8, same_label=1.0))
    found, turned = finder.detect(photo), finder.detect(photo[:, ::-1].copy())
    boxes = turned.boxes.copy()
    boxes[:, [0, 2]] = 64 - turned.boxes[:, [2, 0]]
    assert len(found) > 1
    np.testing.assert_allclose(boxes, found.boxes, atol=1e-2)


def test_a_high_floor_leaves_nothing(vision):
    photo, _ = colour_scene(3)
    found = Finder(vision, FinderConfig(floor=1.0)).detect(photo)
    assert len(found) == 0
    assert found.label_dist.shape == (0, 4)


def test_the_chance_weighs_the_evidence_and_takes_what_has_no_weight_for_none(vision):
    evidence = torch.randn(9, 3, generator=torch.Generator().manual_seed(1))
    short = Finder(vision, FinderConfig(weights=(0.1, 2.0)))
    torch.testing.assert_close(short.chance(evidence), torch.sigmoid(2 * evidence[:, 0] + 0.1))
    whole = Finder(vision, FinderConfig(weights=(0.1, 0.0, 0.0, 3.0)))
    torch.testing.assert_close(whole.chance(evidence), torch.sigmoid(3 * evidence[:, 2] + 0.1))
    with pytest.raises(ValueError, match="weights: 6 numbers, expected at most 4"):
        FinderConfig(weights=(0.1, 1.0, 0.0, 1.0, 0.0, 0.5))


def test_only_a_photo_network_finds():
    with pytest.raises(OptionError, match="finds no boxes"):
        Finder(VisionModel(VisionConfig(), VOCABULARY))
    with pytest.raises(ValueError, match="only the photo network"):
        VisionConfig(finder=FinderConfig())


def test_mirrored_twice_is_the_same():
    boxes = torch.rand(5, 4)
    torch.testing.assert_close(mirrored(mirrored(boxes)), boxes)


def test_corners():
    box = torch.tensor([[0.5, 0.4, 0.2, 0.6]])
    torch.testing.assert_close(corners(box), torch.tensor([[0.4, 0.1, 0.6, 0.7]]))


def test_of_boxes_with_one_label_that_lie_in_one_another_the_best_stays():
    rng = np.random.default_rng(3)
    low = rng.uniform(0, 80, (60, 2))
    boxes = np.concatenate([low, low + rng.uniform(5, 60, (60, 2))], 1)
    score, label = rng.uniform(size=60), rng.integers(0, 3, 60)
    kept = single(torch.from_numpy(boxes), torch.from_numpy(score), torch.from_numpy(label), 0.5).tolist()
    expected = []
    for i in sorted(range(60), key=lambda k: -score[k]):
        rivals = [j for j in range(60) if label[j] == label[i] and score[j] > score[i]]
        shared = [
            np.clip(np.minimum(boxes[i, 2:], boxes[j, 2:]) - np.maximum(boxes[i, :2], boxes[j, :2]), 0, None).prod()
            / min((boxes[k, 2:] - boxes[k, :2]).prod() for k in (i, j))
            for j in rivals
        ]
        if not any(share > 0.5 for share in shared):
            expected.append(i)
    assert kept == expected
    assert 3 < len(kept) < 60


def test_whoever_is_surely_a_person_is_reported_though_no_name_is_sure():
    words = Vocabulary(("man", "person", "tree", "woman"), ("on",))
    boxes = torch.tensor([[0.0, 0, 9, 9], [20, 0, 29, 9], [40, 0, 49, 9]])
    dist = torch.tensor([[0.4, 0.2, 0.0, 0.4], [0.4, 0.1, 0.5, 0.0], [0.0, 0.0, 0.3, 0.7]])
    chance = torch.tensor([0.5, 0.5, 0.5])
    config = FinderConfig(named_floor=0.3)
    assert reported(boxes, chance, dist, config, words).tolist() == [0, 2]
    twice = torch.tensor([[0.0, 0, 9, 9], [1, 0, 9, 9], [40, 0, 49, 9]])
    sure = torch.tensor([[0.9, 0.1, 0.0, 0.0], [0.4, 0.2, 0.0, 0.4], [0.0, 0.0, 0.3, 0.7]])
    assert reported(twice, chance, sure, config, words).tolist() == [0, 2]  # a man, and the same as just a person
    plain = Vocabulary(("a", "b", "c", "d"), ("on",))
    assert reported(boxes, chance, dist, config, plain).tolist() == [2]
