"""The frequency prior as an input: equal to FREQ, and blind to an image's own relations in training."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models.model_cases import VOCABULARY, random_graphs
from scenegpi.features.batch import SceneBatch
from scenegpi.models.prior import CountPrior, log_prior, relation_table


def make(graphs, kind="freq"):
    prior = CountPrior(len(VOCABULARY.objects), 1 + len(VOCABULARY.predicates), kind)
    prior.set_counts(torch.from_numpy(relation_table(graphs)))
    return prior


def test_the_plain_prior_is_freq():
    graphs = random_graphs((5, 7, 4))
    batch = SceneBatch.of(graphs)
    subjects, objects = batch.labels[batch.edge_index]
    expected = log_prior(torch.from_numpy(relation_table(graphs))[subjects, objects].double())
    found = make(graphs)(batch, batch.labels, False)
    assert torch.allclose(found.logits.double(), expected[:, 1:], atol=1e-6)
    assert torch.allclose(found.related[:, 0].double(), expected[:, 1:].logsumexp(1) - expected[:, 0], atol=1e-5)


@pytest.mark.parametrize("kind", ["freq", "backoff"])
def test_left_out_means_counted_without_the_image(kind):
    graphs = random_graphs((5, 7, 4, 6))
    for k, graph in enumerate(graphs):
        rest = graphs[:k] + graphs[k + 1 :]
        batch = SceneBatch.of([graph])
        found = make(graphs, kind)(batch, batch.labels, True)
        expected = make(rest, kind)(batch, batch.labels, False)
        if kind == "freq":
            assert torch.allclose(found.logits, expected.logits, atol=1e-6)
        assert torch.allclose(found.related[:, 1:], expected.related[:, 1:], atol=1e-6)


def test_own_counts_do_not_mix_images():
    graphs = random_graphs((5, 7, 4))
    prior, batch = make(graphs, "backoff"), SceneBatch.of(graphs)
    together = prior(batch, batch.labels, True)
    alone = [prior(one, one.labels, True) for one in (SceneBatch.of([graph]) for graph in graphs)]
    assert torch.allclose(together.logits, torch.cat([out.logits for out in alone]))
    assert torch.allclose(together.related, torch.cat([out.related for out in alone]))


def test_the_back_off_is_a_distribution_that_counts_overrule():
    graphs = random_graphs((5, 7, 4))
    prior, batch = make(graphs, "backoff"), SceneBatch.of(graphs)
    q = prior(batch, batch.labels, False).logits.exp() - 1e-3
    assert torch.allclose(q.sum(1), torch.ones(len(q)), atol=1e-5)
    counts = torch.zeros_like(prior.counts)
    counts[:, :, 2] = 10**6
    prior.set_counts(counts)
    assert (prior(batch, batch.labels, False).logits.argmax(1) == 1).all()


def test_no_counts_at_all_are_no_trouble():
    prior = CountPrior(len(VOCABULARY.objects), 1 + len(VOCABULARY.predicates), "backoff")
    batch = SceneBatch.of(random_graphs((4,)))
    out = prior(batch, batch.labels, True)
    assert np.isfinite(out.logits.numpy()).all()
    assert np.isfinite(out.related.numpy()).all()
