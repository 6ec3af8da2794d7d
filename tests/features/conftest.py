"""Graphs to test on: random images of any size, ties included."""

from collections.abc import Callable

import numpy as np
import pytest

from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary


def random_graph(rng: np.random.Generator, n: int, vocabulary: Vocabulary, dist: bool = False, **extra) -> SceneGraph:
    """n boxes on a coarse grid (so that equal areas and centres happen), relations with repeats."""
    low = rng.integers(0, 12, (n, 2)) * 8.0
    boxes = np.concatenate([low, low + rng.integers(0, 8, (n, 2)) * 8.0], 1)
    c, p = len(vocabulary.objects), len(vocabulary.predicates)
    if n:
        relations = np.stack([rng.integers(0, n, 2 * n), rng.integers(0, n, 2 * n), rng.integers(0, p, 2 * n)], 1)
        extra.setdefault("relations", relations)
    if dist and n:
        pairs = np.argwhere(~np.eye(n, dtype=bool))
        extra |= {"label_dist": rng.dirichlet(np.ones(c), n).astype(np.float32)}
        extra |= {"pairs": pairs, "pair_dist": rng.dirichlet(np.ones(1 + p), len(pairs)).astype(np.float32)}
    return SceneGraph(boxes, rng.integers(0, c, n), vocabulary, width=200, height=160, **extra)


@pytest.fixture
def make_graph() -> Callable[..., SceneGraph]:
    return random_graph


@pytest.fixture
def vocabulary() -> Vocabulary:
    return Vocabulary(["dog", "man", "street", "traffic light"], ["on", "wearing", "next to"])


@pytest.fixture
def graphs(vocabulary: Vocabulary) -> list[SceneGraph]:
    rng = np.random.default_rng(0)
    return [random_graph(rng, n, vocabulary, dist=True, image_id=n) for n in (3, 1, 0, 7, 12, 2)]
