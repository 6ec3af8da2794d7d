"""Attention pictures: the model's own weights, through the model's own path."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from models.model_cases import predictor, random_graph, small_model
from scenegpi import SceneGraph
from scenegpi.errors import GraphError
from scenegpi.features.batch import SceneBatch
from scenegpi.viz.attention import attention, draw_attention, most_telling
from scenegpi.viz.text import numbered


@pytest.fixture(scope="module")
def graph() -> SceneGraph:
    return random_graph(np.random.default_rng(3), 6)


@pytest.mark.parametrize("preset", ["gpi-neighbour-attention", "gpi-feature-attention", "gpi-linguistic"])
@pytest.mark.parametrize("task", ["predcls", "sgcls"])
def test_weights_sum_to_one(graph, preset, task):
    found = attention(predictor(small_model(preset), task), graph)
    assert np.allclose(found.neighbours.sum(axis=1), 1, atol=1e-5)
    assert not found.neighbours.diagonal().any()
    assert np.isclose(found.nodes.sum(), 1, atol=1e-5)


def test_they_are_the_layers_weights(graph):
    model = small_model("gpi-neighbour-attention", steps=2)
    found = [attention(predictor(model), graph, step=k) for k in (0, 1)]
    batch = SceneBatch.of([graph])
    layer = model.network.recurrent.layer
    for number in (0, 1):
        calls = []
        hook = layer.register_forward_hook(lambda m, a, k, o, calls=calls: calls.append((a, k)), with_kwargs=True)
        with torch.no_grad():
            model(batch)
        hook.remove()
        args, kwargs = calls[number]
        with torch.no_grad():
            out = layer(*args, **{**kwargs, "return_attention": True})
        i, j = batch.edge_index.numpy()
        assert np.allclose(found[number].neighbours[i, j], out.edge_attention[:, 0].numpy(), atol=1e-6)
        assert np.allclose(found[number].nodes, out.node_attention[:, 0].numpy(), atol=1e-6)
    assert not np.allclose(found[0].neighbours, found[1].neighbours)


def test_attention_moves_with_the_boxes(graph):
    model, order = small_model("gpi-feature-attention"), np.array([3, 1, 5, 0, 2, 4])
    before, after = attention(predictor(model), graph), attention(predictor(model), graph.permute(order))
    assert np.allclose(after.neighbours, before.neighbours[np.ix_(order, order)], atol=1e-5)
    assert np.allclose(after.nodes, before.nodes[order], atol=1e-5)


def test_models_without_attention_say_so(graph):
    with pytest.raises(GraphError, match="sums over its neighbours"):
        attention(predictor(small_model("gpi-no-attention")), graph)
    with pytest.raises(GraphError, match="no context"):
        attention(predictor(small_model("baseline")), graph)
    with pytest.raises(GraphError, match="step 7, but this model takes 1"):
        attention(predictor(small_model("gpi-feature-attention")), graph, step=7)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_pictures(tmp_path, n):
    model = small_model("gpi-neighbour-attention")
    graph = random_graph(np.random.default_rng(n), n)
    weights = attention(predictor(model), graph)
    photo = np.full((160, 200, 3), 90, dtype=np.uint8)
    assert draw_attention(graph, weights, tmp_path / "a.png", photo=photo).stat().st_size > 5000
    tree = ElementTree.parse(draw_attention(graph, weights, tmp_path / "a.svg", node=0))
    texts = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    names = numbered(graph.names)
    assert f"what {names[0]} attends to" in texts
    best = int(weights.nodes.argmax())
    assert f"{names[best]}  {100 * weights.nodes[best]:.0f}%" in texts
    assert weights.neighbours[most_telling(weights)].max() == weights.neighbours.max()
    with pytest.raises(GraphError, match=f"box {n}, but there are {n}"):
        draw_attention(graph, weights, tmp_path / "b.png", node=n)
