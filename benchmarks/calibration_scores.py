"""The scores behind `calibration.py`: what predictions say, question by question, and how far that is from true."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenegpi.graph import SceneGraph
from scenegpi.metrics.intervals import percentile_interval, poisson_weights
from scenegpi.models.calibration import Task
from scenegpi.pairs import edge_numbers

BINS = 15
DRAWS, REPLICATES = 100, 1000
SHOWN = 0.1
"""What `scenegpi predict` shows unless told otherwise."""
Array = NDArray[np.float64]


class Said(NamedTuple):
    """(n, 4) what was said with confidence, whether it was so, negative log-likelihood, Brier score; (n,) image."""

    rows: Array
    image: NDArray[np.int64]

    @classmethod
    def yes_or_no(cls, p: Array, true: Array, image: NDArray[np.int64]) -> Said:
        """p (n,) the probability of yes, true (n,) 0 or 1."""
        nll = -np.log(np.where(true > 0, p, 1 - p).clip(1e-12))
        return cls(np.column_stack([p, true, nll, (p - true) ** 2]), image)

    @classmethod
    def choice(cls, dist: Array, share: Array, image: NDArray[np.int64]) -> Said:
        """dist (n, K), share (n, K) of what was chosen; the first of dist is a hit if it has any share."""
        best = dist.argmax(axis=1)
        hit = share[np.arange(len(dist)), best] > 0
        nll = -(share * np.log(dist.clip(1e-12))).sum(axis=1)
        return cls(np.column_stack([dist.max(axis=1), hit, nll, ((dist - share) ** 2).sum(axis=1)]), image)


def questions(found: Iterable[SceneGraph], truth: Sequence[SceneGraph], task: Task) -> dict[str, Said]:
    """What predictions say, question by question."""
    parts: dict[str, list[Said]] = {}
    for k, (graph, true) in enumerate(zip(found, truth, strict=True)):
        assert graph.pair_dist is not None
        assert graph.label_dist is not None
        dist = graph.pair_dist.astype(np.float64)
        rows = true.relations[true.relations[:, 0] != true.relations[:, 1]]
        counts = np.zeros((len(dist), dist.shape[1] - 1))
        np.add.at(counts, (edge_numbers(rows, len(true)), rows[:, 2]), 1)
        held = counts.sum(axis=1)
        yes, image = held > 0, np.full(len(dist), k)
        best = dist[:, 1:].argmax(axis=1)
        hit = counts[np.arange(len(dist)), best] > 0
        given = dist[yes, 1:] / dist[yes, 1:].sum(axis=1, keepdims=True)
        said = {
            "related": Said.yes_or_no(1 - dist[:, 0], yes.astype(float), image),
            "predicate": Said.choice(given, counts[yes] / held[yes, None], image[yes]),
            "relation": Said.yes_or_no(dist[:, 1:].max(axis=1, initial=0.0), hit.astype(float), image),
        }
        if task == "sgcls":
            labels = np.eye(graph.label_dist.shape[1])[true.labels]
            said["labels"] = Said.choice(graph.label_dist.astype(np.float64), labels, np.full(len(true), k))
        for name, each in said.items():
            parts.setdefault(name, []).append(each)
    return {name: Said(*(np.concatenate(each) for each in zip(*said, strict=True))) for name, said in parts.items()}


def calibration_error(confidence: Array, hits: Array, width: bool = False) -> float:
    """The mean gap between both, (n,) in the order of confidence, over 15 bins of equal mass, or of equal width."""
    cuts = np.arange(BINS) * len(confidence) // BINS
    if width:
        cuts = np.unique(np.searchsorted(confidence, np.arange(BINS) / BINS))
        cuts = cuts[cuts < len(confidence)]
    return float(np.abs(np.add.reduceat(hits - confidence, cuts)).sum() / len(confidence))


def figures(said: Said) -> dict[str, float]:
    """For JSON; errors in percent. Most pairs are hardly related and flatter the mean: so those that are shown, too."""
    order = np.argsort(said.rows[:, 0], kind="stable")
    confidence, hit = said.rows[order, 0], said.rows[order, 1]
    rng = np.random.default_rng(0)
    drawn = [calibration_error(confidence, rng.random(len(confidence)) < confidence) for _ in range(DRAWS)]
    first = int(np.searchsorted(confidence, SHOWN))
    shown = (confidence[first:], hit[first:])
    return {
        "ECE": round(100 * calibration_error(confidence, hit), 3),
        "ECE, equal width": round(100 * calibration_error(confidence, hit, width=True), 3),
        "chance": round(100 * float(np.quantile(drawn, 0.95)), 3),
        "said": round(100 * float(confidence.mean()), 2),
        "was": round(100 * float(hit.mean()), 2),
        "NLL": round(float(said.rows[:, 2].mean()), 5),
        "Brier": round(float(said.rows[:, 3].mean()), 5),
        "n, shown": len(confidence) - first,
        "said, shown": round(100 * float(shown[0].mean()), 2),
        "was, shown": round(100 * float(shown[1].mean()), 2),
        "ECE, shown": round(100 * calibration_error(*shown), 3),
    }


def gains(before: Said, after: Said) -> dict[str, list[float]]:
    """How much NLL and Brier score fall, paired, with 95% intervals by bootstrap over images."""
    images = int(before.image.max()) + 1
    weights = poisson_weights(np.arange(images, dtype=np.uint64), REPLICATES).astype(np.float64)
    size = np.bincount(before.image, minlength=images)
    out = {}
    for name, column in (("NLL", 2), ("Brier", 3)):
        less = np.bincount(before.image, before.rows[:, column] - after.rows[:, column], minlength=images)
        spread = (less @ weights) / (size @ weights)
        out[name] = [round(float(v), 5) for v in (less.sum() / size.sum(), *percentile_interval(spread))]
    return out
