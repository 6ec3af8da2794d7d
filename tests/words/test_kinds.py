"""Who is not sure whether it is a man or a woman says "person"."""

from __future__ import annotations

import numpy as np
import pytest

from scenegpi.graph import SceneGraph
from scenegpi.prediction import PredictOptions, Predictor
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.kinds import SURE, broad_kinds, broader

WORDS = Vocabulary(("dog", "man", "person", "tree", "woman"), ("on",))


def best(dist: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return dist.argmax(axis=1), dist.max(axis=1)


def test_the_broad_label_has_the_probability_of_its_kinds():
    kinds = broad_kinds(WORDS)
    assert kinds is not None
    dist = np.array([[0.1, 0.4, 0.1, 0.1, 0.3], [0.1, 0.7, 0.1, 0.1, 0.0], [0.5, 0.2, 0.1, 0.0, 0.2]])
    label, score = broader(dist, *best(dist), kinds)
    assert [WORDS.objects[k] for k in label] == ["person", "man", "dog"]
    np.testing.assert_allclose(score, [0.8, 0.7, 0.5])


def test_a_kind_is_said_only_if_it_is_sure():
    kinds = broad_kinds(WORDS)
    assert kinds is not None
    dist = np.random.default_rng(0).dirichlet(np.full(5, 0.5), 200).astype(np.float32)
    label, score = broader(dist, *best(dist), kinds)
    people = dist[:, [1, 2, 4]].sum(axis=1)
    for row, k in enumerate(label):  # what is said is never less likely than what was, and a kind is only said if sure
        assert score[row] >= dist[row].max() - 1e-6
        if WORDS.objects[k] in {"man", "woman"}:
            assert dist[row, k] >= SURE * people[row] - 1e-6


@pytest.mark.parametrize("objects", [("dog", "tree"), ("man", "woman"), ("person", "tree")])
def test_without_a_broad_label_and_its_kinds_nothing_changes(objects):
    assert broad_kinds(Vocabulary(objects, ("on",))) is None


def test_given_labels_stay_and_found_ones_are_broadened_unless_the_output_is_to_be_unchanged():
    words = Predictor("vg150-photo").model.vocabulary
    people = [words.objects.index(name) for name in ("man", "woman", "boy", "girl")]
    rng = np.random.default_rng(1)
    dist = np.full((12, len(words.objects)), 1e-5)
    dist[:, people] = rng.dirichlet(np.full(4, 0.3), 12)
    dist = (dist / dist.sum(1, keepdims=True)).astype(np.float32)
    low = rng.uniform(0, 300, (12, 2))
    boxes = np.concatenate([low, low + rng.uniform(20, 150, (12, 2))], 1)
    said = []
    for tidy in (True, False):
        predictor = Predictor("vg150-photo", options=PredictOptions(tidy=tidy, distributions=True))
        said.append(predictor(boxes=boxes, label_dist=dist, width=500, height=450))
        given = SceneGraph(boxes, np.resize(people, 12), words)
        assert next(predictor.stream([given])).graph.names == given.names
    tidied, unchanged = said
    shares = [row.max() / row[[words.objects.index("person"), *people]].sum() for row in unchanged.label_dist]
    expected = ["person" if share < SURE else name for share, name in zip(shares, unchanged.names, strict=True)]
    assert tidied.names == expected
    assert 0 < expected.count("person") < 12
