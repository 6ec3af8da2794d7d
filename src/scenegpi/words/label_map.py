"""Names of any detector -> the labels that a model knows.

    labels = LabelMap.between(detections.vocabulary, model.vocabulary)
    print(labels.report())                    # tv -> screen (table); knife: no matching label (...)
    graph = labels.apply(graph)               # in the model's vocabulary; boxes without a match are left out

COCO's 80 labels are mapped by a hand-reviewed table (label_map.json), other names by rules and, last, by word vectors
(label_map_rules.py). Word vectors tell which words are used together rather than which mean the same, so such a match
is a guess; it is reported with its cosine, and dropped if below `threshold`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import GraphError, printable
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.label_map_rules import Match, find_match
from scenegpi.words.vectors import WordVectors

THRESHOLD = 0.8
SHIPPED = "label_words.safetensors"


class LabelMap:
    """From the names of one vocabulary to the labels of another, `target`; `matches` are in the source's order."""

    def __init__(self, target: Vocabulary, matches: Iterable[Match]) -> None:
        self.target = target
        self.matches = tuple(matches)
        self._at = {match.source: match for match in self.matches}

    @classmethod
    def between(
        cls,
        source: Vocabulary | Sequence[str],
        target: Vocabulary,
        words: WordVectors | None = None,
        threshold: float = THRESHOLD,
    ) -> LabelMap:
        """A map from these names to the labels of `target`.

        Args:
            source: names, or a vocabulary, of which the object names are used.
            words: word vectors for guesses; by default a small table in the package. `threshold=2` turns guesses off.
            threshold: minimum cosine of a guess.
        """
        names = source.objects if isinstance(source, Vocabulary) else tuple(dict.fromkeys(source))
        words = words if words is not None or threshold > 1 else shipped_words()
        return cls(target, (find_match(name, target, words, threshold) for name in names))

    def __getitem__(self, name: str) -> Match:
        """The match of a name; KeyError if it is not in the source."""
        return self._at[name]

    def __len__(self) -> int:
        return len(self.matches)

    @property
    def unmapped(self) -> list[Match]:
        """The names without a match."""
        return [match for match in self.matches if match.target is None]

    def names(self, names: Iterable[str]) -> list[str | None]:
        """The label of each name, or None."""
        return [self._at[name].target for name in names]

    def apply(self, graph: SceneGraph) -> SceneGraph:
        """The graph in the target's vocabulary, without the boxes without a matching label, and without relations.

        Label distributions are summed over the names of each label; the probability of unmatched names is divided
        in proportion. Scores are kept.
        """
        labels = self.labels(graph)
        kept = np.flatnonzero(labels >= 0)
        changes = {"labels": labels[kept], "label_dist": self._distributions(graph, labels, kept)}
        return unrelated(graph).subset(kept).replace(vocabulary=self.target, **changes)

    def labels(self, graph: SceneGraph) -> NDArray[np.int64]:
        """(N,) the target's label of each box, -1 for a box without a match."""
        missing = next((name for name in graph.names if name not in self._at), None)
        if missing is not None:
            raise GraphError(f"labels: {missing!r:.60} is not among the {len(self)} names of this map")
        index = self.target.object_index
        number = [-1 if (to := self._at[name].target) is None else index[to] for name in graph.names]
        return np.array(number, dtype=np.int64)

    def report(self, counts: dict[str, int] | None = None) -> str:
        """A line for every name that changed or has no match; given `counts` (name -> boxes), only those that occur."""
        lines = []
        for match in self.matches:
            boxes = None if counts is None else counts.get(match.source, 0)
            if match.source != match.target and boxes != 0:
                tail = "" if boxes is None else f"; {boxes:,} box{'es' if boxes != 1 else ''}"
                lines.append(printable(f"{match}{tail}{' left out' if tail and match.target is None else ''}"))
        return "\n".join(lines)

    def _distributions(
        self, graph: SceneGraph, labels: NDArray[np.int64], kept: NDArray[np.int64]
    ) -> NDArray[Any] | None:
        if graph.label_dist is None:
            return None
        out = np.zeros((len(kept), len(self.target.objects)), dtype=graph.label_dist.dtype)
        for column, name in enumerate(graph.vocabulary.objects):
            match = self._at.get(name)
            if match is not None and match.target is not None:
                out[:, self.target.object_index[match.target]] += graph.label_dist[kept, column]
        total = out.sum(axis=1, keepdims=True)
        lost = np.flatnonzero(total[:, 0] <= 0)  # all probability was on names without a match
        out[lost, labels[kept[lost]]], total[lost] = 1, 1
        return np.asarray(out / total)


def unrelated(graph: SceneGraph) -> SceneGraph:
    """The boxes of a graph without their relations."""
    none = np.zeros((0, 3), dtype=np.int32)
    return graph.with_fields(relations=none, relation_scores=None, pairs=None, pair_dist=None)


@cache
def shipped_words() -> WordVectors:
    """The small table in the package: GloVe learned from Visual Genome captions by `scenegpi words train`."""
    with as_file(files("scenegpi.words") / SHIPPED) as path:
        return WordVectors.load(path)
