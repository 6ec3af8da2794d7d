"""Our figures under `match="sgbench"` and those of the package of that name, on the same images."""

from __future__ import annotations

import math

import numpy as np
import pytest

from scenegpi import SceneGraph, Vocabulary
from scenegpi.metrics import Protocol, scene_graph_recall

sgbench = pytest.importorskip("sgbench", reason="pip install --no-deps sgbench")
WORDS = Vocabulary(["a", "b", "c"], ["p", "q", "r", "s"])
KS = (2, 5, 20)


def images(seed: int, count: int = 40) -> list[tuple[SceneGraph, SceneGraph]]:
    """(found, truth): boxes moved, some of them twice, some labels wrong, rows repeated."""
    rng = np.random.default_rng(seed)
    out = []
    for number in range(count):
        n = int(rng.integers(3, 7))
        corners = rng.integers(0, 12, (n, 2))
        boxes = np.concatenate([corners, corners + rng.integers(2, 9, (n, 2))], axis=1).astype(float)
        labels = rng.integers(0, 3, n)
        rows = np.column_stack([rng.integers(0, n, (6, 2)), rng.integers(0, 4, 6)])
        rows = rows[rows[:, 0] != rows[:, 1]]
        truth = SceneGraph(boxes, labels, WORDS, np.concatenate([rows, rows[:1]]), image_id=number)
        again = np.concatenate([np.arange(n), rng.integers(0, n, 3)])
        moved = boxes[again] + rng.integers(-1, 2, (n + 3, 4)) * [0, 0, 1, 1]
        said = np.where(rng.random(n + 3) < 0.2, rng.integers(0, 3, n + 3), labels[again])
        pairs = np.array([(i, j) for i in range(n + 3) for j in range(n + 3) if i != j])
        chosen = pairs[rng.permutation(len(pairs))[:25]]
        links = np.column_stack([chosen, rng.integers(0, 4, len(chosen))])
        scores = np.sort(rng.random(len(links)))[::-1]
        out.append((SceneGraph(moved, said, WORDS, links, relation_scores=scores, image_id=number), truth))
    return out


@pytest.mark.parametrize("seed", [0, 1])
def test_every_figure_equals_that_of_the_package(seed):
    found, truth = zip(*images(seed), strict=True)
    ours = scene_graph_recall(found, truth, Protocol("sgdet", ks=KS, match="sgbench"), bootstrap=5)
    theirs: dict[str, list] = {}
    for a, b in zip(found, truth, strict=True):
        rows = np.unique(b.relations, axis=0)
        if not len(rows):
            continue
        matched = sgbench.match_instances(b.boxes, b.labels, a.boxes, a.labels)
        triplets = sgbench.remap_triplets(matched, a.relations)
        theirs.setdefault("InstR", []).append(sgbench.instance_recall(len(b), matched))
        for k in KS:
            theirs.setdefault(f"R@{k}", []).append(sgbench.recall(k, False, rows, triplets, 4))
            theirs.setdefault(f"occurring-mR@{k}", []).append(sgbench.recall(k, True, rows, triplets, 4))
            if len(rows) <= k:  # the package looks at the first K pairs of the ground truth only
                theirs.setdefault(f"PR@{k}", []).append(sgbench.pair_recall(k, rows, triplets))
    for name, values in theirs.items():
        if name.startswith("PR") and len(values) < len(theirs["InstR"]):
            continue
        wanted = np.mean(np.nanmean(values, axis=0)) if "mR" in name else np.mean(values)
        assert ours.figures[name] == pytest.approx(wanted, abs=1e-12), name
        assert name in ours.intervals
    assert len(theirs["PR@20"]) == len(theirs["InstR"])
    assert 0.1 < ours.figures["R@20"] < ours.figures["PR@20"] < 1
    assert "SGBench" in str(ours.protocol)


def test_images_without_predictions_or_objects():
    none = SceneGraph(np.zeros((0, 4)), [], WORDS)
    (found, truth), *_ = images(3, 1)
    protocol = Protocol("sgdet", ks=KS, match="sgbench")
    half = scene_graph_recall([found, none], [truth, truth], protocol)
    whole = scene_graph_recall([found], [truth], protocol)
    for name in ("R@20", "PR@20", "InstR"):
        assert half.figures[name] == pytest.approx(whole.figures[name] / 2)
    nothing = scene_graph_recall([found], [none], protocol)
    assert math.isnan(nothing.figures["InstR"])
    alone = scene_graph_recall([found], [truth], Protocol("sgdet", "none", KS, match="sgbench"))
    assert "InstR" in alone.figures
    assert not {"PR@20", "F1@20"} & alone.figures.keys()


def test_two_matchings_are_told_apart():
    said = Protocol("sgdet").difference(Protocol("sgdet", match="sgbench"))
    assert len(said) == 1
    assert "SGBench" in said[0]
