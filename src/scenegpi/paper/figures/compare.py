"""What context changes: a model compared with its own first stage, on annotated images.

For every annotated pair the most probable predicate counts, and is right if it is annotated; if labels are predicted
(SGCls), the label of every box counts too. A label is *corrected* where the first stage was wrong and the whole model
is right, and *spoiled* in the opposite case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph

if TYPE_CHECKING:
    from scenegpi.data.dataset import Dataset
    from scenegpi.models.build import SceneModel
    from scenegpi.prediction.model import Task

Flags = NDArray[np.bool_]
LARGEST, MOST_PAIRS = 12, 12
"""Maximum boxes and annotated pairs of an image picked for a figure: more would be unreadable."""


@dataclass(frozen=True)
class Compared:
    """One image: the truth, and two models' predictions for its L annotated `pairs` (L, 2) and N boxes.

    `graphs` are their predictions; `said` (2, L) their predicates, and `right` (2, L) whether these are right;
    `labels_right` (2, N) whether their labels are.
    """

    truth: SceneGraph
    graphs: tuple[SceneGraph, SceneGraph]
    pairs: NDArray[np.int64]
    said: NDArray[np.int64]
    right: Flags
    labels_right: Flags

    @property
    def corrected(self) -> int:
        """Number of labels and predicates that the second model corrects."""
        return int(sum((~first & second).sum() for first, second in (self.right, self.labels_right)))

    @property
    def spoiled(self) -> int:
        """Number of labels and predicates that it gets wrong where the first was right."""
        return int(sum((first & ~second).sum() for first, second in (self.right, self.labels_right)))


def compare_image(truth: SceneGraph, first: SceneGraph, second: SceneGraph) -> Compared:
    """Two predictions with pair distributions for the boxes of `truth`, which share its vocabulary."""
    said: dict[tuple[int, int], set[int]] = {}
    for s, o, p in truth.relations.tolist():
        if s != o:
            said.setdefault((s, o), set()).add(p)
    pairs = np.array(list(said), dtype=np.int64).reshape(-1, 2)
    graphs = first, second
    best = np.stack([_best(graph, pairs) for graph in graphs])
    right = np.array(
        [[p in said[pair] for pair, p in zip(said, row, strict=True)] for row in best.tolist()], dtype=bool
    )
    return Compared(truth, graphs, pairs, best, right, np.stack([graph.labels == truth.labels for graph in graphs]))


def first_stage(model: SceneModel) -> SceneModel:
    """The model without its context: each box and each pair alone. GraphError for a model without context."""
    from scenegpi.models.build import SceneModel as Model

    if not model.config.two_stages or model.baseline is None:
        raise GraphError("this model has no context to compare with its baseline; name another model as the baseline")
    return Model(model.config.first_stage(), model.labels, model.baseline, model.vision).eval()


def compare(dataset: Dataset, model: SceneModel, first: SceneModel, task: Task) -> Iterator[Compared]:
    """Both models on every image of a data set, in its order."""
    from scenegpi.prediction import PredictOptions, Predictor, scored_pairs

    options = PredictOptions.scoring(task)
    first, model = first.labels_only(), model.labels_only()
    runs = (scored_pairs(Predictor(each, options=options, device=model.device), dataset) for each in (first, model))
    for (before, _), (after, truth) in zip(*runs, strict=True):
        yield compare_image(truth, before, after)


def pick(compared: Iterable[Compared], count: int) -> tuple[list[int], dict[str, int]]:
    """Indices of `count` images to show, and the labels corrected and spoiled over all images.

    The rule: images of at most 12 boxes and 12 annotated pairs; those with most corrected labels (fewer spoiled, then
    fewer boxes, then the earlier first), and last, from three images on, the one with most spoiled labels. Images in
    which context changes nothing are shown only if it changes none.
    """
    totals = {"images": 0, "pairs": 0, "corrected": 0, "spoiled": 0}
    fitting: list[tuple[int, int, int, int]] = []
    for k, each in enumerate(compared):
        for name, number in zip(totals, (1, len(each.pairs), each.corrected, each.spoiled), strict=True):
            totals[name] += number
        if 2 <= len(each.truth) <= LARGEST and 1 <= len(each.pairs) <= MOST_PAIRS:
            fitting.append((each.corrected, each.spoiled, len(each.truth), k))
    best = sorted(fitting, key=lambda row: (-row[0], row[1], row[2:]))
    worst = min(fitting, key=lambda row: (-row[1], row[0], row[2:]), default=(0, 0, 0, 0))
    failure = [worst[3]] if count >= 3 and worst[1] else []
    shown = [k for corrected, _, _, k in best if corrected and k not in failure][: count - len(failure)]
    return shown + failure or [row[3] for row in best[:count]], totals


def _best(graph: SceneGraph, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """(L,) the most probable predicate of each pair (L, 2), among predicates alone."""
    if graph.pairs is None or graph.pair_dist is None:
        raise GraphError("pairs: a prediction without pair distributions can't be compared")
    best = graph.pair_dist[:, 1:].argmax(axis=1) if len(graph.pairs) else np.zeros(0, dtype=np.int64)
    table = np.full((len(graph), len(graph)), -1, dtype=np.int64)
    table[tuple(graph.pairs.T)] = best
    return table[pairs[:, 0], pairs[:, 1]]
