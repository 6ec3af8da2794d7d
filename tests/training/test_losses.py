"""Losses against the formulas written out as loops; gradients against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models.model_cases import random_graphs
from scenegpi.features.batch import SceneBatch
from scenegpi.models.scene_network import SceneLogits
from scenegpi.training.config import LossConfig
from scenegpi.training.losses import scene_loss

PAPER = LossConfig(kind="paper", negatives=0.1)
C, P = 5, 3


def case(sizes=(4, 6, 2, 1), steps=1, seed=0):
    batch = SceneBatch.of(random_graphs(sizes, seed))
    generator = torch.Generator().manual_seed(seed)
    nodes = [torch.randn(len(batch.labels), C, generator=generator, dtype=torch.double) for _ in range(steps)]
    edges = [torch.randn(batch.num_edges, 1 + P, generator=generator, dtype=torch.double) for _ in range(steps)]
    return batch, SceneLogits(nodes, edges)


def rows_of(batch):
    """edge -> {class: count}"""
    found = {}
    for edge, kind, count in zip(
        batch.relation_edge.tolist(), batch.relation_class.tolist(), batch.relation_count.tolist(), strict=True
    ):
        found.setdefault(edge, {})[kind] = count
    return found


def test_the_papers_loss_is_weighted_cross_entropy():
    batch, out = case()
    related = rows_of(batch)
    nodes, edges = out.nodes[0].log_softmax(1).numpy(), out.edges[0].log_softmax(1).numpy()
    expected = sum(4 * -nodes[i, y] for i, y in enumerate(batch.labels.tolist()))
    for e in range(batch.num_edges):
        rows = related.get(e)
        if rows is None:
            expected += 0.1 * -edges[e, 0]
        else:
            expected += sum(-count / sum(rows.values()) * edges[e, r] for r, count in rows.items())
    assert float(scene_loss(out, batch, PAPER).sum()) == pytest.approx(expected / batch.num_graphs, rel=1e-5)


def test_the_released_loss_weighs_all_negatives_together():
    batch, out = case()
    related = rows_of(batch)
    nodes, edges = out.nodes[0].log_softmax(1).numpy(), out.edges[0].log_softmax(1).numpy()
    positive = [sum(-n / sum(rows.values()) * edges[e, r] for r, n in rows.items()) for e, rows in related.items()]
    negative = [-edges[e, 0] for e in range(batch.num_edges) if e not in related]
    entity = [-nodes[i, y] for i, y in enumerate(batch.labels.tolist())]
    expected = 4 * np.mean(entity) + np.mean(positive) + 0.1 * np.mean(negative)
    found = scene_loss(out, batch, LossConfig(kind="released", negatives=0.1)).sum()
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_the_metric_loss_counts_rows_as_recall_does():
    batch, out = case()
    config = LossConfig(kind="metric", negatives=0.0, entities=0.0)
    logs_of_all = out.edges[0].log_softmax(1)
    image = batch.batch[batch.edge_index[0]]
    for g, loss in enumerate(scene_loss(out, batch, config).tolist()):
        mine = image[batch.relation_edge] == g
        rows = batch.relation_count[mine].double()
        if not len(rows):
            assert loss == 0
            continue
        logs = logs_of_all[batch.relation_edge[mine], batch.relation_class[mine]]
        assert loss * batch.num_graphs == pytest.approx(float(-(rows * logs).sum() / rows.sum().sqrt()), rel=1e-5)


def test_every_step_of_the_context_counts_and_the_frozen_baseline_does_not():
    batch, out = case(steps=3)
    each = [scene_loss(SceneLogits([n], [e]), batch, PAPER) for n, e in zip(out.nodes, out.edges, strict=True)]
    assert torch.allclose(scene_loss(out, batch, PAPER), each[1] + each[2])


@pytest.mark.parametrize("kind", ["paper", "released", "metric"])
def test_gradients_by_finite_differences(kind):
    batch, out = case((3, 2))
    config = LossConfig(kind=kind)

    def loss(nodes, edges):
        return scene_loss(SceneLogits([nodes], [edges]), batch, config).sum()

    nodes, edges = out.nodes[0].requires_grad_(), out.edges[0].requires_grad_()
    value = loss(nodes, edges)
    value.backward()
    rng = np.random.default_rng(0)
    for tensor in (nodes, edges):
        for _ in range(6):
            place = tuple(int(rng.integers(k)) for k in tensor.shape)
            step = torch.zeros_like(tensor)
            step[place] = 1e-2
            pair = [(nodes + s * step, edges) if tensor is nodes else (nodes, edges + s * step) for s in (1, -1)]
            slope = (loss(*pair[0]) - loss(*pair[1])) / 2e-2
            assert float(slope.detach()) == pytest.approx(float(tensor.grad[place]), abs=2e-3)


def test_images_without_pairs_or_relations_are_finite():
    batch = SceneBatch.of([graph.replace(relations=()) for graph in random_graphs((1, 3, 0))])
    out = SceneLogits([torch.randn(4, C)], [torch.randn(6, 1 + P)])
    for kind in ("paper", "released", "metric"):
        assert torch.isfinite(scene_loss(out, batch, LossConfig(kind=kind))).all()
