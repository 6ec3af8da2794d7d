"""What the photo network learns from: photos with boxes, from one annotation or from two.

    annotations = open_annotations(labels, names, graphs, config)     # the other one is complete for its own labels
    photos = annotations.training(paths, graphs)                      # and finds of a model, if it taught any

A box has a row of `LabelSets`, the names that it may have: what one annotation calls a "person" the other calls a man
or a woman. It also has a kind: 0 if its label is on the other annotation's list, which is complete, else 1.
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
from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError
from scenegpi.features.arrays import image_size
from scenegpi.files import read_object
from scenegpi.graph import SceneGraph
from scenegpi.training.config import OtherConfig
from scenegpi.training.taught import Finds
from scenegpi.words.everyday import BROADER, includes, may_be

SAME = 0.6
"""Boxes of two annotations that overlap by this much, and whose names agree, show the same thing."""
FINE = 4096
"""Overlap is counted in pixels; with this many per side, one pixel makes no difference."""


class TrainingPhoto(NamedTuple):
    """A photo and its boxes: ``(N, 4)`` x1, y1, x2, y2 in fractions; row of the label sets and kind, ``(N,)`` each.

    `listed` says for each kind whether its things are annotated at all. The last M boxes were found by a model:
    `chance` ``(M,)`` of being annotated, and `said`, P(label) ``(M, C)``.
    """

    path: Path
    boxes: NDArray[np.float32]
    rows: NDArray[np.int64]
    kinds: NDArray[np.int64]
    listed: tuple[bool, bool]
    chance: NDArray[np.float32] = np.zeros(0, np.float32)
    said: NDArray[np.float16] = np.zeros((0, 0), np.float16)


class LabelSets:
    """Rows of names: first what each label of the vocabulary may be, then each everyday name, then the other's labels,
    then labels that stand only for themselves: a sign that is not a stop sign, in a photo whose stop signs are all
    listed; last a row of all names.

    `labels` are those of the vocabulary, the first of the `names` that the label head knows; `other` are the labels of
    the other annotation.
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
        self.anything = len(sets) + len(labels)
        sets += [*((label,) for label in labels), tuple(names)]
        self.members = torch.zeros(len(sets), len(names), dtype=torch.bool)
        for row, some in enumerate(sets):
            self.members[row, [place[name] for name in some]] = True
        self._labels, self._names = list(labels), list(names)

    def of_other(self, rows: Tensor) -> Tensor:
        """Which rows ``(N,)`` are labels of the other annotation alone: ``(N,)``."""
        return (rows >= len(self._labels)) & (rows < self.alone[0])

    def on_other_list(self, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which labels ``(N,)`` a box of the other annotation may have: that lists all such things, or means to."""
        return np.asarray(self.members[self.other].any(0).numpy()[labels])

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


class Annotations(NamedTuple):
    """Which names a box may have, and another annotation if any.

    `other` are the photos and boxes of that by its ids, `same` maps an id here to the id there of the same photo. The
    own photos come `repeat` times in each pass over the other's. `finds` are what a model found in some of the latter.
    """

    sets: LabelSets
    other: Mapping[str, tuple[Path, SceneGraph]] = {}
    same: Mapping[str, str] = {}
    repeat: int = 1
    finds: Mapping[str, Finds] = {}

    @property
    def rest(self) -> list[str]:
        """Ids of photos that only the other annotation has."""
        taken = set(self.same.values())
        return [name for name in self.other if name not in taken]

    def training(self, paths: Sequence[Path], graphs: Sequence[SceneGraph]) -> list[TrainingPhoto]:
        """Photos of a pass: own ones, with the boxes of both annotations where they have both; then those that only the
        other one has: a half must not see the photos that it is held out for, under any label.
        """
        own = own_photos(paths, graphs)
        if not self.other:
            return own
        ids = [self.same.get(str(graph.image_id), "") for graph in graphs]
        both = [_union(photo, self.other.get(name), self.sets) for photo, name in zip(own, ids, strict=True)]
        rest = [_taught(_other(*self.other[name], self.sets), self.finds.get(name), self.sets) for name in self.rest]
        return both * self.repeat + rest


def open_annotations(
    labels: Sequence[str], names: Sequence[str], graphs: Sequence[SceneGraph], config: OtherConfig
) -> Annotations:
    """Of the labels and names of a label predictor; the other annotation has at least the photos of `graphs`."""
    if not config.path:
        return Annotations(LabelSets(labels, names))
    dataset = open_dataset(config.path, images=config.photos)
    same = {str(here): str(there) for here, there in read_object(Path(config.same)).items()} if config.same else {}
    needed = {same.get(str(graph.image_id)) for graph in graphs}
    photos = {i: path for i in range(len(dataset)) if (path := dataset.image_path(i)) is not None}
    if not photos:
        raise DataError(config.path, "no photo of its images was found (photo.other.photos)")
    ids = {i: str(dataset[i].image_id) for i in photos}
    free = [i for i in photos if ids[i] not in needed]
    if config.limit and config.limit < len(free):
        free = [free[k * len(free) // config.limit] for k in range(config.limit)]
    chosen = [*(i for i in photos if ids[i] in needed), *free]
    other = {ids[i]: (photos[i], dataset[i]) for i in chosen}
    return Annotations(LabelSets(labels, names, dataset.vocabulary.objects), other, same, config.repeat)


def own_photos(paths: Sequence[Path], graphs: Sequence[SceneGraph]) -> list[TrainingPhoto]:
    """Photos of one annotation, for which no label is known to be complete."""
    return [
        TrainingPhoto(
            path, _fractions(graph), graph.labels.astype(np.int64), np.ones(len(graph), np.int64), (False, True)
        )
        for path, graph in zip(paths, graphs, strict=True)
    ]


def _other(path: Path, graph: SceneGraph, sets: LabelSets) -> TrainingPhoto:
    known = [k for k, label in enumerate(graph.labels) if bool(sets.members[sets.other[label]].any())]
    rows = np.array([sets.other[graph.labels[k]] for k in known], dtype=np.int64)
    return TrainingPhoto(path, _fractions(graph)[known], rows, np.zeros(len(rows), np.int64), (True, False))


def _taught(photo: TrainingPhoto, finds: Finds | None, sets: LabelSets) -> TrainingPhoto:
    """The boxes that are annotated, then finds of kinds that this annotation does not list: of its own it lists all."""
    if finds is None:
        return photo
    new = np.flatnonzero(~sets.on_other_list(finds.dist.argmax(1).astype(np.int64)))
    new = new[(box_iou(finds.boxes[new] * FINE, photo.boxes * FINE) < SAME).all(axis=1)]
    return TrainingPhoto(
        photo.path,
        np.concatenate([photo.boxes, finds.boxes[new]]),
        np.append(photo.rows, np.full(len(new), sets.anything)),
        np.append(photo.kinds, np.ones(len(new), np.int64)),
        (True, True),
        finds.chance[new],
        finds.dist[new],
    )


def _union(photo: TrainingPhoto, entry: tuple[Path, SceneGraph] | None, sets: LabelSets) -> TrainingPhoto:
    """Boxes of both. Of two that show the same thing the other annotation's is kept, as it is drawn more carefully."""
    if entry is None:
        return photo
    more = _other(photo.path, entry[1], sets)
    just = np.array([sets.alone[row] for row in photo.rows], dtype=np.int64)
    labels = [k for k in entry[1].labels if bool(sets.members[sets.other[k]].any())]
    overlap = box_iou(photo.boxes * FINE, more.boxes * FINE)
    rows, left = more.rows.copy(), np.ones(len(photo.rows), dtype=bool)
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
