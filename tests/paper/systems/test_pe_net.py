"""PE-Net: angles to prototypes, and losses that are zero where they should be."""

from __future__ import annotations

import torch
from torch.nn.functional import cosine_similarity

from models.model_cases import random_graphs
from paper.systems.system_cases import small_system
from scenegpi.features.batch import SceneBatch


def test_logits_are_angles_to_prototypes():
    network = small_system("pe-net").double().network
    batch = SceneBatch.of(random_graphs((4,)))
    reading, out = network.reader(batch), network(batch)
    u = reading.pairs(slice(None))

    def end(module, i):
        word, box = module.word(network.label_words[batch.labels[i]]), module.box(reading.nodes[i])
        return word + torch.sigmoid(module.gate(torch.cat([word, box]))) * box

    prototypes = [network.placed(network.prototype(network.predicate_words[k]) + network.own[k]) for k in range(4)]
    for k, (i, j) in enumerate(batch.edge_index.t().tolist()):
        s, o, seen = end(network.subject, i), end(network.object, j), network.union(u[k])
        joint = torch.relu(s + o) - (s - o) ** 2
        relation = network.placed(joint - torch.sigmoid(network.gate(torch.cat([joint, seen]))) * seen)
        angles = torch.stack([cosine_similarity(relation, each, dim=0) for each in prototypes])
        assert torch.allclose(out.edges[-1][k], angles / network.heat.exp(), atol=1e-9)


def test_a_relation_at_its_prototype_far_from_the_others_costs_nothing():
    network = small_system("pe-net").network
    prototypes = torch.eye(4, 12) * 100
    classes = torch.tensor([1, 3, 2])
    assert float(network.pull(prototypes[classes], prototypes, classes)) == 0
    assert float(network.pull(prototypes[[1, 3, 2]], prototypes, torch.tensor([2, 1, 3]))) > 0
    assert float(network.pull(prototypes[:0], prototypes, classes[:0])) == 0


def test_prototypes_that_keep_apart_cost_only_what_they_are_alike():
    network = small_system("pe-net").network
    assert torch.allclose(network.push(torch.eye(4, 12) * 100), torch.tensor(4 / 16))
    assert float(network.push(torch.eye(4, 12))) > 5
