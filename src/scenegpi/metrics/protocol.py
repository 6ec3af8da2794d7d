"""Protocol: what a recall figure means, as a value that prints in one line and is stored with every result.

Two figures can be compared only when their protocols agree; `difference` describes where they don't.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

from scenegpi.errors import MetricError

Task = Literal["predcls", "sgcls", "sgdet"]
Constraint = Literal["both", "graph", "none"]
Empty = Literal["field", "zero", "skip"]
Several = Literal["refuse", "best"]
Match = Literal["overlap", "identity", "sgbench"]

TASK_NAMES: dict[str, str] = {"predcls": "PredCls", "sgcls": "SGCls", "sgdet": "SGDet"}
_CONSTRAINT = {
    "both": "graph constraint and none (ng)",
    "graph": "graph constraint",
    "none": "no graph constraint (ng)",
}
_MATCH = {
    "overlap": "IoU >= {:g} with inclusive pixels",
    "identity": "the same boxes (by index)",
    "sgbench": "IoU >= {:g}, each box counts as the object of its label that it overlaps most (SGBench)",
}
_EMPTY = {
    "field": "an image without predictions counts 0 in R and is left out of mR, zR, A",
    "zero": "an image without predictions counts 0",
    "skip": "images without predictions are left out",
}
PAIR_K = 5
_UNSAID = {"data": "unnamed data", "several": "no choice within a pair", "pair_k": f"pair recall at {PAIR_K}"}


@dataclass(frozen=True, slots=True)
class Protocol:
    """How predictions are scored.

    Args:
        task: predcls (boxes and labels given), sgcls (boxes given) or sgdet (nothing given).
        constraint: "graph": one predicate per pair (R@K); "none": every predicate of every pair (ngR@K); "both".
        ks: the K's of recall@K, ascending.
        iou: both boxes of a triplet overlap those of the ground-truth row by at least this, with inclusive pixels.
        empty: an image that has ground-truth relations and no predicted pair counts 0 in every figure ("zero"), or is
            left out of every figure ("skip", which raises them). "field" does as the common evaluators do: 0 in R and
            ngR (Neural Motifs), left out of the rest, mR, zR and A, that only Scene-Graph-Benchmark computes.
        several: a list of chosen triplets that holds several predicates for one pair is refused under the graph
            constraint, or the best of them is taken ("best").
        per_pair: the k's of predicate detection as on VRD: pooled recall with the k best predicates of each pair.
        pair_k: k of the per-predicate recall@k among the pair's own predicates (PredCls).
        data: what was scored, in words.
        match: a triplet finds a ground-truth row when its boxes overlap the row's ("overlap", as is usual: a
            second box around the same object suffices), or only for the same boxes, by index ("identity"; boxes given).
            "sgbench" does as the package of that name: a box counts as one object at most, the one of its label that it
            overlaps most, without inclusive pixels; repeated rows count once; PR@K and InstR are counted too.
    """

    task: Task = "predcls"
    constraint: Constraint = "both"
    ks: tuple[int, ...] = (20, 50, 100)
    iou: float = 0.5
    empty: Empty = "field"
    several: Several = "refuse"
    per_pair: tuple[int, ...] = ()
    pair_k: int = PAIR_K
    data: str = ""
    match: Match = "overlap"

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(Protocol).items():
            value = getattr(self, name)
            if get_origin(kind) is Literal and value not in get_args(kind):
                raise MetricError(f"protocol.{name}: {value!r:.40} is not one of {', '.join(get_args(kind))}")
        object.__setattr__(self, "ks", _whole(self.ks, "ks"))
        object.__setattr__(self, "per_pair", _whole(self.per_pair, "per_pair"))
        if not self.ks:
            raise MetricError("protocol.ks: no K")
        if isinstance(self.pair_k, bool) or not isinstance(self.pair_k, int) or self.pair_k < 1:
            raise MetricError(f"protocol.pair_k: expected a positive whole number, found {self.pair_k!r:.40}")
        if isinstance(self.iou, bool) or not isinstance(self.iou, int | float) or not 0 < self.iou <= 1:
            raise MetricError(f"protocol.iou: expected a number above 0 and at most 1, found {self.iou!r:.40}")
        if self.match == "identity" and not self.given_boxes:
            raise MetricError("protocol.match: identity needs given boxes, and sgdet gives none")
        if not isinstance(self.data, str):
            raise MetricError("protocol.data: expected a string")

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Prefixes of the figures' names: "" under the graph constraint, "ng" without."""
        return {"both": ("", "ng"), "graph": ("",), "none": ("ng",)}[self.constraint]

    @property
    def given_boxes(self) -> bool:
        """Whether the ground-truth boxes are given to the system (PredCls, SGCls)."""
        return self.task != "sgdet"

    def __str__(self) -> str:
        return "; ".join(filter(None, self._phrases().values()))

    def _phrases(self) -> dict[str, str]:
        """What each field means, in words."""
        listed = ", ".join(map(str, self.per_pair))
        return {
            "task": TASK_NAMES[self.task],
            "constraint": _CONSTRAINT[self.constraint],
            "ks": f"K = {', '.join(map(str, self.ks))}",
            "match": _MATCH[self.match].format(self.iou),
            "average": "mean over images with relations",
            "empty": _EMPTY[self.empty],
            "several": "best predicate of a pair taken" if self.several == "best" else "",
            "per_pair": f"predicate detection with k = {listed}" if listed else "",
            "pair_k": "" if self.pair_k == PAIR_K else f"pair recall at {self.pair_k}",
            "data": self.data,
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, read back by `from_dict`."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Protocol:
        """Inverse of `to_dict`; MetricError on a key that this version does not know."""
        unknown = set(data) - {field.name for field in fields(cls)}
        if unknown:
            raise MetricError(f"protocol.{sorted(unknown)[0]}: not a field of a protocol")
        values: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in data.items()}
        return cls(**values)

    def difference(self, other: Protocol) -> list[str]:
        """Where `other` differs, in words, one phrase per field that changes what a figure means. The K's are part of
        a figure's name, and so is the constraint if both are reported, so they are not compared here."""
        mine, theirs = self._phrases(), other._phrases()
        return [
            f"{theirs[name] or _UNSAID[name]} instead of {mine[name] or _UNSAID[name]}"
            for name in ("task", "data", "match", "empty", "several", "pair_k")
            if mine[name] != theirs[name]
        ]


def _whole(values: Any, field: str) -> tuple[int, ...]:
    numbers = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else (values,)
    if not all(isinstance(k, int) and not isinstance(k, bool) and 0 < k < 2**31 for k in numbers):
        raise MetricError(f"protocol.{field}: expected positive whole numbers, found {numbers!r:.60}")
    return tuple(sorted(set(numbers)))
