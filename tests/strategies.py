"""Random scene graphs for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from scenegpi import SceneGraph, Vocabulary

VOCABULARY = Vocabulary(["man", "hat", "straße", "a b"], ["on", "wearing", "near"], "tiny")


@st.composite
def graphs(
    draw,
    vocabulary=VOCABULARY,
    distributions=None,
    attributed=True,
    image_id=None,
    sized=True,
    whole=False,
    max_boxes=6,
):
    """A valid graph. `distributions`: None lets hypothesis choose; `whole`: boxes on whole pixels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, size = draw(st.integers(0, max_boxes)), draw(st.sampled_from([np.float32, np.float64]))
    corners = rng.uniform(-5, 100, (n, 4)) if not whole else rng.integers(0, 100, (n, 4)).astype(float)
    boxes = np.concatenate([np.minimum(corners[:, :2], corners[:, 2:]), np.maximum(corners[:, :2], corners[:, 2:])], 1)
    r = draw(st.integers(0, 5)) if n else 0
    ends, predicates = rng.integers(0, max(n, 1), (r, 2)), rng.integers(0, len(vocabulary.predicates), (r, 1))
    fields = {}
    if distributions if distributions is not None else draw(st.booleans()):
        pairs = np.array([(i, j) for i in range(n) for j in range(n) if i != j]).reshape(-1, 2)
        columns = 1 + len(vocabulary.predicates)
        fields = {
            "label_dist": rng.dirichlet(np.ones(len(vocabulary.objects)), n).astype(size),
            "pairs": pairs,
            "pair_dist": rng.dirichlet(np.ones(columns), len(pairs)).astype(size),
        }
    if draw(st.booleans()):
        fields |= {"scores": rng.uniform(size=n).astype(size), "relation_scores": rng.uniform(size=r).astype(size)}
    if attributed and draw(st.booleans()):
        named = st.dictionaries(st.text(min_size=1, max_size=4).filter(str.strip), st.floats(0, 1), max_size=2)
        fields["attributes"] = draw(st.lists(named, min_size=n, max_size=n))
    if sized:
        fields |= {"width": draw(st.integers(1, 3000)), "height": draw(st.integers(1, 3000))}
    return SceneGraph(
        boxes,
        rng.integers(0, len(vocabulary.objects), n),
        vocabulary,
        np.concatenate([ends, predicates], axis=1),
        image_id=draw(st.one_of(st.integers(-(2**40), 2**40), st.text(max_size=8))) if image_id is None else image_id,
        file=draw(st.one_of(st.none(), st.text(max_size=12))),
        **fields,
    )


def small(**changes) -> SceneGraph:
    """Three boxes and three relations, with the fields that are given changed."""
    fields = {
        "boxes": [[0, 0, 10, 20], [2, 3, 4, 5], [1, 1, 1, 9]],
        "labels": [0, 1, 0],
        "vocabulary": VOCABULARY,
        "relations": [[0, 1, 1], [1, 0, 0], [0, 1, 1]],
        "image_id": 7,
        "width": 30,
        "height": 20,
    }
    return SceneGraph(**{**fields, **changes})
