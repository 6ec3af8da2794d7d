"""Result: figures with everything that defines them (protocol, number of images, intervals); to and from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import MetricError
from scenegpi.metrics.figures import figures, per_predicate
from scenegpi.metrics.intervals import percentile_interval
from scenegpi.metrics.protocol import Empty, Protocol

if TYPE_CHECKING:
    from scenegpi.metrics.state import Plan

CONVENTIONS: dict[str, Empty] = {"empty_prediction_scores_zero": "zero", "empty_prediction_skipped": "skip"}
"""The two pure conventions for an image without predictions, under the names that results write."""
COUNTS = {
    "images": "images",
    "images_without_predictions": "images_empty",
    "images_without_relations": "unrelated",
    "relations": "rows",
    "images_with_zero_shot_relations": "z_images",
    "zero_shot_relations": "z_rows",
}


@dataclass(frozen=True)
class Result:
    """Figures of one system on one data set.

    Args:
        protocol: what they mean.
        figures: by their usual names, "R@50", in 0..1; NaN where there was nothing to count (null in JSON).
        intervals: 95%, low and high, of each figure; empty without bootstrap.
        by_convention: the figures under either convention for images without predictions.
        per_predicate: recall of each predicate, by figure and name; see `figures.per_predicate`.
        counts: images, relations, images without predictions, and so on.
        notes: what a reader must know in addition to the figures.
        zero_shot: which triplets zR@K counts, in words; "" without it.
        replicates: (B,) of each figure, for paired comparison; not in the JSON.
    """

    protocol: Protocol
    figures: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    by_convention: dict[str, dict[str, float]]
    per_predicate: dict[str, dict[str, float]]
    counts: dict[str, int]
    notes: list[str]
    zero_shot: str = ""
    bootstrap: int = 0
    seed: int = 0
    fingerprint: int = 0
    replicates: dict[str, NDArray[np.float64]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def images(self) -> int:
        """Number of images with ground-truth relations."""
        return self.counts["images"]

    def __str__(self) -> str:
        shown = ", ".join(f"{name} {100 * value:.1f}" for name, value in self.figures.items() if "-" not in name)
        return f"{shown} ({self.images} images; {self.protocol})"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, read back by `from_dict` without the replicates; what is undefined is None."""
        return {
            "protocol": self.protocol.to_dict(),
            "protocol_line": str(self.protocol),
            "figures": _plain(self.figures),
            "intervals": _plain(self.intervals),
            "counts": self.counts,
            "notes": self.notes,
            "zero_shot": self.zero_shot,
            "by_convention": _plain(self.by_convention),
            "per_predicate": _plain(self.per_predicate),
            "bootstrap": {"replicates": self.bootstrap, "seed": self.seed, "level": 0.95},
            "fingerprint": f"{self.fingerprint:016x}",
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Result:
        """Inverse of `to_dict`; MetricError that names the field on anything else. Unknown keys are ignored."""
        try:
            return cls(
                protocol=Protocol.from_dict(data["protocol"]),
                figures=_numbers(data["figures"]),
                intervals={name: (_number(low), _number(high)) for name, (low, high) in data["intervals"].items()},
                by_convention={name: _numbers(values) for name, values in data["by_convention"].items()},
                per_predicate={name: _numbers(values) for name, values in data["per_predicate"].items()},
                counts={name: int(value) for name, value in data["counts"].items()},
                notes=[str(note) for note in data["notes"]],
                zero_shot=str(data["zero_shot"]),
                bootstrap=int(data["bootstrap"]["replicates"]),
                seed=int(data["bootstrap"]["seed"]),
                fingerprint=int(data["fingerprint"], 16),
            )
        except KeyError as error:
            raise MetricError(f"result: no field {error}") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise MetricError(f"result: {error}") from None


def make_result(plan: Plan, sums: NDArray[np.float64], replicates: NDArray[np.float64], fingerprint: int) -> Result:
    """The result of an evaluation from its sums (S,), replicate sums (B, S') and fingerprint."""
    layout, protocol = plan.layout, plan.protocol
    zero_shot = plan.zero_shot is not None
    point = _scalars(figures(sums, layout, protocol.empty, zero_shot, plan.groups))
    spread: dict[str, NDArray[np.float64]] = {}
    if len(replicates):
        spread = figures(replicates, layout, protocol.empty, zero_shot, plan.groups, reference=sums)
    counts = {
        name: round(float(sums[layout.blocks[block]][0]))
        for name, block in COUNTS.items()
        if zero_shot or "zero_shot" not in name
    }
    predicates = per_predicate(sums, layout, protocol.empty)
    return Result(
        protocol=protocol,
        figures=point,
        intervals={name: percentile_interval(values) for name, values in spread.items()},
        by_convention={
            name: _scalars(figures(sums, layout, empty, zero_shot, plan.groups)) for name, empty in CONVENTIONS.items()
        },
        per_predicate={
            name: dict(zip(plan.names, values.tolist(), strict=True)) for name, values in predicates.items()
        },
        counts=counts,
        notes=_notes(plan, counts, float(sums[layout.blocks["only_true_pairs"]][0])),
        zero_shot="" if plan.zero_shot is None else str(plan.zero_shot),
        bootstrap=plan.bootstrap,
        seed=plan.seed,
        fingerprint=fingerprint,
        replicates=spread,
    )


def _notes(plan: Plan, counts: dict[str, int], only_true_pairs: float) -> list[str]:
    notes = []
    empty = counts["images_without_predictions"]
    if empty:
        how = {"zero": "count 0", "skip": "are left out, which raises the figures"}.get(
            plan.protocol.empty, "count 0 in R and ngR, and are left out of mR, zR and A, which raises those"
        )
        notes.append(f"{empty} of {counts['images']} images have relations but no predictions: they {how}.")
    if only_true_pairs > 0.5 * max(counts["images"], 1):
        notes.append(
            f"In {only_true_pairs:.0f} of {counts['images']} images only ground-truth pairs were predicted: which "
            "pairs are related was given away, and the figures are not comparable with a ranking of all pairs."
        )
    return notes


def _scalars(values: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """Numbers, and dicts and tuples of them, for JSON: None where one is not finite."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value if isfinite(value) else None


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _numbers(values: Any) -> dict[str, float]:
    return {name: _number(value) for name, value in values.items()}
