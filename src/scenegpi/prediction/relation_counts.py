r"""Counts of training relations: how common a predicate is, and which labels it relates.

A common predicate ("on", "has") says little. With t from 0 to 1 a pair's predicates are weighted by how rare they are,
and P(related) does not change:

.. math:: P_t(r) = P(\text{related}) \, \frac{P(r) / f_r^t}{\sum_{r'} P(r') / f_{r'}^t}, \qquad
          f_r = \text{share of predicate } r \text{ among training relations}.

A relation whose subject, or whose object, never had that role in training (a person *worn*, an umbrella that *wears*)
is implausible.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenegpi.models.build import SceneModel
from scenegpi.models.prior import CountPrior

CHUNK = 1 << 16
"""Pairs that are weighted at once."""


class RelationCounts(NamedTuple):
    """`shares` (P,) of the predicates; `as_subject`, `as_object` (C, P), whether a label ever had that role."""

    shares: NDArray[np.float64]
    as_subject: NDArray[np.bool_]
    as_object: NDArray[np.bool_]

    @classmethod
    def of(cls, model: SceneModel) -> RelationCounts | None:
        """Of the training images that a model counted; None where it counted none."""
        prior = model.prior
        if not isinstance(prior, CountPrior):
            return None
        subject, object_ = (part[:, 1:].double().cpu().numpy() for part in (prior.by_subject, prior.by_object))
        total = subject.sum(axis=0) + 1
        return cls(total / total.sum(), subject > 0, object_ > 0)

    def informative(self, edges: NDArray[np.floating], power: float) -> NDArray[np.float32]:
        """edges (E, 1 + P), column 0 "no relation" -> P_t of the same shape."""
        if not power or not len(edges):
            return np.asarray(edges, dtype=np.float32)
        out = np.array(edges, dtype=np.float32)
        for start in range(0, len(out), CHUNK):
            part = out[start : start + CHUNK, 1:]
            weighed = part / self.shares**power
            total = np.maximum(weighed.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
            part[:] = weighed / total * part.sum(axis=1, keepdims=True)
        return out

    def absurd(
        self, subjects: NDArray[np.integer], objects: NDArray[np.integer], predicates: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """(R,) whether a label of a relation never had its role; subjects, objects (R,) labels, predicates (R,)."""
        return np.asarray(~(self.as_subject[subjects, predicates] & self.as_object[objects, predicates]))


def mutual_repeats(pairs: NDArray[np.integer], predicates: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(R,) relations (i, j, r), best first, that say again what a better one, (j, i, r), has said."""
    if not len(pairs):
        return np.zeros(0, dtype=bool)
    width, depth = int(pairs.max()) + 1, int(predicates.max()) + 1
    i, j = pairs.astype(np.int64).T
    said, first = np.unique((i * width + j) * depth + predicates, return_index=True)
    mirrored = (j * width + i) * depth + predicates
    place = np.minimum(np.searchsorted(said, mirrored), len(said) - 1)
    return np.asarray((said[place] == mirrored) & (first[place] < np.arange(len(pairs))))
