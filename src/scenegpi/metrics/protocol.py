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
Ranking = Literal["score", "given"]
Match = Literal["overlap", "identity", "sgbench"]

TASK_NAMES: dict[str, str] = {"predcls": "PredCls", "sgcls": "SGCls", "sgdet": "SGDet"}
_CONSTRAINT = {
    "both": "graph constraint and none (ng)",
    "graph": "graph constraint",
    "none": "no graph constraint (ng)",
}
_MATCH = {
    "overlap": "any boxes that overlap enough",
    "identity": "the same boxes (by index)",
    "sgbench": "each box counts as the object of its label that it overlaps most (SGBench)",
}
_EMPTY = {
    "field": "an image without predictions counts 0 in R and is left out of mR, zR, A",
    "zero": "an image without predictions counts 0",
    "skip": "images without predictions are left out",
}


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
        ranking: triplets are sorted by score ("score"), or taken in the order given ("given"), which is refused where
            it contradicts the scores.
        per_pair: the k's of predicate detection as on VRD: pooled recall with the k best predicates of each pair.
        pair_k: k of the per-predicate recall@k among the pair's own predicates (PredCls).
        data: what was scored, in words.
        match: a triplet finds a ground-truth row when its boxes overlap the row's ("overlap", as is usual: a
            second box around the same object will do), or only for the same boxes, by index ("identity"; boxes given).
            "sgbench" does as the package of that name: a box counts as one object at most, the one of its label that it
            overlaps most, without inclusive pixels; repeated rows count once; PR@K and InstR are counted too.
    """

    task: Task = "predcls"
    constraint: Constraint = "both"
    ks: tuple[int, ...] = (20, 50, 100)
    iou: float = 0.5
    empty: Empty = "field"
    several: Several = "refuse"
    ranking: Ranking = "score"
    per_pair: tuple[int, ...] = ()
    pair_k: int = 5
    data: str = ""
    match: Match = "overlap"

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(Protocol).items():
            value = getattr(self, name)
            if get_origin(kind) is Literal and value not in get_args(kind):
                raise MetricError(f"protocol.{name}: {value!r:.40} is none of {', '.join(get_args(kind))}")
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

    @property
    def _pixels(self) -> str:
        return f", {_MATCH['sgbench']}" if self.match == "sgbench" else " with inclusive pixels"

    def __str__(self) -> str:
        parts = [
            TASK_NAMES[self.task],
            _CONSTRAINT[self.constraint],
            f"K = {', '.join(map(str, self.ks))}",
            _MATCH["identity"] if self.match == "identity" else f"IoU >= {self.iou:g}{self._pixels}",
            "mean over images with relations",
            _EMPTY[self.empty],
        ]
        if self.several == "best":
            parts.append("best predicate of a pair taken")
        if self.ranking == "given":
            parts.append("ranked as given")
        if self.per_pair:
            parts.append(f"predicate detection with k = {', '.join(map(str, self.per_pair))}")
        if self.data:
            parts.append(self.data)
        return "; ".join(parts)

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
        a figure's name, and so is the constraint where both are reported: they make no difference here."""
        phrases = []
        if self.task != other.task:
            phrases.append(f"{TASK_NAMES[other.task]} instead of {TASK_NAMES[self.task]}")
        if self.data != other.data:
            phrases.append(f"on {other.data or 'unnamed data'} instead of {self.data or 'unnamed data'}")
        if self.match != other.match:
            phrases.append(_MATCH[other.match])
        if self.iou != other.iou and "identity" not in (self.match, other.match):
            phrases.append(f"IoU >= {other.iou:g} instead of {self.iou:g}")
        if self.empty != other.empty:
            phrases.append(f"{_EMPTY[other.empty]}, instead of: {_EMPTY[self.empty]}")
        if self.several != other.several:
            took = "the best predicate of a pair is taken" if other.several == "best" else "no choice within a pair"
            phrases.append(took)
        if self.ranking != other.ranking:
            phrases.append("ranked as given" if other.ranking == "given" else "ranked by score")
        if self.pair_k != other.pair_k:
            phrases.append(f"pair recall at {other.pair_k} instead of {self.pair_k}")
        return phrases


def _whole(values: Any, field: str) -> tuple[int, ...]:
    numbers = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str) else (values,)
    if not all(isinstance(k, int) and not isinstance(k, bool) and 0 < k < 2**31 for k in numbers):
        raise MetricError(f"protocol.{field}: expected positive whole numbers, found {numbers!r:.60}")
    return tuple(sorted(set(numbers)))
