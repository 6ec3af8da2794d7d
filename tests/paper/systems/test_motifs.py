"""Neural Motifs: orders, the highway LSTM against a loop, the decoder that sees no later label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.model_cases import VOCABULARY, random_graphs
from paper.systems.system_cases import relisted_gap, small_system
from scenegpi.features.batch import SceneBatch
from scenegpi.graph import SceneGraph
from scenegpi.paper.systems.sequences import HighwayStack, make_sequence, reading_order


def order_of(graph, by):
    batch = SceneBatch.of([graph])
    return reading_order(batch, batch.label_dist, by).tolist()


def test_keys_are_sorted_descending_image_by_image():
    graphs = random_graphs((5, 3))
    batch = SceneBatch.of(graphs, given_labels=False)
    for by, key in (
        ("place", lambda graph: graph.boxes[:, 0] + graph.boxes[:, 2]),
        ("size", lambda graph: np.prod(graph.boxes[:, 2:] - graph.boxes[:, :2], axis=1)),
    ):
        first, second = (np.argsort(-key(graph)) for graph in graphs)
        assert reading_order(batch, batch.label_dist, by).tolist() == [*first, *(5 + second)]


@pytest.mark.parametrize("by", ["place", "size"])
def test_boxes_with_equal_keys_are_put_in_order_by_what_they_are(by):
    boxes = [[0, 0, 20, 10], [5, 30, 15, 50], [0, 60, 20, 70], [0, 60, 20, 70]]  # one centre; 0, 1 and 2 one area
    graph = SceneGraph(boxes, [0, 1, 2, 3], VOCABULARY, width=100, height=100)
    found = [[*graph.boxes[k].tolist(), graph.labels[k]] for k in order_of(graph, by)]
    for seed in range(5):
        other = graph.permute(np.random.default_rng(seed).permutation(4))
        assert [[*other.boxes[k].tolist(), other.labels[k]] for k in order_of(other, by)] == found
    assert relisted_gap(small_system("motifs"), graph, "predcls") <= 1e-5


def test_layers_alternate_in_direction():
    torch.manual_seed(0)
    stack = HighwayStack(3, 4, 3).double()
    x, ptr = torch.randn(7, 3, dtype=torch.double), torch.tensor([0, 2, 2, 7])
    order = torch.tensor([1, 0, 4, 6, 2, 3, 5])
    wanted = torch.zeros(7, 4, dtype=torch.double)
    for boxes in ([1, 0], [4, 6, 2, 3, 5]):
        rows = {b: x[b] for b in boxes}
        for k, layer in enumerate(stack.layers):
            h = c = torch.zeros(4, dtype=torch.double)
            out = {}
            for b in boxes[:: -1 if k % 2 else 1]:
                read, state = layer.read(rows[b]).split(4), layer.state(h).split(4)
                i, f, o, r = (torch.sigmoid(read[k] + state[k]) for k in range(4))
                c = i * torch.tanh(read[4] + state[4]) + f * c
                h = r * o * torch.tanh(c) + (1 - r) * read[5]
                out[b] = h
            rows = out
        for b, row in rows.items():
            wanted[b] = row
    assert torch.allclose(stack(x, order, ptr), wanted, atol=1e-12)


def test_sequences_hold_every_box_once_longer_images_first():
    sequence = make_sequence(torch.arange(6), torch.tensor([0, 1, 1, 4, 6]))
    assert (sequence.data.tolist(), sequence.batch_sizes.tolist()) == ([1, 4, 0, 2, 5, 3], [3, 2, 1])
    assert make_sequence(torch.arange(6), torch.tensor([0, 1, 1, 4, 6]), True).data.tolist() == [3, 5, 0, 2, 4, 1]


def test_a_label_is_decoded_without_those_after_it(monkeypatch):
    monkeypatch.setattr("scenegpi.paper.systems.motifs.OBJECT_LAYERS", 1)  # forwards only
    monkeypatch.setattr("scenegpi.paper.systems.motifs.reading_order", lambda batch, dist: torch.arange(len(dist)))
    model = small_system("motifs")
    graph = random_graphs((6,))[0]
    batch = SceneBatch.of([graph], given_labels=False)
    dist = batch.label_dist.clone()
    dist[4:] = dist[4:].flip(1)
    before, after = model(batch).nodes[-1], model(replace(batch, label_dist=dist)).nodes[-1]
    assert torch.allclose(before[:4], after[:4], atol=1e-6)
    dist[1] = dist[1].flip(0)
    assert not torch.allclose(before[2:4], model(replace(batch, label_dist=dist)).nodes[-1][2:4], atol=1e-6)


def test_true_labels_are_fed_back_in_training_only(monkeypatch):
    for name in ("motifs.RECURRENT_DROPOUT", "motifs.DROPOUT", "system.DROPOUT"):
        monkeypatch.setattr(f"scenegpi.paper.systems.{name}", 0.0)
    model = small_system("motifs")
    batch = SceneBatch.of(random_graphs((6,)), given_labels=False)
    other = replace(batch, labels=(batch.labels + 1) % 5)
    torch.manual_seed(0)
    first = model.train()(batch).nodes[-1]
    torch.manual_seed(0)
    assert not torch.allclose(first, model(other).nodes[-1])


def test_a_pair_is_a_product_of_three():
    network = small_system("motifs-no-context").double().network
    batch = SceneBatch.of(random_graphs((4,)))
    reading = network.reader(batch)
    prior, u = reading.prior(slice(None)), reading.pairs(slice(None))
    for k, (i, j) in enumerate(batch.edge_index.t().tolist()):
        a, b = batch.labels[i], batch.labels[j]
        g = network.subject.weight[a] * network.object.weight[b] * network.union(u[k])
        related = network.bias.trust[0] * prior.related[k, :1]
        bias = torch.cat([torch.zeros(1), related + (network.bias.trust[1] * prior.logits[k]).log_softmax(0)])
        assert torch.allclose(network(batch).edges[-1][k], network.pair_out(g) + bias, atol=1e-9)


def test_a_trained_bias_starts_at_the_shares_of_the_training_images():
    model = small_system("motifs", bias="trained")
    counts = model.prior.counts.double()
    counts[..., 0] += 1
    shares = (counts / counts.sum(2, keepdim=True) + 1e-3).log()
    assert torch.allclose(model.network.bias.table.double(), shares.flatten(0, 1), atol=1e-5)
