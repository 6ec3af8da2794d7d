"""Every preset: invariant, the same in a batch as alone, differentiable, and made of what its row says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models.model_cases import VOCABULARY, predict_graphs, random_graphs, small_model
from scenegpi.errors import GraphError, OptionError
from scenegpi.features.batch import SceneBatch
from scenegpi.models import PRESETS, BaselineConfig, ModelConfig, build_model, preset
from scenegpi.models.sgp import reverse_edges, scaled_log
from scenegpi.vocabulary import Vocabulary

NAMES = list(PRESETS)


@pytest.mark.parametrize("task", ["predcls", "sgcls"])
@pytest.mark.parametrize("name", NAMES)
def test_entities_listed_in_another_order_give_the_same_graph(name, task):
    model = small_model(name)
    rng = np.random.default_rng(1)
    for graph in random_graphs((1, 2, 5, 9)):
        order = rng.permutation(len(graph))
        before = next(predict_graphs(model, [graph], task))
        after = next(predict_graphs(model, [graph.permute(order)], task))
        moved = before.permute(order)
        assert np.abs(moved.label_dist - after.label_dist).max(initial=0) <= 1e-5
        found = {tuple(pair): row for pair, row in zip(after.pairs.tolist(), after.pair_dist, strict=True)}
        for pair, row in zip(moved.pairs.tolist(), moved.pair_dist, strict=True):
            assert np.abs(found[tuple(pair)] - row).max() <= 1e-5


@pytest.mark.parametrize("extra", [{"strict": True}, {"steps": 3}, {"aggregation": "max"}, {"aggregation": "mean"}])
def test_every_option_of_the_context_is_invariant(extra):
    model = small_model("gpi-feature-attention", **extra)
    graph = random_graphs((7,))[0]
    order = np.random.default_rng(2).permutation(7)
    before = next(predict_graphs(model, [graph])).permute(order)
    after = next(predict_graphs(model, [graph.permute(order)]))
    key = {tuple(pair): row for pair, row in zip(after.pairs.tolist(), after.pair_dist, strict=True)}
    assert (
        max(np.abs(key[tuple(p)] - row).max() for p, row in zip(before.pairs.tolist(), before.pair_dist, strict=True))
        <= 1e-5
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_a_loop_over_images(name):
    model = small_model(name)
    graphs = random_graphs((3, 0, 1, 8, 2, 5))
    together = model(SceneBatch.of(graphs, given_labels=False))
    alone = [model(SceneBatch.of([graph], given_labels=False)) for graph in graphs]
    for t in range(len(together.nodes)):
        assert torch.allclose(together.nodes[t], torch.cat([out.nodes[t] for out in alone]), atol=1e-5)
        assert torch.allclose(together.edges[t], torch.cat([out.edges[t] for out in alone]), atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_chunks_of_pairs_give_what_the_whole_gives(name, monkeypatch):
    model = small_model(name)
    graphs = random_graphs((9, 4, 6))
    whole = list(predict_graphs(model, graphs))
    monkeypatch.setattr("scenegpi.models.baseline.CHUNK", 7)
    monkeypatch.setattr("scenegpi.gpi.chunks._CACHE_EDGES", 16)
    monkeypatch.setattr("scenegpi.gpi.recurrent._ROWS", 20)
    for budget in (1, 40, 10_000):
        monkeypatch.setattr("scenegpi.prediction.predictor.PAIRS", budget)
        for a, b in zip(whole, predict_graphs(model, graphs), strict=True):
            assert np.abs(a.pair_dist - b.pair_dist).max() <= 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_every_weight_gets_a_gradient(name):
    model = small_model(name).train()
    out = model(SceneBatch.of(random_graphs((5, 7)), given_labels=False))
    weights = torch.arange(out.nodes[-1].shape[1]).float(), torch.arange(out.edges[-1].shape[1]).float()
    sum(
        ((n * weights[0]).sum() + (e * weights[1]).sum() for n, e in zip(out.nodes, out.edges, strict=True)),
        torch.zeros(()),
    ).backward()
    trained = {key: p.grad for key, p in model.named_parameters() if p.requires_grad}
    assert [key for key, grad in trained.items() if grad is None or not grad.isfinite().all()] == []
    frozen = {key for key, p in model.named_parameters() if not p.requires_grad}
    assert frozen == {key for key, _ in model.named_parameters() if key.startswith("network.baseline.")}


def test_an_untrained_context_hands_on_the_baseline():
    torch.manual_seed(0)
    model = build_model(PRESETS["gpi-feature-attention"], VOCABULARY).eval()
    out = model(SceneBatch.of(random_graphs((5,))))
    assert len(out.edges) == 2
    assert torch.equal(out.edges[0].argmax(1), out.edges[-1].argmax(1))


def test_the_rows_of_the_table():
    kinds = {
        name: config.context and (config.context.aggregation, bool(config.context.words))
        for name, config in PRESETS.items()
    }
    assert kinds == {
        "baseline": None,
        "gpi-no-attention": ("sum", False),
        "gpi-neighbour-attention": ("neighbour", False),
        "gpi-feature-attention": ("feature", False),
        "gpi-linguistic": ("neighbour", True),
    }
    assert len({config.baseline for config in PRESETS.values()}) == 1  # equal inputs
    with pytest.raises(OptionError, match="not one of baseline"):
        preset("gpi")


def test_given_distributions_are_handed_on_without_a_network():
    config = ModelConfig(BaselineConfig(layers=0, prior="given", refine_labels=False))
    model = build_model(config, VOCABULARY).eval()
    graphs = random_graphs((4, 3))
    for graph, found in zip(graphs, predict_graphs(model, graphs, "sgcls"), strict=True):
        assert np.abs(found.pair_dist - graph.pair_dist).max() < 2e-3
        assert np.abs(found.label_dist - graph.label_dist).max() < 2e-3
    with pytest.raises(GraphError, match="which the graphs lack"):
        list(predict_graphs(model, random_graphs((3,), dist=False)))


def test_reverse_edges():
    batch = SceneBatch.of(random_graphs((4, 1, 0, 6)))
    assert torch.equal(batch.edge_index[:, reverse_edges(batch)], batch.edge_index.flip(0))


def test_scaled_log_reads_certainty_as_one_and_the_unlikely_as_zero():
    logits = torch.tensor([[0.0, -50.0], [0.0, 0.0]])
    assert torch.allclose(scaled_log(logits), torch.tensor([[1.0, 0.0], [0.8997, 0.8997]]), atol=1e-4)


def test_graphs_of_another_vocabulary_are_refused():
    other = Vocabulary(["a", "b"], ["c"])
    graph = random_graphs((3,), dist=False)[0]
    strange = type(graph)(graph.boxes, [0, 1, 0], other)
    with pytest.raises(GraphError, match="vocabulary"):
        small_model("baseline")(SceneBatch.of([strange]))
