"""The streaming bootstrap against the textbook one, and paired comparison."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from metrics.metrics_cases import PREDICATES, random_images
from scenegpi.errors import MetricError
from scenegpi.metrics import Plan, Protocol, RecallState, compare, scene_graph_recall
from scenegpi.metrics.counts import count
from scenegpi.metrics.intervals import percentile_interval, poisson_weights
from scenegpi.metrics.state import paired

PROTOCOL = Protocol(ks=(3,))


def test_weights_are_poisson_independent_and_a_function_of_the_key():
    keys = np.random.default_rng(0).integers(2**63, size=2000).astype(np.uint64)
    weights = poisson_weights(keys, 401)
    assert weights.shape == (2000, 401)
    shares = np.bincount(weights.ravel(), minlength=8)[:4] / weights.size
    np.testing.assert_allclose(shares, np.exp(-1) / np.array([1, 1, 2, 6]), atol=2e-3)
    centred = weights - weights.mean()
    assert abs(np.corrcoef(centred[:, :20].T) - np.eye(20)).max() < 0.12
    assert abs(np.corrcoef(centred[:20]) - np.eye(20)).max() < 0.25
    np.testing.assert_array_equal(poisson_weights(keys[::-1], 401)[::-1], weights)
    np.testing.assert_array_equal(poisson_weights(keys, 7), weights[:, :7])
    assert (poisson_weights(keys, 401, seed=1) != weights).mean() > 0.5
    neighbours = poisson_weights(np.arange(2000, dtype=np.uint64), 400)
    assert neighbours.mean() == pytest.approx(1, abs=5e-3)
    assert neighbours.var() == pytest.approx(1, abs=2e-2)


def test_interval_agrees_with_the_exact_bootstrap():
    predictions, targets = random_images(0, 150)
    plan = Plan(PROTOCOL, PREDICATES, bootstrap=2000)
    result = RecallState(plan).update(predictions, targets).result()
    counts = count(list(plan.match(paired(predictions, targets))), plan.layout, None)
    related = counts[:, plan.layout.blocks["images"]][:, 0] > 0
    recall = counts[related][:, plan.layout.blocks["R@3"]][:, 0]
    rng = np.random.default_rng(1)
    drawn = rng.integers(len(recall), size=(4000, len(recall)))
    exact = percentile_interval(recall[drawn].mean(axis=1))
    width = exact[1] - exact[0]
    assert result.intervals["R@3"] == pytest.approx(exact, abs=0.12 * width)
    assert result.intervals["R@3"][0] < result.figures["R@3"] < result.intervals["R@3"][1]


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    everything = scene_graph_recall(*random_images(99, 1500), PROTOCOL)
    covered, trials = 0, 40
    for seed in range(trials):
        low, high = scene_graph_recall(*random_images(seed, 50), PROTOCOL, bootstrap=300).intervals["R@3"]
        covered += low <= everything.figures["R@3"] <= high
    assert covered / trials >= 0.85


@pytest.mark.parametrize("found", [True, False])
def test_rare_predicates_do_not_pull_the_interval_of_mean_recall_off(found):
    """A predicate in one image is drawn by two replicates of three only; the others say nothing about it."""
    predictions, targets = random_images(3, 100)
    for prediction in predictions:
        prediction["rel_scores"] = np.hstack([prediction["rel_scores"], np.zeros((len(prediction["pairs"]), 4))])
    for rare in range(PREDICATES + 1, PREDICATES + 5):
        dist = np.eye(PREDICATES + 5)[[rare if found else 0]]
        predictions.append({"pairs": [[0, 1]], "rel_scores": dist})
        boxes = [[0, 0, 9, 9], [0, 0, 9, 9]]
        targets.append({"boxes": boxes, "labels": [1, 2], "relations": [[0, 1, rare]], "image_id": rare})
    result = scene_graph_recall(predictions, targets, PROTOCOL, bootstrap=1000)
    low, high = result.intervals["mR@3"]
    assert low < result.figures["mR@3"] < high
    assert result.per_predicate["R@3"]["predicate 10"] == found
    assert np.median(result.replicates["mR@3"]) == pytest.approx(result.figures["mR@3"], abs=0.1 * (high - low))


def test_same_system_does_not_differ_from_itself():
    a = scene_graph_recall(*random_images(0, 40), PROTOCOL, bootstrap=200)
    found = compare(a, a)["R@3"]
    assert (found.difference, found.low, found.high, found.p_value) == (0, 0, 0, 1)


def test_paired_comparison_sees_what_two_intervals_do_not():
    weak = scene_graph_recall(*random_images(0, 120, skill=3.0), PROTOCOL, bootstrap=1000)
    strong = scene_graph_recall(*random_images(0, 120, skill=3.6), PROTOCOL, bootstrap=1000)
    found = compare(weak, strong)["R@3"]
    assert found.difference == pytest.approx(strong.figures["R@3"] - weak.figures["R@3"])
    assert weak.intervals["R@3"][1] > strong.intervals["R@3"][0]
    assert found.low > 0
    assert found.p_value < 0.05
    back = compare(strong, weak)["R@3"]
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))
    assert "R@3: +" in str(found)


def test_comparison_refuses_what_is_not_paired():
    a = scene_graph_recall(*random_images(0, 10), PROTOCOL, bootstrap=20)
    with pytest.raises(MetricError, match="different images"):
        compare(a, scene_graph_recall(*random_images(1, 10), PROTOCOL, bootstrap=20))
    with pytest.raises(MetricError, match="different protocols"):
        compare(a, replace(a, protocol=Protocol(ks=(3,), iou=0.3)))
    with pytest.raises(MetricError, match="replicates"):
        compare(a, scene_graph_recall(*random_images(0, 10), PROTOCOL))
    with pytest.raises(MetricError, match="seeds"):
        compare(a, scene_graph_recall(*random_images(0, 10), PROTOCOL, bootstrap=20, seed=1))


def test_few_images_give_an_interval_without_the_empty_draws():
    result = scene_graph_recall(*random_images(8, 1), PROTOCOL, bootstrap=200)
    low, high = result.intervals["R@3"]
    assert (low, high) == pytest.approx((result.figures["R@3"],) * 2)
