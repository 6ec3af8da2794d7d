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
        weighed = edges[:, 1:] / self.shares**power
        total = np.maximum(weighed.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        weighed = weighed / total * edges[:, 1:].sum(axis=1, keepdims=True)
        return np.concatenate([edges[:, :1], weighed], axis=1, dtype=np.float32)

    def absurd(
        self, subjects: NDArray[np.integer], objects: NDArray[np.integer], predicates: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """(R,) whether a label of a relation never had its role; subjects, objects (R,) labels, predicates (R,)."""
        return np.asarray(~(self.as_subject[subjects, predicates] & self.as_object[objects, predicates]))


def mutual_repeats(pairs: NDArray[np.integer], predicates: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(R,) relations (i, j, r), best first, that say again what a better one, (j, i, r), has said."""
    seen: set[tuple[int, int, int]] = set()
    out = np.zeros(len(pairs), dtype=bool)
    for k, ((i, j), r) in enumerate(zip(pairs.tolist(), predicates.tolist(), strict=True)):
        out[k] = (j, i, r) in seen
        seen.add((i, j, r))
    return out
