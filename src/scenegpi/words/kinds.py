"""Labels that are kinds of another one: who is not sure whether it is a man or a woman says "person".

kinds = kinds_of(vocabulary)
label, score = broader(dist, label, score, kinds.members, kinds.broad)
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenegpi.vocabulary import Vocabulary

KINDS = {"person": ("man", "woman", "boy", "girl", "child", "kid", "guy", "lady", "player", "skier")}
SURE = 0.6
"""A kind is named if it has this share of its broad label's probability: below it "man" and "woman" are mistaken for
each other too often."""


class Kinds(NamedTuple):
    """For C labels: `members` (C, C), row l marks what counts as the broad label of l; `broad` (C,) names that label.

    A label without a broad one is its own.
    """

    members: NDArray[np.float32]
    broad: NDArray[np.int64]


@lru_cache(maxsize=64)
def kinds_of(vocabulary: Vocabulary) -> Kinds | None:
    """None where no label of the vocabulary is a kind of another."""
    number = {name: k for k, name in enumerate(vocabulary.objects)}
    members, broad = np.eye(len(number), dtype=np.float32), np.arange(len(number))
    for name, kinds in KINDS.items():
        some = [number[each] for each in (name, *kinds) if each in number]
        if name in number and len(some) > 1:
            members[np.ix_(some, some)] = 1
            broad[some] = number[name]
    return None if (broad == np.arange(len(broad))).all() else Kinds(members, broad)


def broader(dist: Any, label: Any, score: Any, members: Any, broad: Any) -> tuple[Any, Any]:
    """Labels (N,) and their scores (N,), with broad labels where the kind is not sure; `dist` is (N, C).

    NumPy arrays or tensors, all of one sort.
    """
    whole = (dist * members[label]).sum(1)
    unsure = score < SURE * whole
    return label + unsure * (broad[label] - label), score + unsure * (whole - score)
