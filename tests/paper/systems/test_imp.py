"""Iterative message passing against loops over boxes and pairs."""

from __future__ import annotations

import pytest
import torch

from models.model_cases import random_graphs
from paper.systems.system_cases import small_system
from scenegpi.features.batch import SceneBatch


def by_loops(network, batch):
    """(E, 1 + P) logits of one image, pair by pair."""
    reading = network.reader(batch)
    config, n = network.config, len(batch.boxes)
    at = {pair: k for k, pair in enumerate(map(tuple, batch.edge_index.t().tolist()))}
    u = reading.pairs(slice(None))
    zero = torch.zeros(1, config.width, dtype=u.dtype)
    h = [network.box_cell(network.box(reading.nodes[i : i + 1]), zero) for i in range(n)]
    e = {pair: network.pair_cell(network.union(u[k : k + 1]).relu(), zero) for pair, k in at.items()}

    def gate(module, box, pair):
        return torch.sigmoid(module.box.weight @ box[0] + module.box.bias + module.pair.weight @ pair[0])

    for _ in range(config.steps):
        new = {}
        for i, j in at:
            old = e[i, j]
            message = gate(network.from_subject, h[i], old) * h[i] + gate(network.from_object, h[j], old) * h[j]
            new[i, j] = network.pair_cell(message, old)
        read = new if config.schedule == "sequential" else e
        boxes = []
        for i in range(n):
            message = zero
            for j in range(n):
                if i != j:
                    message = message + gate(network.as_subject, h[i], read[i, j]) * read[i, j]
                    message = message + gate(network.as_object, h[i], read[j, i]) * read[j, i]
            boxes.append(network.box_cell(message, h[i]))
        h, e = boxes, new
    return torch.cat([network.pair_out(e[pair]) for pair in at])


@pytest.mark.parametrize("name", ["imp", "imp-2017"])
def test_messages_are_those_of_the_equations(name):
    model = small_system(name).double()
    batch = SceneBatch.of(random_graphs((5,)), given_labels=False)
    assert torch.allclose(model(batch).edges[-1], by_loops(model.network, batch), atol=1e-9)


def test_without_steps_a_pair_is_read_by_itself():
    model = small_system("imp", counts=False, steps=0)
    graph = random_graphs((4,))[0]
    whole, two = SceneBatch.of([graph]), SceneBatch.of([graph.subset([0, 1])])
    assert torch.allclose(model(whole).edges[-1][0], model(two).edges[-1][0], atol=1e-6)


def test_the_two_schedules_differ():
    batch = SceneBatch.of(random_graphs((5,)))
    first, second = (
        small_system("imp", schedule=schedule)(batch).edges[-1] for schedule in ("synchronous", "sequential")
    )
    assert (first - second).abs().max() > 1e-4
