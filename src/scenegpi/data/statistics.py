"""Counts of a data set: images, boxes, relations, classes, predicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.dataset import Dataset
from scenegpi.data.graphs import NO_SPLIT, SPLITS
from scenegpi.errors import DataError
from scenegpi.vocabulary import Vocabulary


@dataclass(frozen=True)
class Statistics:
    """What is in a data set.

    `object_counts` (C,) and `predicate_counts` (P,) follow the vocabulary; `boxes_per_image` and
    `relations_per_image` are (N,); `splits` counts the images of each split.
    """

    vocabulary: Vocabulary
    images: int
    boxes: int
    relations: int
    duplicate_relations: int
    images_with_relations: int
    splits: dict[str, int]
    object_counts: NDArray[np.int64]
    predicate_counts: NDArray[np.int64]
    boxes_per_image: NDArray[np.int64]
    relations_per_image: NDArray[np.int64]
    attribute_counts: dict[tuple[str, str], int]

    def attribute_priors(self) -> dict[str, dict[str, float]]:
        """Label -> attribute -> P(attribute | label), the fraction of the label's boxes with it, most frequent first.

        It is counted in the data, where annotators leave out most attributes.
        """
        boxes = dict(zip(self.vocabulary.objects, self.object_counts.tolist(), strict=True))
        priors: dict[str, dict[str, float]] = {}
        for (label, attribute), count in sorted(self.attribute_counts.items(), key=lambda row: (-row[1], row[0])):
            priors.setdefault(label, {})[attribute] = count / boxes[label]
        return priors

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready figures; histograms by name, most frequent first."""
        return {
            "images": self.images,
            "images_with_relations": self.images_with_relations,
            "splits": self.splits,
            "boxes": self.boxes,
            "relations": self.relations,
            "duplicate_relations": self.duplicate_relations,
            "boxes_per_image": summary(self.boxes_per_image),
            "relations_per_image": summary(self.relations_per_image),
            "objects": ranked(self.vocabulary.objects, self.object_counts),
            "predicates": ranked(self.vocabulary.predicates, self.predicate_counts),
            "attribute_priors": self.attribute_priors(),
        }


def statistics(dataset: Dataset) -> Statistics:
    """Counts over a data set with its current filters."""
    vocabulary, codes = dataset.vocabulary, dataset.split_codes()
    labels: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
    predicates: list[NDArray[np.int32]] = [np.empty(0, np.int32)]
    duplicates = 0
    attributes: Counter[tuple[str, str]] = Counter()
    for graph in dataset:
        if graph.vocabulary != vocabulary:
            raise DataError(dataset.path, f"image {graph.image_id}: its vocabulary differs from that of the first")
        labels.append(graph.labels)
        predicates.append(graph.relations[:, 2])
        duplicates += len(graph.relations) - len(set(map(tuple, graph.relations.tolist())))
        rows = zip(graph.names, graph.attributes, strict=True) if graph.attributes else ()
        attributes.update((label, name) for label, row in rows for name in {name for name, _ in row})
    boxes, relations = dataset.counts()
    return Statistics(
        vocabulary=vocabulary,
        images=len(dataset),
        boxes=int(boxes.sum()),
        relations=int(relations.sum()),
        duplicate_relations=duplicates,
        images_with_relations=int(((boxes > 0) & (relations > 0)).sum()),
        splits={name: n for name, code in {**SPLITS, "unsplit": NO_SPLIT}.items() if (n := int((codes == code).sum()))},
        object_counts=np.bincount(np.concatenate(labels), minlength=len(vocabulary.objects)),
        predicate_counts=np.bincount(np.concatenate(predicates), minlength=len(vocabulary.predicates)),
        boxes_per_image=boxes,
        relations_per_image=relations,
        attribute_counts=dict(attributes),
    )


def summary(values: NDArray[np.int64]) -> dict[str, float]:
    """Mean, median and extremes of counts."""
    values = values if len(values) else np.zeros(1, np.int64)
    middle = {"mean": round(float(values.mean()), 3), "median": float(np.median(values))}
    return middle | {"min": int(values.min()), "max": int(values.max())}


def ranked(names: Iterable[str], counts: NDArray[np.int64]) -> dict[str, int]:
    """Name -> count, most frequent first, ties by name."""
    return dict(sorted(zip(names, counts.tolist(), strict=True), key=lambda item: (-item[1], item[0])))
