"""VCTree: greedy trees against brute force, levels that can be computed, the tree LSTM against recursion."""

from __future__ import annotations

import networkx as nx
import numpy as np
import torch

from models.model_cases import random_graphs
from paper.systems.system_cases import small_system
from scenegpi.features.batch import SceneBatch
from scenegpi.paper.systems.vctree import TreeLSTM, attach, grow


def test_a_greedy_tree_is_a_largest_spanning_tree_rooted_at_the_best_box():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 9):
        scores = rng.random((n, n))
        scores = scores + scores.T
        np.fill_diagonal(scores, 0)
        found = attach(scores)
        joined = [int(scores.sum(1).argmax())]
        for box, above in found:
            assert above in joined
            joined.append(box)
        assert sorted(joined) == list(range(n))
        links = {frozenset(link) for link in found}
        graph = nx.Graph((i, j, {"weight": scores[i, j]}) for i in range(n) for j in range(i))
        best = nx.maximum_spanning_tree(graph).edges if n > 1 else []
        assert links == {frozenset(link) for link in best}


def test_binary_trees_hold_every_box_once_children_before_parents():
    batch = SceneBatch.of(random_graphs((6, 0, 1, 4)))
    torch.manual_seed(0)
    trees = grow(torch.rand(batch.num_edges), batch)
    n = len(batch.boxes)
    assert sorted(torch.cat(trees.up).tolist()) == sorted(torch.cat(trees.down).tolist()) == list(range(n))
    place_up = {box: k for k, level in enumerate(trees.up) for box in level.tolist()}
    place_down = {box: k for k, level in enumerate(trees.down) for box in level.tolist()}
    for box in range(n):
        for child in (int(trees.left[box]), int(trees.right[box])):
            if child < n:
                assert int(trees.parent[child]) == box
                assert place_up[child] < place_up[box]
                assert place_down[child] > place_down[box]
                assert batch.batch[child] == batch.batch[box]
    roots = [box for box in range(n) if trees.parent[box] == n]
    assert batch.batch[roots].tolist() == [0, 2, 3]


def test_the_tree_lstm_is_its_recursion():
    torch.manual_seed(1)
    batch = SceneBatch.of(random_graphs((7,)))
    trees = grow(torch.rand(batch.num_edges), batch)
    layer = TreeLSTM(3, 4).double()
    x, zero = torch.randn(7, 3, dtype=torch.double), torch.zeros(4, dtype=torch.double)

    def up(box):
        if box == 7:
            return zero, zero
        (hl, cl), (hr, cr) = up(int(trees.left[box])), up(int(trees.right[box]))
        i, f, g, o, u = (layer.read(x[box]) + layer.from_left(hl) + layer.from_right(hr)).split(4)
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f) * cl + torch.sigmoid(g) * cr
        return torch.sigmoid(o) * torch.tanh(c), c

    def down(box):
        return (zero, zero) if box == 7 else layer.down(x[box], down(int(trees.parent[box])))

    wanted = torch.stack([torch.cat([up(box)[0], down(box)[0]]) for box in range(7)])
    assert torch.allclose(layer(x, trees), wanted, atol=1e-12)


def test_links_are_learned_in_both_directions_alike():
    model = small_system("vctree").train()
    batch = SceneBatch.of(random_graphs((4,)))
    out = model(batch)
    common = torch.zeros(1)
    loss = model.network.training_loss(batch, out, common)
    turned = SceneBatch.of(
        [graph.with_fields(relations=graph.relations[:, [1, 0, 2]]) for graph in random_graphs((4,))]
    )
    assert torch.allclose(loss, model.network.training_loss(turned, out, common))
