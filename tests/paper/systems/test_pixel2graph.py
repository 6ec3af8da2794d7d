"""Pixel2Graph with given boxes: a picture, tags, slots; a graph drawn with perfect slots decodes to itself."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch

from models.model_cases import VOCABULARY, random_graphs
from paper.systems.system_cases import small_system
from scenegpi.features.batch import SceneBatch
from scenegpi.graph import SceneGraph
from scenegpi.paper.systems.pixel2graph import UNSEEN, Slots, box_cells, match, push


def test_boxes_are_drawn_cell_by_cell():
    network = small_system("pixel2graph-boxes").double().network
    graph = SceneGraph([[0, 0, 49, 79], [100, 20, 199, 159]], [0, 3], VOCABULARY, width=200, height=160)
    batch = SceneBatch.of([random_graphs((0,))[0], graph])
    found = network.draw(network.reader(batch))
    wanted = torch.zeros(2, 8, 32, 32, dtype=torch.double)
    for (x1, y1, x2, y2), label in (((0, 0, 7, 15), 0), ((16, 4, 31, 31), 3)):
        for x in range(x1, x2 + 1):
            for y in range(y1, y2 + 1):
                wanted[1, :, y, x] += network.filled[label]
    wanted[1, :, 7, 3] += network.centre[0]  # the centre (24.5, 39.5) of 200 x 160
    wanted[1, :, 17, 23] += network.centre[3]
    assert torch.allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("slots", [1, 3, 4])
def test_slots_are_matched_as_by_brute_force(slots):
    rng = np.random.default_rng(slots)
    gain, there = torch.from_numpy(rng.normal(size=(20, slots, slots))), torch.from_numpy(rng.random((20, slots)) < 0.6)
    found = match(gain * there[:, :, None])
    for q in range(20):
        best = max(
            sum(float(gain[q, k, order[k]]) for k in range(slots) if there[q, k])
            for order in permutations(range(slots))
        )
        assert sorted(found[q].tolist()) == list(range(slots))
        assert abs(sum(float(gain[q, k, found[q, k]]) for k in range(slots) if there[q, k]) - best) < 1e-9


def test_tags_that_are_a_margin_apart_cost_nothing():
    batch = SceneBatch.of(random_graphs((3, 1, 2)))
    tags = torch.arange(6.0)[:, None] * torch.full((1, 4), 8.0)
    assert push(tags, batch, 8.0).tolist() == [0, 0, 0]
    near = push(tags / 32, batch, 8.0)
    assert near[0] > 0
    assert near[1] == 0
    assert torch.allclose(near[2], torch.tensor(7.5**2))


def test_a_graph_drawn_with_perfect_slots_decodes_to_itself():
    network = small_system("pixel2graph-boxes").network
    batch = SceneBatch.of(random_graphs((4, 3)))
    tags = torch.eye(7, 8) * 10
    true = {(0, 1): 2, (2, 3): 0, (3, 0): 1, (4, 6): 2}
    image, q = torch.tensor([0, 0, 1]), 3
    related = torch.full((q, 6), -9.0)
    classes, ends = torch.zeros(q, 6, 3), torch.zeros(2, q, 6, 8)
    ends[:, :2] = tags[1]
    ends[:, 2] = tags[5]  # slots that say nothing point at one box twice
    for (cell, slot), ((i, j), r) in zip(((0, 2), (0, 5), (1, 0), (2, 1)), true.items(), strict=True):
        related[cell, slot] = -0.1
        classes[cell, slot, r] = 20
        ends[0, cell, slot], ends[1, cell, slot] = tags[i] + 0.3, tags[j] - 0.3
    found = network.decode(batch, image, related, Slots(related, classes, *ends), tags)
    for k, pair in enumerate(map(tuple, batch.edge_index.t().tolist())):
        if pair in true:
            assert int(found[k].argmax()) == 1 + true[pair]
            assert abs(float(found[k].exp().sum()) - 1) < 1e-5
        else:
            assert found[k, 1:].tolist() == [UNSEEN] * 3


def test_the_best_slot_of_a_pair_speaks_for_it():
    network = small_system("pixel2graph-boxes").network
    batch = SceneBatch.of(random_graphs((2,)))
    tags = torch.eye(2, 8) * 10
    related = torch.tensor([[-3.0, -0.2, -1.0]])
    classes = torch.eye(3)[None] * 9
    ends = tags[0].expand(1, 3, 8), tags[1].expand(1, 3, 8)
    found = network.decode(batch, torch.tensor([0]), related, Slots(related, classes, *ends), tags)
    assert found[0, 1:].argmax() == 1


def test_boxes_that_share_a_cell_take_its_slots_by_size():
    network = small_system("pixel2graph-boxes").network
    boxes = [[40, 40, 60, 60], [45, 45, 55, 55], [30, 30, 70, 70], [150, 10, 160, 20]]
    graph = SceneGraph(boxes, [0, 1, 2, 3], VOCABULARY, width=200, height=160)
    batch = SceneBatch.of([graph])
    features, cells = torch.randn(32 * 32, 8), box_cells(batch)
    assert len(set(cells[:3].tolist())) == 1
    tags, _ = network.objects(network.reader(batch), features)
    said = network.object_head(features[cells[:1]]).unflatten(1, (3, -1))[0]
    for box, slot in ((2, 0), (0, 1), (1, 2)):
        assert torch.allclose(tags[box], said[slot, :8], atol=1e-6)
