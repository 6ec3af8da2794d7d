"""Pairs read again with corrected labels, and a baseline that sees each box quite alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.model_cases import VOCABULARY, predict_graphs, random_graphs, small, small_model
from scenegpi.features.batch import SceneBatch
from scenegpi.models import PRESETS, build_model, prepare_model

NAME = "gpi-feature-attention"


@pytest.mark.parametrize("task", ["predcls", "sgcls"])
def test_a_new_order_of_boxes_is_a_new_order_of_answers(task):
    model = small_model(NAME, read_again=True, steps=2)
    (graph,) = random_graphs((7,), seed=3)
    order = np.random.default_rng(1).permutation(7)
    before = next(predict_graphs(model, [graph], task)).permute(order)
    after = next(predict_graphs(model, [graph.permute(order)], task))
    assert np.allclose(before.label_dist, after.label_dist, atol=1e-5)
    place = {tuple(pair): row for pair, row in zip(before.pairs.tolist(), before.pair_dist, strict=True)}
    wanted = [place[tuple(pair)] for pair in after.pairs.tolist()]
    assert np.allclose(wanted, after.pair_dist, atol=1e-5)


def test_given_labels_are_read_once():
    plain, again = (small_model(NAME, read_again=each).eval() for each in (False, True))
    batch = SceneBatch.of(random_graphs((5, 6), seed=2))
    with torch.no_grad():
        assert torch.allclose(plain(batch).edges[-1], again(batch).edges[-1], atol=1e-5)


def test_the_baseline_reads_the_corrected_labels():
    model = small_model(NAME, read_again=True).eval()
    batch = SceneBatch.of(random_graphs((5, 6), seed=2), given_labels=False)
    with torch.no_grad():
        out = model(batch)
        corrected = model.baseline(replace(batch, label_dist=out.nodes[-1].softmax(1))).edges[0]
        model.network.context = replace(model.network.context, read_again=False)
        once = model(batch)
    assert torch.allclose(out.nodes[-1], once.nodes[-1])
    assert torch.allclose(out.edges[-1], corrected + once.edges[-1] - once.edges[0], atol=1e-5)
    assert not torch.allclose(out.edges[-1], once.edges[-1], atol=1e-2)


@pytest.mark.parametrize("counts", [True, False])
def test_without_counts_a_baseline_sees_each_box_alone(counts):
    config = small(PRESETS["baseline"])
    model = build_model(replace(config, baseline=replace(config.baseline, counts=counts)), VOCABULARY)
    torch.nn.init.normal_(model.baseline.entity.layers[-1].weight)
    graphs = random_graphs((8,), seed=5)
    prepare_model(model, random_graphs((6, 7, 8), seed=6))
    whole = next(predict_graphs(model, graphs, "sgcls")).label_dist[:3]
    part = next(predict_graphs(model, [graphs[0].subset(np.arange(8) < 3)], "sgcls")).label_dist
    assert np.allclose(whole, part, atol=1e-5) != counts
