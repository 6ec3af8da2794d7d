"""Resampled distributions come from boxes with the same label; a label nobody shows takes another's, renamed."""

from __future__ import annotations

import numpy as np
import pytest

from models.model_cases import VOCABULARY, random_graph, random_graphs
from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.training.label_resampling import LabelResampler

LABELS = len(VOCABULARY.objects)


def test_every_row_is_that_of_a_box_with_the_same_label():
    sources = random_graphs((6, 9, 8), seed=1)
    known = {
        label: {tuple(row) for g in sources for row, y in zip(g.label_dist, g.labels, strict=True) if y == label}
        for label in range(LABELS)
    }
    rng = np.random.default_rng(0)
    bare = random_graph(rng, 40, dist=False)
    found = LabelResampler([*sources, bare], LABELS)(bare, rng)
    assert np.array_equal(found.labels, bare.labels)
    for row, label in zip(found.label_dist, found.labels, strict=True):
        assert tuple(row) in known[label]
    again = LabelResampler(sources, LABELS)(bare, np.random.default_rng(5)).label_dist
    assert np.array_equal(again, LabelResampler(sources, LABELS)(bare, np.random.default_rng(5)).label_dist)
    assert not np.array_equal(again, LabelResampler(sources, LABELS)(bare, np.random.default_rng(6)).label_dist)


def test_a_label_that_no_photo_shows_is_as_sure_as_another():
    (graph,) = random_graphs((12,))
    shown = graph.replace(labels=np.full(12, 2), label_dist=np.tile([0.1, 0.0, 0.7, 0.2, 0.0], (12, 1)))
    missing = graph.replace(labels=np.full(12, 4), label_dist=None)
    found = LabelResampler([shown], LABELS)(missing, np.random.default_rng(0)).label_dist
    assert np.allclose(found, [0.1, 0.0, 0.0, 0.2, 0.7])


def test_a_box_takes_from_boxes_of_its_size():
    n = 200
    side = np.linspace(1, 100, n)
    boxes = np.stack([np.zeros(n), np.zeros(n), side, side], 1)
    dist = np.zeros((n, LABELS), dtype=np.float32)
    dist[:, 0], dist[:, 1] = 1 - side / 100, side / 100
    source = SceneGraph(boxes, np.ones(n, dtype=int), VOCABULARY, label_dist=dist, width=200, height=160)
    bare = SceneGraph([[0, 0, 10, 10], [0, 0, 90, 90]], [1, 1], VOCABULARY, width=200, height=160)
    resampler, rng = LabelResampler([source], LABELS), np.random.default_rng(0)
    small, large = np.mean([resampler(bare, rng).label_dist[:, 1] for _ in range(50)], axis=0)
    assert small < 0.25 < 0.75 < large


def test_without_sources_there_is_nothing_to_take():
    with pytest.raises(GraphError, match="no image has a distribution"):
        LabelResampler(random_graphs((3,), dist=False), LABELS)
