r"""Counts of training relations: how common a predicate is, and which labels it relates.

A common predicate ("on", "has") is not informative. With t from 0 to 1 a pair's predicates are weighted by how rare
they are, and P(related) does not change:

.. math:: P_t(r) = P(\text{related}) \, \frac{P(r) / f_r^t}{\sum_{r'} P(r') / f_{r'}^t}, \qquad
          f_r = \text{share of predicate } r \text{ among training relations}.

A relation whose subject, or whose object, never had that role in training (a person *worn*, an umbrella that *wears*)
is implausible.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_ROLES = ("as_subject", "as_object")

CHUNK = 1 << 16
"""Number of pairs weighted at once."""


class RelationCounts(NamedTuple):
    """`shares` (P,) of the predicates; `as_subject`, `as_object` (C, P), whether a label ever had that role."""

    shares: NDArray[np.float64]
    as_subject: NDArray[np.bool_]
    as_object: NDArray[np.bool_]

    @classmethod
    def of(
        cls, by_subject: NDArray[np.floating], by_object: NDArray[np.floating], stands: NDArray[np.int64] | None = None
    ) -> RelationCounts:
        """From (C, P) numbers of training relations by predicate and by the label of the subject, of the object.

        With `stands` (names,) for names, each with the roles of the label that stands for it.
        """
        total = by_subject.sum(axis=0, dtype=np.float64) + 1
        rows = np.arange(len(by_subject)) if stands is None else stands
        return cls(total / total.sum(), (by_subject > 0)[rows], (by_object > 0)[rows])

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, read back by `from_dict`: roles as bits, eight to a byte, in base64."""
        roles = {name: b64encode(np.packbits(getattr(self, name)).tobytes()).decode() for name in _ROLES}
        return {"labels": len(self.as_subject), "shares": self.shares.tolist(), **roles}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RelationCounts:
        """Inverse of `to_dict`."""
        shape = (data["labels"], len(data["shares"]))
        bits = (np.frombuffer(b64decode(data[name]), dtype=np.uint8) for name in _ROLES)
        roles = (np.unpackbits(each, count=shape[0] * shape[1]).astype(bool).reshape(shape) for each in bits)
        return cls(np.array(data["shares"], dtype=np.float64), *roles)

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
