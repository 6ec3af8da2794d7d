"""Maps predictions with their own class and predicate numbers to the numbers of the ground truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import MetricError
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary


class Alignment:
    """Graphs of any vocabulary -> graphs of `vocabulary`, matched by name; MetricError on a name it does not have.

    A predicate that only `vocabulary` has gets probability 0.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.maps: dict[Vocabulary, list[NDArray[np.int32]]] = {}

    def __call__(self, graph: SceneGraph) -> SceneGraph:
        """The same graph with the numbers of `vocabulary`."""
        own = graph.vocabulary
        if own == self.vocabulary:
            return graph
        if own not in self.maps:
            ours = self.vocabulary
            pairs = ((own.objects, ours.object_index), (own.predicates, ours.predicate_index))
            self.maps[own] = [np.array([index.get(name, -1) for name in names], np.int32) for names, index in pairs]
        objects, predicates = self.maps[own]
        relations = graph.relations.copy()
        relations[:, 2] = _take(predicates, relations[:, 2], own.predicates, "relations", "predicate")
        changes: dict[str, Any] = {
            "vocabulary": self.vocabulary,
            "labels": _take(objects, graph.labels, own.objects, "labels", "label"),
            "label_dist": None,
            "relations": relations,
        }
        if graph.pair_dist is not None:
            columns = _take(predicates, np.arange(len(own.predicates)), own.predicates, "pairs", "predicate")
            dist = np.zeros((len(graph.pair_dist), 1 + len(self.vocabulary.predicates)), dtype=graph.pair_dist.dtype)
            dist[:, 0] = graph.pair_dist[:, 0]
            dist[:, 1 + columns] = graph.pair_dist[:, 1:]
            changes["pair_dist"] = dist
        return graph.replace(**changes)


def _take(
    places: NDArray[np.int32], values: NDArray[Any], names: tuple[str, ...], field: str, what: str
) -> NDArray[np.int32]:
    found = places[values]
    if len(found) and found.min() < 0:
        row = int(np.flatnonzero(found < 0)[0])
        raise MetricError(
            f"{field}[{row}]: unknown {what} {names[int(values[row])]!r:.60}: the ground truth has no such name"
        )
    return found
