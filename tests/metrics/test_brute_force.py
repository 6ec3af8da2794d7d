"""The package against the rules written out in loops, on small random cases that hold all the awkward ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.metrics_brute_force import brute_force
from scenegpi import SceneGraph, Vocabulary
from scenegpi.metrics import Protocol, ZeroShot, scene_graph_recall

CLASSES, PREDICATES = 3, 4
VOCABULARY = Vocabulary([f"c{i}" for i in range(CLASSES)], [f"p{i}" for i in range(PREDICATES)])
# few boxes, so that equal ones are common; the pairs among them overlap by 0, less than, more than and exactly a half
BOXES = [(0, 0, 9, 9), (0, 0, 9, 4), (1, 0, 10, 9), (0, 0, 19, 9), (30, 30, 30, 30), (28.5, 28.5, 31.0, 31.0)]


@st.composite
def targets(draw):
    n = draw(st.integers(0, 4))
    boxes = draw(st.lists(st.sampled_from(BOXES), min_size=n, max_size=n))
    labels = draw(st.lists(st.integers(1, CLASSES), min_size=n, max_size=n))
    rows = []
    if n:
        box, predicate = st.integers(0, n - 1), st.integers(1, PREDICATES)
        rows = draw(st.lists(st.tuples(box, box, predicate), max_size=5))
        rows += draw(st.lists(st.sampled_from(rows), max_size=2)) if rows else []
    return {"boxes": boxes, "labels": labels, "relations": rows}


@st.composite
def predictions(draw, target, task, listed):
    if task == "sgdet":
        n = draw(st.integers(0, 4))
        found = {"boxes": draw(st.lists(st.sampled_from(BOXES), min_size=n, max_size=n))}
    else:
        n = len(target["boxes"])
        found = {}
    if task != "predcls":
        found["labels"] = draw(st.lists(st.integers(1, CLASSES), min_size=n, max_size=n))
        found["scores"] = draw(st.lists(st.sampled_from([0.0, 0.3, 0.5, 1.0]), min_size=n, max_size=n))
    all_pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    pairs = draw(st.lists(st.sampled_from(all_pairs), unique=True, max_size=len(all_pairs))) if all_pairs else []
    if listed:
        chosen = [(s, o, draw(st.integers(1, PREDICATES))) for s, o in pairs]
        found["relations"] = chosen
        found["relation_scores"] = [draw(st.integers(0, 8)) / 8 for _ in chosen]
    else:
        found["pairs"] = pairs
        found["rel_scores"] = []
        for _ in pairs:
            weights = draw(st.lists(st.integers(0, 5), min_size=1 + PREDICATES, max_size=1 + PREDICATES))
            weights[0] += not sum(weights)
            found["rel_scores"].append([w / sum(weights) for w in weights])
    return found


@st.composite
def cases(draw, listed=False):
    task = draw(st.sampled_from(["predcls", "sgcls", "sgdet"]))
    truth = draw(st.lists(targets(), min_size=1, max_size=4))
    found = [draw(predictions(target, task, listed)) for target in truth]
    triplet = st.tuples(st.integers(1, CLASSES), st.integers(1, CLASSES), st.integers(1, PREDICATES))
    return task, found, truth, draw(st.sets(triplet, max_size=12))


def assert_same(figures, expected):
    assert set(figures) == set(expected)
    for name, value in expected.items():
        if math.isnan(value):
            assert math.isnan(figures[name]), name
        else:
            assert figures[name] == pytest.approx(value, abs=1e-12), name


def zero_shot_of(unseen):
    return ZeroShot.unseen(np.array(sorted(unseen), dtype=int).reshape(-1, 3) - 1)


@settings(max_examples=150, deadline=None)
@given(cases(), st.sampled_from(["zero", "skip"]))
def test_every_figure_equals_the_loops(case, empty):
    task, found, truth, unseen = case
    ks, per_pair = (1, 2, 3, 7, 100), (1, 2, PREDICATES)
    protocol = Protocol(task, ks=ks, empty=empty, per_pair=per_pair, pair_k=2)
    result = scene_graph_recall(found, truth, protocol, predicates=PREDICATES, zero_shot=zero_shot_of(unseen))
    assert_same(result.figures, brute_force(found, truth, task, ks, PREDICATES, unseen, empty, per_pair, 2))


@settings(max_examples=80, deadline=None)
@given(cases().filter(lambda case: case[0] != "sgdet"))
def test_the_very_boxes_equal_the_loops(case):
    task, found, truth, unseen = case
    ks = (1, 3, 100)
    protocol = Protocol(task, ks=ks, empty="zero", match="identity")
    result = scene_graph_recall(found, truth, protocol, predicates=PREDICATES, zero_shot=zero_shot_of(unseen))
    expected = brute_force(found, truth, task, ks, PREDICATES, unseen, "zero", identity=True)
    assert_same(result.figures, expected)
    anywhere = scene_graph_recall(found, truth, Protocol(task, ks=ks, empty="zero"), predicates=PREDICATES)
    for name in ("R@1", "R@100", "ngR@100"):
        assert not result.figures[name] > anywhere.figures[name]


@settings(max_examples=80, deadline=None)
@given(cases(listed=True))
def test_chosen_triplets_equal_the_loops(case):
    task, found, truth, unseen = case
    ks = (1, 2, 5)
    result = scene_graph_recall(found, truth, Protocol(task, ks=ks, empty="zero"), predicates=PREDICATES)
    expected = brute_force(found, truth, task, ks, PREDICATES, unseen, "zero")
    assert_same(result.figures, {name: value for name, value in expected.items() if "z" not in name})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_several_predicates_of_a_pair_equal_the_loops(data):
    target = data.draw(targets().filter(lambda t: len(t["boxes"]) > 1))
    n = len(target["boxes"])
    box = st.integers(0, n - 1)
    ends = st.tuples(box, box, st.integers(1, PREDICATES)).filter(lambda row: row[0] != row[1])
    rows = data.draw(st.lists(ends, unique=True, max_size=12))
    # distinct scores: in what order equal ones stand is tested by itself
    order = data.draw(st.permutations(range(len(rows))))
    found = {"relations": rows, "relation_scores": [(place + 1) / 16 for place in order]}
    ks = (1, 2, 5)
    protocol = Protocol(ks=ks, empty="zero", several="best", per_pair=(2,))
    result = scene_graph_recall([found], [target], protocol, predicates=PREDICATES)
    expected = brute_force([found], [target], "predcls", ks, PREDICATES, (), "zero", (2,))
    assert_same(result.figures, {name: value for name, value in expected.items() if "z" not in name})


@settings(max_examples=60, deadline=None)
@given(cases())
def test_scene_graphs_and_dicts_give_the_same(case):
    task, found, truth, unseen = case
    protocol = Protocol(task, ks=(1, 3, 50))
    shot = zero_shot_of(unseen)
    by_dicts = scene_graph_recall(found, truth, protocol, predicates=PREDICATES, zero_shot=shot)
    graphs = [
        SceneGraph(
            np.reshape(t["boxes"], (-1, 4)),
            np.subtract(t["labels"], 1),
            VOCABULARY,
            np.reshape(t["relations"], (-1, 3)) - [0, 0, 1],
        )
        for t in truth
    ]
    predicted = [
        SceneGraph(
            np.reshape(p.get("boxes", t["boxes"]), (-1, 4)),
            np.subtract(p.get("labels", t["labels"]), 1),
            VOCABULARY,
            scores=p.get("scores"),
            pairs=np.reshape(p["pairs"], (-1, 2)),
            pair_dist=np.reshape(p["rel_scores"], (-1, 1 + PREDICATES)),
        )
        for p, t in zip(found, truth, strict=True)
    ]
    assert_same(scene_graph_recall(predicted, graphs, protocol, zero_shot=shot).figures, by_dicts.figures)
    torch = pytest.importorskip("torch")
    tensors = [
        {key: torch.as_tensor(np.array(value)) for key, value in p.items() if len(value) or key != "rel_scores"}
        for p in found
    ]
    by_tensors = scene_graph_recall(tensors, truth, protocol, predicates=PREDICATES, zero_shot=shot)
    assert_same(by_tensors.figures, by_dicts.figures)
