"""What the photo network learns from: photos with boxes, from one annotation or from two.

    sets = own_photos(photos, graphs, names)                          # your data set
    sets = joined(own, other, same, names, repeat)                    # and another one, complete for its own labels

A box has a row of `LabelSets`, the names that it may have: what one annotation calls a "person" the other calls a man
or a woman. And it has a kind, 0 where its thing is of the other annotation's list, which is complete, else 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scenegpi.boxes import box_iou
from scenegpi.features.arrays import image_size
from scenegpi.graph import SceneGraph
from scenegpi.words.everyday import BROADER, includes, may_be

SAME = 0.6
"""Boxes of two annotations that overlap by this much, and whose names agree, show one thing."""
FINE = 4096
"""Overlap is counted in pixels; in so many per side the last one makes no difference."""


class TrainingPhoto(NamedTuple):
    """A photo and its boxes: ``(N, 4)`` x1, y1, x2, y2 in fractions; row of the label sets and kind, ``(N,)`` each.

    `listed` says for either kind whether its things are annotated at all.
    """

    path: Path
    boxes: NDArray[np.float32]
    rows: NDArray[np.int64]
    kinds: NDArray[np.int64]
    listed: tuple[bool, bool]


class LabelSets:
    """Rows of names: first what each label of the vocabulary may be, then each everyday name, then the other's labels,
    then labels that are just themselves: a sign in a photo whose stop signs are all listed, and that is none of them.

    Args:
        labels: of the vocabulary, the first of `names`.
        names: all that the label head knows.
        other: labels of the other annotation.
    """

    def __init__(self, labels: Sequence[str], names: Sequence[str], other: Sequence[str] = ()) -> None:
        place = {name: k for k, name in enumerate(names)}
        sets = [includes(label, names) for label in labels] + [(name,) for name in names[len(labels) :]]
        self.other: list[int] = []
        for each in other:
            may = may_be(each, names)
            if len(may) == 1 and place[may[0]] >= len(labels):
                self.other.append(place[may[0]])
            else:
                self.other.append(len(sets))
                sets.append(may)
        self.alone = [len(sets) + k for k in range(len(labels))]
        sets += [(label,) for label in labels]
        self.members = torch.zeros(len(sets), len(names), dtype=torch.bool)
        for row, some in enumerate(sets):
            self.members[row, [place[name] for name in some]] = True
        self._labels, self._names = list(labels), list(names)

    def agreed(self, label: int, other: int) -> int | None:
        """The row of one thing with a label here and one there; None if they don't agree."""
        row = self.other[other]
        if len(self._labels) <= row < len(self._names):
            return row if BROADER.get(self._names[row]) == self._labels[label] else None
        return label if bool(self.members[row, label]) else None

    def folded(self, stands: Tensor) -> LabelSets:
        """The same rows of labels alone: a name is the label that stands for it, ``(names,)``."""
        made = copy(self)
        counts = torch.zeros(len(self.members), len(self._labels)).index_add_(1, stands.cpu(), self.members.float())
        made.members = counts > 0
        return made

    def nll(self, logits: Tensor, rows: Tensor) -> Tensor:
        """-log P(one of the names of its row): logits ``(N, names)``, rows ``(N,)`` -> ``(N,)``."""
        within = logits.masked_fill(~self.members.to(logits.device)[rows], -torch.inf)
        return logits.logsumexp(1) - within.logsumexp(1)


def own_photos(photos: Sequence[Path], graphs: Sequence[SceneGraph]) -> list[TrainingPhoto]:
    """Photos of one annotation, of which nothing is known to be complete."""
    return [
        TrainingPhoto(
            path, _fractions(graph), graph.labels.astype(np.int64), np.ones(len(graph), np.int64), (False, True)
        )
        for path, graph in zip(photos, graphs, strict=True)
    ]


def joined(
    own: Sequence[TrainingPhoto],
    ids: Sequence[str],
    other: Mapping[str, tuple[Path, SceneGraph]],
    same: Mapping[str, str],
    sets: LabelSets,
    repeat: int,
) -> list[TrainingPhoto]:
    """Own photos, `repeat` times, with the boxes of both annotations where they have both; then all others.

    Args:
        ids: of the own photos.
        other: id there -> photo and boxes of the other annotation.
        same: id here -> id there of the same photo.
    """
    both = [_union(photo, other.get(same.get(name, "")), sets) for photo, name in zip(own, ids, strict=True)]
    taken = {same[name] for name in ids if name in same}
    rest = [_other(*entry, sets) for name, entry in other.items() if name not in taken]
    return both * repeat + rest


def _other(path: Path, graph: SceneGraph, sets: LabelSets) -> TrainingPhoto:
    known = [k for k, label in enumerate(graph.labels) if bool(sets.members[sets.other[label]].any())]
    rows = np.array([sets.other[graph.labels[k]] for k in known], dtype=np.int64)
    return TrainingPhoto(path, _fractions(graph)[known], rows, np.zeros(len(rows), np.int64), (True, False))


def _union(photo: TrainingPhoto, entry: tuple[Path, SceneGraph] | None, sets: LabelSets) -> TrainingPhoto:
    """Boxes of both. Of two that show one thing the other annotation's is kept, which is drawn with more care."""
    if entry is None:
        return photo
    more = _other(photo.path, entry[1], sets)
    just = np.array([sets.alone[row] for row in photo.rows], dtype=np.int64)
    if not len(more.rows):
        return photo._replace(listed=(True, True), rows=just)
    labels = [k for k in entry[1].labels if bool(sets.members[sets.other[k]].any())]
    overlap = box_iou(photo.boxes * FINE, more.boxes * FINE) if len(photo.rows) else None
    rows, left = more.rows.copy(), np.ones(len(photo.rows), dtype=bool)
    if overlap is not None:
        for i, j in zip(*np.unravel_index(np.argsort(-overlap, axis=None), overlap.shape), strict=True):
            if overlap[i, j] < SAME:
                break
            agreed = sets.agreed(int(photo.rows[i]), labels[j]) if left[i] and rows[j] == more.rows[j] else None
            if agreed is not None:
                rows[j], left[i] = agreed, False
    return TrainingPhoto(
        photo.path,
        np.concatenate([more.boxes, photo.boxes[left]]),
        np.concatenate([rows, just[left]]),
        np.concatenate([more.kinds, photo.kinds[left]]),
        (True, True),
    )


def _fractions(graph: SceneGraph) -> NDArray[np.float32]:
    return np.clip(graph.boxes / np.array(image_size(graph) * 2), 0, 1).astype(np.float32)
