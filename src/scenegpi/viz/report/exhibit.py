"""The images behind a report: predictions beside the truth, how well each was done, and which are shown.

Shown are the images with the lowest and the highest recall at the middle K, and some about the median. Among equals
the one with more annotated relations goes first: it says more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.metrics.matching import match_image
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.result import Result
from scenegpi.metrics.state import Plan, RecallState
from scenegpi.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scenegpi.models.build import SceneModel
    from scenegpi.prediction import Predictor
    from scenegpi.viz.attention import Attention

Pair = tuple[SceneGraph, SceneGraph]
ATTENTION_BOXES = 100
"""For images with more boxes attention is left out: its table grows with their square."""


@dataclass(frozen=True)
class Shown:
    """An image of the gallery and all there is to show: why it is there ("worst", "typical", "best") and its recall.

    These two are of use only where there is a `truth`.
    """

    prediction: SceneGraph
    truth: SceneGraph | None = None
    photo: Path | None = None
    attention: Attention | None = None
    why: str = ""
    recall: float = 0.0


@dataclass(frozen=True)
class Exhibit:
    """Where predictions come from: `pairs(None)` gives (prediction, truth) of all images, `pairs([3, 7])` of some.

    `photo(truth)` is where its photo is, or None; `predictor` is there where a model made the predictions.
    """

    vocabulary: Vocabulary
    pairs: Callable[[Sequence[int] | None], Iterator[Pair]]
    photo: Callable[[SceneGraph], Path | None]
    predictor: Predictor | None = None
    task: Any = "predcls"
    trained_on: int = 0

    @classmethod
    def of_model(
        cls,
        model: SceneModel,
        graphs: Sequence[SceneGraph],
        photo: Callable[[SceneGraph], Path | None],
        task: Any,
    ) -> Exhibit:
        """A model's predictions for graphs of its vocabulary."""
        from scenegpi.prediction import PredictOptions, Predictor, predictions

        predictor = Predictor(model, options=PredictOptions.scoring(task), device=model.device)

        def pairs(places: Sequence[int] | None) -> Iterator[Pair]:
            some = graphs if places is None else [graphs[k] for k in places]
            return predictions(predictor, some, photo)

        known = 0 if model.trained_on is None else model.trained_on.count(graphs)
        return cls(model.vocabulary, pairs, photo, predictor, task, known)

    def score(
        self, protocol: Protocol, watch: Callable[[Iterable[Pair]], Iterable[Pair]] = iter, bootstrap: int = 1000
    ) -> tuple[Result, NDArray[np.float64]]:
        """The figures over all images, and (n, 2): recall at the middle K and the number of relations of each."""
        state = RecallState(Plan(protocol, self.vocabulary, bootstrap=bootstrap))
        k = middle(protocol)
        each: list[tuple[float, int]] = []

        def noted() -> Iterator[Pair]:
            for prediction, truth in watch(self.pairs(None)):
                rows = len(truth.relations)
                found = (
                    match_image(prediction, truth, len(self.vocabulary.predicates), protocol).ranks[0] if rows else ()
                )
                each.append((float((np.asarray(found) < k).mean()) if rows else np.nan, rows))
                yield prediction, truth

        state.stream(noted())
        return state.result(), np.array(each, dtype=np.float64).reshape(-1, 2)

    def show(self, chosen: dict[int, str], recall: NDArray[np.float64]) -> list[Shown]:
        """The chosen images (place -> why), in the order of `chosen`, with attention where the model has it."""
        shown = zip(chosen.items(), self.pairs(list(chosen)), strict=True)
        return [
            Shown(prediction, truth, self.photo(truth), self._attention(truth), why, float(recall[k, 0]))
            for (k, why), (prediction, truth) in shown
        ]

    def _attention(self, graph: SceneGraph) -> Attention | None:
        from scenegpi.viz.attention import attention

        if self.predictor is None or not 1 < len(graph) <= ATTENTION_BOXES:
            return None
        try:
            return attention(self.predictor, graph, self.photo(graph))
        except GraphError:  # a model that weighs nothing
            return None


def middle(protocol: Protocol) -> int:
    """The K by which images are called good or bad: 50 of 20, 50, 100."""
    return protocol.ks[len(protocol.ks) // 2]


def choose(recall: NDArray[np.float64], count: int) -> dict[int, str]:
    """Place -> "worst", "typical" or "best" for at most `count` of the images (n, 2), a third of each kind."""
    able = np.flatnonzero(~np.isnan(recall[:, 0]))
    if count <= 0 or not len(able):
        return {}
    value, rows = recall[able].T
    if value.min() == value.max():  # none is the worst
        return dict.fromkeys(able[np.argsort(-rows, kind="stable")][:count].tolist(), "typical")
    low = able[np.lexsort((able, -rows, value))].tolist()
    high = able[np.lexsort((able, -rows, -value))].tolist()
    near = able[np.lexsort((able, -rows, np.abs(value - np.median(value))))].tolist()
    third = -(-count // 3)
    chosen: dict[int, str] = {}
    for why, order, most in (("worst", low, third), ("best", high, third), ("typical", near, count - 2 * third)):
        for k in [k for k in order if k not in chosen][: max(min(most, count - len(chosen)), 0)]:
            chosen[k] = why
    rank = {"worst": 0, "typical": 1, "best": 2}
    return dict(sorted(chosen.items(), key=lambda item: rank[item[1]]))
