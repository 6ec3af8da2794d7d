"""Ranking losses against loops; what lowers them is a better list."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from models.model_cases import random_graphs
from scenegpi.features.batch import SceneBatch
from scenegpi.models.baseline import SceneLogits
from scenegpi.training.config import LossConfig
from scenegpi.training.losses import scene_loss
from scenegpi.training.ranking import ranking_loss

P = 3


def case(sizes, seed=0):
    batch = SceneBatch.of(random_graphs(sizes, seed))
    generator = torch.Generator().manual_seed(seed)
    return batch, torch.randn(batch.num_edges, 1 + P, generator=generator, dtype=torch.double)


def by_hand(batch, edges, kind):
    logs = edges.log_softmax(1)
    image = batch.batch[batch.edge_index[0]].tolist()
    related = set(batch.relation_edge.tolist())
    rivals = [[] for _ in range(batch.num_graphs)]
    for e, g in enumerate(image):
        if e not in related:
            rivals[g].append(float(logs[e, 1:].max()))
    found = [0.0] * batch.num_graphs
    rows = torch.stack([batch.relation_edge, batch.relation_class, batch.relation_count], 1)
    for e, r, n in rows.tolist():
        others = [math.exp(u - float(logs[e, r])) for u in rivals[image[e]]]
        if not others:
            continue
        each = sum(math.log1p(x) for x in others) / len(others) if kind == "pairwise" else math.log1p(sum(others))
        found[image[e]] += n * each
    return found


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=4),
    st.integers(0, 99),
    st.sampled_from(["pairwise", "listwise"]),
)
def test_as_loops_give_it(sizes, seed, kind):
    batch, edges = case(tuple(sizes), seed)
    assert ranking_loss(edges, batch, kind).tolist() == pytest.approx(by_hand(batch, edges, kind), abs=1e-9)


@pytest.mark.parametrize("kind", ["pairwise", "listwise"])
def test_gradients(kind):
    batch, edges = case((6, 1, 2, 7))
    torch.autograd.gradcheck(lambda x: ranking_loss(x, batch, kind), (edges.requires_grad_(),))


@pytest.mark.parametrize("kind", ["pairwise", "listwise"])
def test_a_step_against_it_lifts_relations_over_the_rest(kind):
    batch, edges = case((8, 9))
    edges.requires_grad_()
    loss = ranking_loss(edges, batch, kind).sum()
    (grad,) = torch.autograd.grad(loss, edges)
    free = torch.ones(batch.num_edges, dtype=torch.bool)
    free[batch.relation_edge] = False
    after = (edges - 0.1 * grad).detach()
    assert float(ranking_loss(after, batch, kind).sum()) < loss.item()
    assert (after.log_softmax(1)[free, 0] >= edges.log_softmax(1)[free, 0] - 1e-12).all()


def test_the_loss_of_a_scene_adds_it_with_its_weight():
    batch, edges = case((5, 7, 3))
    nodes = torch.zeros(len(batch.labels), 5, dtype=torch.double)
    out = SceneLogits([nodes], [edges])
    plain = scene_loss(out, batch, LossConfig(power=0.0))
    more = scene_loss(out, batch, LossConfig(power=0.0, ranking="listwise", ranking_weight=2.0))
    assert torch.allclose(more - plain, 2 * ranking_loss(edges, batch, "listwise") / batch.num_graphs)
