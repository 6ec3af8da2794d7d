"""Labels that are kinds of another one: if it is not certain whether it is a man or a woman, say "person".

kinds = broad_kinds(vocabulary)
label, score = broader(dist, label, score, kinds)
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenegpi.vocabulary import Vocabulary
from scenegpi.words.forms import noun_forms
from scenegpi.words.label_map_rules import reviewed

Array = NDArray[Any]
BROAD = "person"
SURE = 0.7
"""A kind is named if it has this fraction of its broad label's probability: below that, "man" and "woman" are confused
too often."""


class Kinds(NamedTuple):
    """For C labels: `members` (C, C), whose row l marks all kinds of l's broad label; `broad` (C,) is that label.

    A label without a broad one is its own.
    """

    members: NDArray[np.float32]
    broad: NDArray[np.int64]


@lru_cache(maxsize=64)
def broad_kinds(vocabulary: Vocabulary) -> Kinds | None:
    """None if no label of the vocabulary is a kind of another."""
    kinds, several = reviewed().kinds, set(noun_forms(BROAD))  # "people" are not a kind of person
    some = [
        k for k, name in enumerate(vocabulary.objects) if name not in several and BROAD in (name, *kinds.get(name, ()))
    ]
    if BROAD not in vocabulary.object_index or len(some) < 2:
        return None
    members, broad = np.eye(len(vocabulary.objects), dtype=np.float32), np.arange(len(vocabulary.objects))
    members[np.ix_(some, some)] = 1
    broad[some] = vocabulary.object_index[BROAD]
    return Kinds(members, broad)


def broader(dist: Array, label: Array, score: Array, kinds: Kinds) -> tuple[Array, Array]:
    """Labels (N,) and their scores (N,), with broad labels where the kind is uncertain; `dist` is (N, C)."""
    whole = (dist * kinds.members[label]).sum(1)
    unsure = score < SURE * whole
    return np.where(unsure, kinds.broad[label], label), np.where(unsure, whole, score)
