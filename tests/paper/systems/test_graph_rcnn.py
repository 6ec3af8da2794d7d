"""Graph R-CNN: proposals, pruning image by image, and the graph convolution against loops."""

from __future__ import annotations

import torch

from models.model_cases import random_graphs
from paper.systems.system_cases import small_system
from scenegpi.features.batch import SceneBatch
from scenegpi.models.sgp import scaled_log
from scenegpi.paper.systems.graph_rcnn import FEATURE_STEPS, SCORE_STEPS, kept_pairs


def by_loops(network, batch):
    """(E, 1 + P) logits of one image without pruning, neighbour by neighbour."""
    n = len(batch.boxes)
    reading = network.reader(batch)
    pairs = list(map(tuple, batch.edge_index.t().tolist()))
    z = [network.box(reading.nodes[i]).relu() for i in range(n)]
    e = {pair: network.union(reading.pairs(slice(None))[k]).relu() for k, pair in enumerate(pairs)}

    def weights(k, i, others):
        attention = network.attention[k]
        return torch.cat(
            [attention.score((attention.own(z[i]) + attention.other(other)).relu()) for other in others]
        ).softmax(0)

    def attend():
        found = {}
        for i in range(n):
            rest = [j for j in range(n) if j != i]
            found[i] = [
                weights(0, i, [z[j] for j in rest]),
                weights(1, i, [e[i, j] for j in rest]),
                weights(2, i, [e[j, i] for j in rest]),
            ]
        return found

    def messages(layer, box, pair, alpha, end):
        to_box, to_pair = [], {}
        for i in range(n):
            rest = [j for j in range(n) if j != i]
            parts = [
                sum(a * end(layer.skip(box[j])) for a, j in zip(alpha[i][0], rest, strict=True)),
                sum(a * end(layer.from_subject_pairs(pair[i, j])) for a, j in zip(alpha[i][1], rest, strict=True)),
                sum(a * end(layer.from_object_pairs(pair[j, i])) for a, j in zip(alpha[i][2], rest, strict=True)),
            ]
            to_box.append(sum(parts))
        for i, j in pairs:
            to_pair[i, j] = end(layer.to_subject_pairs(box[i])) + end(layer.to_object_pairs(box[j]))
        return to_box, to_pair

    alpha = attend()
    for _ in range(FEATURE_STEPS):
        to_box, to_pair = messages(network.features, z, e, alpha, lambda x: x)
        z, e = [(a + b).relu() for a, b in zip(z, to_box, strict=True)], {p: (e[p] + to_pair[p]).relu() for p in pairs}
        alpha = attend()
    nodes, logits = [network.node_out(a) for a in z], {p: network.pair_out(e[p]) for p in pairs}
    for _ in range(SCORE_STEPS):
        box = [scaled_log((reading.node_logits[i] + nodes[i])[None])[0] for i in range(n)]
        pair = {p: scaled_log(logits[p][None])[0] for p in pairs}
        to_box, to_pair = messages(network.scores, box, pair, alpha, torch.relu)
        nodes = [a + b / 3 for a, b in zip(nodes, to_box, strict=True)]
        logits = {p: logits[p] + to_pair[p] / 2 for p in pairs}
    return torch.stack([logits[p] for p in pairs])


def test_the_convolution_is_that_of_the_equations():
    model = small_system("graph-rcnn").double()
    batch = SceneBatch.of(random_graphs((4,)), given_labels=False)
    assert torch.allclose(model(batch).edges[-1], by_loops(model.network, batch), atol=1e-9)


def test_attention_adds_up_to_one_and_without_scores_is_even():
    network = small_system("graph-rcnn").network
    batch = SceneBatch.of(random_graphs((5, 3)))
    reading = network.reader(batch)
    boxes, pairs = torch.randn(8, 8), torch.randn(batch.num_edges, 8)
    weights = network._weights(reading, boxes, pairs, batch.edge_index)
    for some, index in zip(weights, (batch.edge_index[0], *batch.edge_index), strict=True):
        assert torch.allclose(torch.zeros(8).index_add(0, index, some), torch.ones(8))
    for attention in network.attention:
        torch.nn.init.zeros_(attention.score.weight)
    even = network._weights(reading, boxes, pairs, batch.edge_index)[0]
    assert torch.allclose(even, torch.tensor([1 / 4] * 20 + [1 / 2] * 6))


def test_no_more_than_k_pairs_of_each_image_are_kept():
    batch = SceneBatch.of(random_graphs((5, 2, 4, 0, 1)))
    scores = torch.randn(batch.num_edges)
    kept = kept_pairs(scores, batch, 3)
    for g in range(5):
        mine = slice(batch.edge_ptr[g], batch.edge_ptr[g + 1])
        best = scores[mine].topk(min(3, len(scores[mine]))).indices
        assert kept[mine].nonzero().flatten().tolist() == sorted(best.tolist())
    assert kept_pairs(scores, batch, 20).all()


def test_a_pruned_pair_never_precedes_a_kept_one(monkeypatch):
    monkeypatch.setattr("scenegpi.paper.systems.graph_rcnn.KEPT", 5)
    model = small_system("graph-rcnn")
    batch = SceneBatch.of(random_graphs((5, 6)))
    related = model.network.proposals(model.network.reader(batch))
    kept = kept_pairs(related, batch, 5)
    found = model(batch).edges[-1].softmax(1)
    image = batch.batch[batch.edge_index[0]]
    for g in (0, 1):
        mine = image == g
        assert found[mine & ~kept][:, 1:].max() < found[mine & kept][:, 1:].min()
        assert found[mine & ~kept][:, 0].min() > 0.9


def test_true_pairs_are_kept_in_training(monkeypatch):
    monkeypatch.setattr("scenegpi.paper.systems.graph_rcnn.KEPT", 1)
    model = small_system("graph-rcnn").train()
    batch = SceneBatch.of(random_graphs((6,)))
    edges = model(batch).edges[-1]
    floor = edges[:, 1:].amax(1) == edges[:, 1:].amin(1)
    assert not floor[batch.relation_edge].any()
    assert floor.any()


def test_proposals_know_a_direction():
    network = small_system("graph-rcnn").network
    batch = SceneBatch.of(random_graphs((2,)))
    there, back = network.proposals(network.reader(batch)).tolist()
    assert abs(there - back) > 1e-4
