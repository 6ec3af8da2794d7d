"""Coverage targets against plain loops over rows and pairs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models.test_duplicates import doubled, loops
from scenegpi.features.batch import SceneBatch
from scenegpi.models.baseline import SceneLogits
from scenegpi.training.config import LossConfig
from scenegpi.training.coverage import coverage_rows
from scenegpi.training.losses import scene_loss


def by_loops(graph, first_choice):
    """{(i, j): rows (P,)} with first_choice {(i, j): r}."""
    same, late = loops(graph)
    n = len(graph)
    found = {(i, j): np.zeros(3) for i in range(n) for j in range(n) if i != j}
    for s, o, r in graph.relations.tolist():
        for (i, j), rows in found.items():
            if same[s, i] and same[o, j] and not ((late[i] or late[j]) and first_choice[i, j] == r):
                rows[r] += 1
    return found


def test_against_loops():
    graphs = [doubled(seed) for seed in range(6)]
    batch = SceneBatch.of(graphs)
    choice = torch.from_numpy(np.random.default_rng(0).integers(0, 3, batch.num_edges))
    rows = coverage_rows(batch, choice).numpy()
    said = 0
    for g, graph in enumerate(graphs):
        start, edges = int(batch.ptr[g]), range(int(batch.edge_ptr[g]), int(batch.edge_ptr[g + 1]))
        ends = {e: tuple((batch.edge_index[:, e] - start).tolist()) for e in edges}
        expected = by_loops(graph, {pair: int(choice[e]) for e, pair in ends.items()})
        free = by_loops(graph, dict.fromkeys(ends.values(), -1))
        for e, pair in ends.items():
            assert rows[e].tolist() == expected[pair].tolist()
            said += int(free[pair].sum() - expected[pair].sum())
    assert said > 3


def test_the_loss_of_a_step_that_knows_what_the_first_said():
    batch = SceneBatch.of([doubled(3)])
    torch.manual_seed(0)
    nodes = [torch.randn(len(batch.labels), 5) for _ in range(2)]
    edges = [torch.randn(batch.num_edges, 4) for _ in range(2)]
    config = LossConfig(kind="coverage", entities=0.0, power=1.0, negatives=0.5)
    rows = coverage_rows(batch, edges[0][:, 1:].argmax(1))
    scale = 1 / float(batch.relation_count.sum())
    expected = 0.0
    for e, row in enumerate(rows):
        y = edges[1][e]
        odds = torch.logsumexp(y[1:], 0) - y[0]
        held = float(row.sum())
        expected += -float((row * y[1:].log_softmax(0)).sum())
        expected += min(held, 3) * -float(odds.sigmoid().log()) if held else 0.5 * -float((-odds).sigmoid().log())
    assert float(scene_loss(SceneLogits(nodes, edges), batch, config).sum()) == pytest.approx(
        expected * scale, rel=1e-4
    )


def test_a_baseline_has_the_metric_loss():
    batch = SceneBatch.of([doubled(1), doubled(2)])
    out = SceneLogits([torch.randn(len(batch.labels), 5)], [torch.randn(batch.num_edges, 4)])
    a, b = (scene_loss(out, batch, LossConfig(kind=kind)) for kind in ("coverage", "metric"))
    assert torch.equal(a, b)
