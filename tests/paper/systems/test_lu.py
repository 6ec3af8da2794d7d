"""Lu et al.: a product of two scores, three losses against brute force, an order that probabilities keep."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch

from models.model_cases import random_graphs
from paper.systems.system_cases import small_system
from scenegpi.features.batch import SceneBatch


def test_a_score_is_vision_times_words():
    network = small_system("lu").double().network
    batch = SceneBatch.of(random_graphs((4,)))
    out, u = network(batch), network.reader(batch).pairs(slice(None))
    for k, (i, j) in enumerate(batch.edge_index.t().tolist()):
        words = network.label_words[batch.labels[i]], network.label_words[batch.labels[j]]
        language = network.as_subject(words[0]) + network.as_object(words[1])
        seen = network.pair_out(network.visual(u[k]).relu())
        score = (1 + torch.log1p(seen.exp())) * language
        assert torch.allclose(out.extra["scores"][k], score, atol=1e-9)


def test_probabilities_keep_the_order_of_the_scores_over_the_image():
    network = small_system("lu").network
    scores = torch.randn(30, 3) * 8
    found = network.logits(scores).exp()
    assert torch.allclose(found.sum(1), torch.ones(30))
    flat, probability = scores.flatten().double(), network.logits(scores.double())[:, 1:].flatten()
    assert torch.equal(flat.argsort(), probability.argsort())


def test_two_negative_factors_make_no_large_score():
    model = small_system("lu")
    network = model.network
    with torch.no_grad():
        network.pair_out.weight.zero_()
        network.pair_out.bias.fill_(-3.0)
        network.as_object.weight.zero_()
        network.as_subject.weight.zero_()
        network.as_subject.bias.copy_(torch.tensor([-2.0, 0.5, 1.0]))
    batch = SceneBatch.of(random_graphs((2,)))
    assert network(batch).edges[-1][0, 1:].argmax() == 2


def test_subject_and_object_are_not_the_same():
    model = small_system("lu")
    graph = random_graphs((2,))[0].with_fields(labels=np.array([0, 3]))
    there, back = model(SceneBatch.of([graph])).edges[-1]
    assert (there - back).abs().max() > 1e-4


def test_every_true_relation_is_to_beat_the_best_of_the_rest():
    for negatives in ("pairs", "none"):
        network = small_system("lu", negatives=negatives).network
        batch = SceneBatch.of(random_graphs((4, 3)))
        scores = torch.randn(batch.num_edges, 3)
        true = set(zip(batch.relation_edge.tolist(), (batch.relation_class - 1).tolist(), strict=True))
        wanted = [0.0, 0.0]
        image = batch.batch[batch.edge_index[0]].tolist()
        annotated = {e for e, _ in true}
        for (edge, r), count in zip(
            zip(batch.relation_edge.tolist(), (batch.relation_class - 1).tolist(), strict=True),
            batch.relation_count.tolist(),
            strict=True,
        ):
            rest = [
                float(scores[e, k])
                for e in range(batch.num_edges)
                for k in range(3)
                if image[e] == image[edge] and (e, k) not in true and (negatives == "pairs" or e in annotated)
            ]
            wanted[image[edge]] += count * max(0.0, 1 - float(scores[edge, r]) + max(rest))
        assert torch.allclose(network.ranking(batch, scores), torch.tensor(wanted), rtol=1e-5)


def test_frequent_relations_are_to_score_higher():
    network = small_system("lu").network
    torch.manual_seed(3)
    first, second = network.sample(200)
    seen = Counter(
        (int(graph.labels[s]), int(graph.labels[o]), p)
        for graph in random_graphs((4, 6, 3, 8), seed=5)  # those that the system was prepared with
        for s, o, p in graph.relations.tolist()
    )
    assert {tuple(row) for row in network.known.tolist()} == set(seen)
    assert all(tuple(row) in seen for row in first.tolist())
    assert 0 < sum(tuple(row) in seen for row in second.tolist()) < 200
    wanted, pairs = 0.0, 0
    for a, b in zip(first, second, strict=True):
        often = seen[tuple(a.tolist())], seen[tuple(b.tolist())]
        if often[0] != often[1]:
            more, less = (a, b) if often[0] > often[1] else (b, a)
            gap = float((network.language(less[None]) - network.language(more[None])).detach())
            wanted, pairs = wanted + max(0.0, gap + 1), pairs + 1
    assert abs(float(network.frequency(first, second).detach()) - wanted / pairs) < 1e-4


def test_similarity_is_a_variance_that_a_constant_does_not_change():
    network = small_system("lu").network
    first, second = network.sample(100)
    before = float(network.similarity(first, second).detach())
    assert before > 0
    network.as_subject.bias.data += 5
    assert abs(float(network.similarity(first, second).detach()) - before) < 1e-3 * before
    for weight in (network.as_subject.weight, network.as_object.weight, network.as_subject.bias):
        torch.nn.init.zeros_(weight)
    assert float(network.similarity(first, second).detach()) == 0


def test_the_visual_network_reads_no_label():
    model = small_system("lu-visual", counts=False)
    graph = random_graphs((4,))[0].with_fields(labels=np.array([0, 1, 2, 3]))
    other = graph.with_fields(labels=np.array([1, 2, 3, 4]))  # different labels, none equal: no duplicates
    first, second = (model(SceneBatch.of([each])).edges[-1] for each in (graph, other))
    assert torch.equal(first, second)
