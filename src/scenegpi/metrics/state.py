"""`scene_graph_recall`, the pure function; and RecallState, the streaming evaluation: NumPy only, picklable,
merged by addition. Its size depends on the number of predicates, K's and bootstrap replicates, not of images.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from itertools import islice

import numpy as np

from scenegpi.errors import MetricError
from scenegpi.graph import SceneGraph
from scenegpi.metrics.counts import Layout, count
from scenegpi.metrics.figures import Groups
from scenegpi.metrics.intervals import poisson_weights
from scenegpi.metrics.matching import ImageInput, ImageMatch, match_image
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.result import Result, make_result
from scenegpi.metrics.zero_shot import ZeroShot
from scenegpi.vocabulary import Vocabulary

CHUNK = 256
"""Number of images whose counts are held at once before being added up."""


@dataclass
class Plan:
    """The plan of an evaluation: protocol, predicates, zero-shot triplets, groups, bootstrap. No data.

    Args:
        protocol: how to score.
        predicates: a Vocabulary, the names of the P predicates, or just P.
        zero_shot: which triplets are zero-shot; None leaves zR@K out.
        groups: predicate indices of named groups, as `predicate_groups` makes them.
        bootstrap: replicates for the 95% intervals; 0 for none.
        seed: of the replicates; two systems are compared under the same seed.
    """

    protocol: Protocol
    predicates: InitVar[Vocabulary | Sequence[str] | int]
    zero_shot: ZeroShot | None = None
    groups: Groups | None = None
    bootstrap: int = 0
    seed: int = 0
    names: tuple[str, ...] = field(init=False)
    layout: Layout = field(init=False, compare=False)

    def __post_init__(self, predicates: Vocabulary | Sequence[str] | int) -> None:
        if isinstance(predicates, Vocabulary):
            predicates = predicates.predicates
        if isinstance(predicates, int):
            predicates = [f"predicate {i + 1}" for i in range(predicates)]
        self.names = tuple(predicates)
        if not self.names:
            raise MetricError("predicates: expected at least one")
        if self.bootstrap < 0:
            raise MetricError(f"bootstrap: expected 0 or more replicates, found {self.bootstrap}")
        self.groups = {name: tuple(map(int, members)) for name, members in (self.groups or {}).items()}
        for name, members in self.groups.items():
            if any(not 0 <= i < len(self.names) for i in members):
                raise MetricError(f"groups.{name}: an index outside 0..{len(self.names) - 1}")
        self.layout = Layout(self.protocol, len(self.names))

    def match(self, pairs: Iterable[tuple[ImageInput, ImageInput]]) -> Iterator[ImageMatch]:
        """Match (prediction, target) image by image. Errors say which image."""
        for number, (prediction, target) in enumerate(pairs):
            try:
                yield match_image(prediction, target, len(self.names), self.protocol)
            except MetricError as error:
                raise MetricError(f"{_image_name(target, number)}: {error}") from None


def paired(predictions: Iterable[ImageInput], targets: Iterable[ImageInput]) -> list[tuple[ImageInput, ImageInput]]:
    """Lists of the two sides -> pairs; MetricError unless both have one entry per image."""
    if isinstance(predictions, SceneGraph | Mapping) or isinstance(targets, SceneGraph | Mapping):
        raise MetricError("update: expected lists, one entry for each image")
    left, right = list(predictions), list(targets)
    if len(left) != len(right):
        raise MetricError(f"update: {len(left)} predictions for {len(right)} targets")
    return list(zip(left, right, strict=True))


class RecallState:
    """Sums over the images so far, and their bootstrap replicates.

    `update` with lists or `stream` with pairs of predictions and targets, `+` or `merge` to add other
    counts, `result` for the figures.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.sums = np.zeros(plan.layout.size)
        self.replicates = np.zeros((plan.bootstrap, plan.layout.replicated))
        self.fingerprint = 0

    def update(self, predictions: Iterable[ImageInput], targets: Iterable[ImageInput]) -> RecallState:
        """Score images: SceneGraphs or dicts of arrays (see `inputs`), one prediction for each target."""
        return self.stream(paired(predictions, targets))

    def stream(self, pairs: Iterable[tuple[ImageInput, ImageInput]]) -> RecallState:
        """Score (prediction, target) pairs as they come; the data need not fit into memory."""
        plan, matches = self.plan, self.plan.match(pairs)
        while some := list(islice(matches, CHUNK)):
            counts = count(some, plan.layout, plan.zero_shot)
            keys = np.array([match.key for match in some], dtype=np.uint64)
            self.sums += counts.sum(axis=0)
            if plan.bootstrap:
                weights = poisson_weights(keys, plan.bootstrap, plan.seed).astype(np.float64)
                self.replicates += weights.T @ counts[:, : plan.layout.replicated]
            self.fingerprint = (self.fingerprint + int(keys.sum(dtype=np.uint64))) % 2**64
        return self

    def merge(self, other: RecallState) -> RecallState:
        """Add the sums of another state, from this process or in a pickled one."""
        if self.plan != other.plan:
            raise MetricError("merge: the two states were made for different evaluations (protocol, predicates, seed)")
        self.sums += other.sums
        self.replicates += other.replicates
        self.fingerprint = (self.fingerprint + other.fingerprint) % 2**64
        return self

    def __add__(self, other: RecallState) -> RecallState:
        return RecallState(self.plan).merge(self).merge(other)

    def result(self) -> Result:
        """The figures, with everything that says what they mean."""
        return make_result(self.plan, self.sums, self.replicates, self.fingerprint)


def _image_name(target: object, number: int) -> str:
    name: object = None
    if isinstance(target, SceneGraph):
        name = target.key
    elif isinstance(target, Mapping):
        name = target.get("image_id")
    return f"image {number}" if name is None else f"image {name!r}"


def scene_graph_recall(
    predictions: Sequence[ImageInput],
    targets: Sequence[ImageInput],
    protocol: Protocol | None = None,
    *,
    predicates: Vocabulary | Sequence[str] | int | None = None,
    zero_shot: ZeroShot | None = None,
    groups: Groups | None = None,
    bootstrap: int = 0,
    seed: int = 0,
) -> Result:
    """Score predictions against ground truth.

    Args:
        predictions, targets: one SceneGraph or dict of arrays for each image, in the same order; the keys of the dicts
            are in `scenegpi.metrics.inputs`.
        protocol: how to score; PredCls with K = 20, 50, 100 if None.
        predicates: a Vocabulary, predicate names or their number; read off the first image if None.
        zero_shot, groups, bootstrap, seed: as in `Plan`.

    Example:
        >>> target = {"boxes": [[0, 0, 9, 9], [5, 5, 30, 30]], "labels": [1, 2], "relations": [[0, 1, 1]]}
        >>> prediction = {"pairs": [[0, 1], [1, 0]], "rel_scores": [[0.2, 0.7, 0.1], [0.9, 0.05, 0.05]]}
        >>> scene_graph_recall([prediction], [target], Protocol(ks=(1,))).figures["R@1"]
        1.0
    """
    if predicates is None:
        predicates = predicates_of(predictions, targets)
    plan = Plan(protocol or Protocol(), predicates, zero_shot, groups, bootstrap, seed)
    return RecallState(plan).update(predictions, targets).result()


def predicates_of(predictions: Sequence[ImageInput], targets: Sequence[ImageInput]) -> Vocabulary | int:
    """The vocabulary of the first graph, targets before predictions, or the number of predicates in `rel_scores`."""
    for image in (*targets[:1], *predictions):
        if isinstance(image, SceneGraph):
            return image.vocabulary
        try:
            return len(image["rel_scores"][0]) - 1
        except (KeyError, IndexError, TypeError):
            continue
    raise MetricError("predicates: their number is not clear from the input; pass predicates=")
