"""Streaming, merging, pickling: the same figures, and a state that does not grow."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

from metrics.metrics_cases import PREDICATES, flat, random_images
from scenegpi.errors import MetricError
from scenegpi.metrics import (
    Plan,
    Protocol,
    RecallState,
    Result,
    ZeroShot,
    predicate_groups,
    scene_graph_recall,
)
from scenegpi.metrics import state as state_module

PLAN = Plan(
    Protocol(ks=(2, 5), per_pair=(1,)),
    PREDICATES,
    ZeroShot.not_in([[0, 1, 2]]),
    {"head": [0, 1], "tail": [2, 3, 4, 5]},
    bootstrap=50,
)


def assert_same(a, b):
    assert a.figures == pytest.approx(b.figures, abs=1e-12)
    assert a.counts == b.counts
    assert a.fingerprint == b.fingerprint
    for name, values in a.replicates.items():
        np.testing.assert_allclose(values, b.replicates[name], atol=1e-12)


def test_parts_merge_to_the_whole():
    predictions, targets = random_images(0, 60)
    whole = RecallState(PLAN).update(predictions, targets)
    parts = [RecallState(PLAN).update(predictions[i::3], targets[i::3]) for i in range(3)]
    pickled = [pickle.loads(pickle.dumps(part)) for part in parts]
    assert_same((pickled[2] + pickled[0] + pickled[1]).result(), whole.result())
    one_by_one = RecallState(PLAN)
    for prediction, target in zip(predictions, targets, strict=True):
        one_by_one.update([prediction], [target])
    assert_same(one_by_one.result(), whole.result())


def test_chunks_do_not_matter(monkeypatch):
    predictions, targets = random_images(1, 20)
    whole = RecallState(PLAN).update(predictions, targets).result()
    monkeypatch.setattr(state_module, "CHUNK", 3)
    assert_same(RecallState(PLAN).stream(zip(predictions, targets, strict=True)).result(), whole)


def test_the_state_does_not_grow():
    predictions, targets = random_images(2, 40)
    state = RecallState(PLAN).update(predictions[:2], targets[:2])
    before = len(pickle.dumps(state))
    state.update(predictions[2:], targets[2:])
    assert len(pickle.dumps(state)) <= before + 16


def test_states_of_different_evaluations_do_not_merge():
    for other in (
        Plan(replace(PLAN.protocol, task="sgcls"), PREDICATES, PLAN.zero_shot, PLAN.groups, 50),
        Plan(PLAN.protocol, PREDICATES, PLAN.zero_shot, PLAN.groups, 50, seed=1),
        Plan(PLAN.protocol, PREDICATES, ZeroShot.unseen([[0, 1, 2]]), PLAN.groups, 50),
        Plan(PLAN.protocol, PREDICATES, None, PLAN.groups, 50),
    ):
        with pytest.raises(MetricError, match="merge"):
            RecallState(PLAN).merge(RecallState(other))


def test_nothing_to_count_is_nan_and_null():
    result = RecallState(PLAN).result()
    assert all(np.isnan(value) for value in result.figures.values())
    assert set(json.loads(json.dumps(result.to_dict(), allow_nan=False))["figures"].values()) == {None}


def test_result_round_trips_through_json():
    predictions, targets = random_images(3, 12)
    result = RecallState(PLAN).update(predictions, targets).result()
    again = Result.from_dict(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    assert again.protocol == result.protocol
    assert again.figures == pytest.approx(result.figures, nan_ok=True)
    assert flat(again.intervals) == pytest.approx(flat(result.intervals), nan_ok=True)
    assert (again.counts, again.notes, again.fingerprint) == (result.counts, result.notes, result.fingerprint)
    whole = result.to_dict()
    wrong = [{"figures": 3}, {"figures": {"R@20": {}}}, {"fingerprint": None}, {"intervals": {"R@20": [{}, 1]}}]
    wrong += [{"by_convention": {"zero": 1.0}}, {"per_predicate": {"on": {"R@20": [1]}}}]
    for broken in ({}, *({**whole, **each} for each in wrong)):
        with pytest.raises(MetricError, match="result"):
            Result.from_dict(broken)


def test_one_constraint_alone_gives_its_own_figures():
    predictions, targets = random_images(4, 10)
    both = scene_graph_recall(predictions, targets, Protocol(ks=(3,)))
    for constraint, prefix in (("graph", ""), ("none", "ng")):
        alone = scene_graph_recall(predictions, targets, Protocol(ks=(3,), constraint=constraint))
        shared = {name: both.figures[name] for name in alone.figures}
        assert alone.figures == pytest.approx(shared, abs=1e-12, nan_ok=True)
        assert f"{prefix}R@3" in alone.figures
        assert len(alone.figures) < len(both.figures)


def test_per_predicate_figures_average_to_the_mean_recall():
    predictions, targets = random_images(5, 40)
    result = scene_graph_recall(predictions, targets, Protocol(ks=(3,)))
    for prefix in ("", "ng"):
        table = result.per_predicate[f"{prefix}R@3"]
        assert np.mean(list(table.values())) == pytest.approx(result.figures[f"{prefix}mR@3"])
    rows = result.per_predicate["relations"]
    weighted = sum(result.per_predicate["pair-R@5"][name] * count for name, count in rows.items())
    assert weighted / sum(rows.values()) == pytest.approx(result.figures["pair-R@5"])
    assert sum(rows.values()) == result.counts["relations"]


def test_groups_split_by_training_frequency():
    counts = np.arange(50)[::-1]
    groups = predicate_groups(counts)
    assert {name: len(members) for name, members in groups.items()} == {"head": 16, "body": 17, "tail": 17}
    assert groups["head"] == list(range(16))
    predictions, targets = random_images(6, 40)
    result = scene_graph_recall(predictions, targets, Protocol(ks=(3,)), groups={"two": [1, 4]})
    table = list(result.per_predicate["R@3"].values())
    assert result.figures["two-mR@3"] == pytest.approx((table[1] + table[4]) / 2)
    with pytest.raises(MetricError, match=r"groups\.bad"):
        scene_graph_recall(predictions, targets, groups={"bad": [PREDICATES]})


def test_pairs_that_were_given_away_are_named():
    predictions, targets = random_images(7, 20)
    kept = []
    for prediction, target in zip(predictions, targets, strict=True):
        true = {tuple(row[:2]) for row in target["relations"].tolist()}
        rows = [i for i, pair in enumerate(prediction["pairs"].tolist()) if tuple(pair) in true]
        kept.append({key: value[rows] for key, value in prediction.items()})
    assert any("given away" in note for note in scene_graph_recall(kept, targets, predicates=PREDICATES).notes)
    assert not scene_graph_recall(predictions, targets).notes
