"""Batches: every image once per epoch, in any number of processes; augmentations that keep what is true."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.model_cases import random_graphs
from scenegpi.training.batches import EpochBatches, TrainingImages, drop_boxes, mirror_image, train_loader
from scenegpi.training.label_resampling import LabelResampler
from scenegpi.training.recipes import train_config


@given(st.integers(1, 60), st.integers(1, 9), st.integers(1, 3))
def test_every_image_stands_in_one_batch_of_one_process(images, batch, world):
    if images < world:
        return
    epochs = []
    for epoch in range(2):
        seen = []
        for rank in range(world):
            sampler = EpochBatches(images, batch, seed=3, rank=rank, world=world)
            sampler.set_epoch(epoch)
            found = list(sampler)
            assert len(found) == len(sampler)
            assert all(0 < len(keys) <= batch + 1 for keys in found)
            seen += [i for keys in found for _, i in keys]
        assert sorted(seen) == list(range(images))
        epochs.append(seen)
    if images > 12:
        assert epochs[0] != epochs[1]


def test_two_processes_see_what_one_sees_with_twice_the_batch():
    one = list(EpochBatches(40, 8, seed=1))
    two = [list(EpochBatches(40, 4, seed=1, rank=rank, world=2)) for rank in (0, 1)]
    assert [a + b for a, b in zip(*two, strict=True)] == one


def test_an_epoch_is_the_same_whenever_it_is_asked_for():
    graphs = [*random_graphs((4, 5, 6, 3), dist=False), *random_graphs((3, 7), seed=1)]
    config = train_config({"augment": {"drop": 0.5}, "task": "both"})
    images = TrainingImages(graphs, config, LabelResampler(graphs, 5))
    assert images.image(2, 1) == images.image(2, 1)
    assert images.image(2, 1) != images.image(3, 1)


def test_images_with_photos_come_more_often_where_others_resample():
    graphs = [*random_graphs((4, 5, 6), dist=False), *random_graphs((3, 7), seed=1)]
    config = train_config({"task": "both", "augment": {"photos": 3, "given": 0.0, "drop": 0.0}})
    resampler = LabelResampler(graphs, 5)
    images = TrainingImages(graphs, config, resampler)
    sampler = train_loader(images).sampler
    seen = [images.places[i] for keys in sampler for _, i in keys]
    assert sorted(seen) == [0, 1, 2, 3, 3, 3, 4, 4, 4]
    assert len(TrainingImages(graphs, config)) == 5
    batch = images[[(0, k) for k in range(len(images))]]
    assert batch.label_dist.amax(1).min() < 1
    given = train_config({"task": "both", "augment": {"given": 1.0}})
    batch = TrainingImages(graphs, given, resampler)[[(0, 0), (0, 4)]]
    assert (batch.label_dist.amax(1) == 1).all()


def test_a_mirror_image_of_a_mirror_image():
    graph = random_graphs((6,))[0]
    assert np.allclose(mirror_image(mirror_image(graph)).boxes, graph.boxes)
    assert np.allclose(mirror_image(graph).boxes[:, [1, 3]], graph.boxes[:, [1, 3]])
    assert (mirror_image(graph).boxes[:, 2] >= mirror_image(graph).boxes[:, 0]).all()


@given(st.integers(1, 9), st.integers(0, 2**31), st.floats(0.05, 0.95))
def test_dropped_boxes_take_along_their_relations_and_nothing_else(boxes, seed, rate):
    graph = random_graphs((boxes,), seed=seed % 1000)[0]
    found = drop_boxes(graph, np.random.default_rng(seed), rate)
    kept = [i for i in range(boxes) if (graph.boxes[i] == found.boxes).all(1).any()]
    assert found == graph.subset(kept)
    assert found.replace() == found  # a graph that passes all checks
    assert len(found) >= min(len(graph), 2)
    assert len(found.relations) >= min(len(graph.relations), 1)


def test_half_of_the_images_lose_boxes_at_all_rates():
    graph = random_graphs((40,))[0]
    lost = [40 - len(drop_boxes(graph, np.random.default_rng(seed), 0.5)) for seed in range(600)]
    assert np.mean(np.array(lost) > 0) == pytest.approx(0.5, abs=0.08)
    assert np.mean(lost) == pytest.approx(40 * 0.5 * 0.25, rel=0.2)
    assert max(lost) > 16


def test_boxes_are_dropped_when_the_context_trains():
    graphs = random_graphs((12,) * 8, dist=False)

    def lost(preset):
        images = TrainingImages(graphs, train_config({"preset": preset}))
        return sum(12 - len(images.image(0, i)) for i in range(8))

    assert lost("baseline") == 0
    assert lost("gpi-feature-attention") > 0
