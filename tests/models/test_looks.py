"""A model that reads looks: invariant, without pixels as good as with looks of 0 and no mark, and it does read them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.model_cases import VOCABULARY, random_graphs, small
from scenegpi.features.batch import SceneBatch, Seen, complete_pairs, edge_numbers
from scenegpi.models import PRESETS, build_model, prepare_model
from scenegpi.models.predict import predict_seen

WIDTH = 5


def seeing_model(name="gpi-feature-attention"):
    torch.manual_seed(0)
    config = small(PRESETS[name])
    model = build_model(replace(config, baseline=replace(config.baseline, looks=WIDTH)), VOCABULARY)
    images = seen((4, 6, 3))
    prepare_model(model, [image.graph for image in images], [image.pair_looks for image in images])
    return model.eval()


def seen(sizes, seed=3):
    rng = np.random.default_rng(seed)
    return [Seen(graph, rng.normal(size=(len(graph) * (len(graph) - 1), WIDTH))) for graph in random_graphs(sizes)]


@pytest.mark.parametrize("name", ["baseline", "gpi-feature-attention"])
def test_boxes_listed_in_another_order_give_the_same_graph(name):
    model, (image,) = seeing_model(name), seen((6,))
    order = np.random.default_rng(0).permutation(6)
    rows = edge_numbers(order[complete_pairs(np.array([6])).T], 6)
    before = next(predict_seen(model, [image])).permute(order)
    after = next(predict_seen(model, [Seen(image.graph.permute(order), image.pair_looks[rows])]))
    found = {tuple(pair): row for pair, row in zip(after.pairs.tolist(), after.pair_dist, strict=True)}
    gaps = [np.abs(found[tuple(p)] - row).max() for p, row in zip(before.pairs.tolist(), before.pair_dist, strict=True)]
    assert max(gaps) <= 1e-5


def test_looks_are_read_and_an_image_without_them_is_not_disturbed_by_its_neighbours():
    model, images = seeing_model(), seen((5, 4))
    blind = Seen(images[0].graph)
    alone = next(predict_seen(model, [blind])).pair_dist
    beside = next(iter(predict_seen(model, [blind, images[1]]))).pair_dist
    assert np.abs(alone - beside).max() <= 1e-6
    assert np.abs(next(predict_seen(model, [images[0]])).pair_dist - alone).max() > 1e-3


def test_scales_are_those_of_the_images_with_pixels():
    images = [*seen((5, 4)), Seen(random_graphs((7,))[0])]
    model = seeing_model("baseline")
    prepare_model(model, [image.graph for image in images], [image.pair_looks for image in images])
    rows = np.concatenate([image.pair_looks for image in images[:2]])
    look = model.baseline.inputs.look
    assert torch.allclose(look.mean, torch.from_numpy(rows.mean(0)).float(), atol=1e-5)
    assert torch.allclose(look.scale, torch.from_numpy(1 / rows.std(0, ddof=1)).float(), atol=1e-4)


def test_looks_get_gradients():
    model = seeing_model("baseline").train()
    model(SceneBatch.seen_of(seen((5, 3)))).edges[-1][:, 1:].logsumexp(1).sum().backward()
    assert model.baseline.network.look.weight.grad.abs().sum() > 0
