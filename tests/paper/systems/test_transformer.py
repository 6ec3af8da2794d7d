"""The Transformer against loops over boxes and heads."""

from __future__ import annotations

import torch

from models.model_cases import random_graphs
from paper.systems.system_cases import small_system
from scenegpi.features.batch import SceneBatch
from scenegpi.paper.systems.sequences import Padding
from scenegpi.paper.systems.transformer import HEADS


def layer_by_loops(layer, x):
    """x (n, d) of one image, head by head and box by box."""
    n, d = x.shape
    size = d // HEADS
    message = torch.zeros_like(x)
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        q, k, v = (each[:, part] for each in layer.read(x).chunk(3, 1))
        for i in range(n):
            scores = torch.stack([q[i] @ k[j] / size**0.5 for j in range(n)])
            message[i, part] = sum(w * v[j] for j, w in enumerate(scores.softmax(0)))
    x = layer.norm(x + layer.attended(message))
    return layer.norm_out(x + layer.network(x))


def test_attention_and_pairs_are_those_of_the_equations():
    network = small_system("transformer").double().network
    batch = SceneBatch.of(random_graphs((5,)))
    reading = network.reader(batch)
    z = network.enter(reading.nodes)
    for layer in network.objects:
        z = layer_by_loops(layer, z)
    e = network.enter_again(torch.cat([reading.nodes, z, network.label.weight[batch.labels]], 1))
    for layer in network.relations:
        e = layer_by_loops(layer, e)
    s, o = network.ends(e).chunk(2, 1)
    out = network(batch).edges[-1]
    bias = network.bias(reading, batch.labels, slice(None), torch.zeros_like(out))
    for k, (i, j) in enumerate(batch.edge_index.t().tolist()):
        both = torch.cat([s[i], o[j]])
        g = network.product(both.clone()) * network.union(reading.pairs(slice(None))[k])
        wanted = network.pair_out(g) + network.plain_out(both.clone()) + bias[k]
        assert torch.allclose(out[k], wanted, atol=1e-9)


def test_padding_changes_nothing():
    batch = SceneBatch.of(random_graphs((2, 0, 5, 1)))
    places = Padding(batch.batch, batch.ptr)
    x = torch.randn(8, 3)
    assert places.mask.sum(1).tolist() == [2, 1, 5, 1]  # an image without boxes has one of zeros
    assert torch.equal(places.flat(places.pad(x)), x)
    assert not places.pad(x)[~places.mask].any()
