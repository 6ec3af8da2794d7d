r"""Combines the evidence of two detectors: ours, which knows many labels, and another, which may have better boxes.

Boxes of the two that overlap by half are one thing. For every thing (found by both, only by ours, only by the other) a
logistic model gives the chance that people would name it:

.. math:: P(\text{thing}) = \sigma(w_0 + w_1 \operatorname{logit} p + w_2 \operatorname{logit} s + w_3 \log a + ...)

with p our chance, s the other's score and a the fraction of the photo. Labels: our distribution times the likelihood of
the other's label, which stands for a set of labels (its "person" may be our man, woman, boy):

.. math:: P(l) \propto P_\text{ours}(l) \, (s \text{ where } l \text{ is in the set, else } (1 - s) \cdot leak)

The weights are data (combine.json), fitted by `benchmarks/combine.py` on Visual Genome validation photos.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from scenegpi.boxes import box_iou, suppress
from scenegpi.graph import SceneGraph
from scenegpi.vision.detect import Detections, Detector
from scenegpi.vision.find import Finder, reported
from scenegpi.vision.photos import EncodedPhoto, Photo
from scenegpi.words.label_map_rules import labels_for

Seen = Literal["both", "ours", "theirs"]
SEEN: tuple[Seen, ...] = ("both", "ours", "theirs")
SAME, APART, TWICE = 0.5, 0.6, 0.7
"""Overlap of boxes that are one thing; above which the worse of two things is dropped; or of the other's boxes."""
ANY = "any"
"""Weights for a detector that has none of its own."""
LOWEST, CONSIDERED = 0.02, 100
"""Minimum score of a candidate, and the number of candidates of each detector."""


class Candidates(NamedTuple):
    """Boxes (N, 4), scores (N,) and our label distribution of each, (N, C)."""

    boxes: NDArray[np.float64]
    scores: NDArray[np.float64]
    dist: NDArray[np.float32]


class Things(NamedTuple):
    """The things found: boxes (N, 4), features (N, F), indices (N,) into SEEN, distributions (N, C)."""

    boxes: NDArray[np.float64]
    features: NDArray[np.float64]
    seen: NDArray[np.int64]
    dist: NDArray[np.float64]


def things(
    ours: Candidates,
    theirs: Candidates,
    sets: NDArray[np.bool_],
    knows: NDArray[np.bool_],
    size: tuple[int, int],
    leak: float,
) -> Things:
    """Boxes that agree are merged: where both find a thing, the other's box and label evidence are used. A thing that
    the other misses is evidence only about labels that it knows: a shirt says nothing, a dog a lot.

    Args:
        sets: (M, C), the labels that each of their boxes may have; none where no label matches.
        knows: (C,), the labels that the other has a name for.
        leak: the likelihood of another label, a factor beside 1 - score.
    """
    alone = suppress(theirs.boxes, theirs.scores, np.zeros(len(theirs.boxes), dtype=np.int64), TWICE)
    theirs, sets = Candidates(theirs.boxes[alone], theirs.scores[alone], theirs.dist[alone]), sets[alone]
    partner, overlap = _partners(ours.boxes, theirs.boxes)
    mine = np.setdiff1d(np.arange(len(ours.boxes)), partner[partner >= 0])
    boxes = np.concatenate([theirs.boxes, ours.boxes[mine]])
    seen = np.concatenate([np.where(partner >= 0, 0, 2), np.ones(len(mine), dtype=np.int64)])
    chance = np.concatenate(
        [np.where(partner >= 0, ours.scores[partner] if len(ours.scores) else 0, 0.5), ours.scores[mine]]
    )
    score = np.concatenate([theirs.scores, np.full(len(mine), 0.5)])
    agreed = np.concatenate([(theirs.dist * sets).sum(1), ours.dist[mine].max(1, initial=0)])
    known = np.concatenate([sets.any(1), ours.dist[mine] @ knows])
    agree = np.concatenate([sets.any(1), np.ones(len(mine))])
    share = (boxes[:, 2:] - boxes[:, :2]).prod(1) / (size[0] * size[1])
    features = [
        np.ones(len(boxes)),
        _logit(chance),
        _logit(score),
        np.log(np.clip(share, 1e-4, 1)),
        np.log(np.clip(agreed, 1e-3, 1)) * agree,
        known,
        np.concatenate([overlap, np.zeros(len(mine))]),
    ]
    told = np.where(sets, theirs.scores[:, None], (1 - theirs.scores[:, None]) * leak)
    told = np.where(sets.any(1, keepdims=True), told, 1.0)
    dist = np.concatenate([theirs.dist * np.maximum(told, 1e-6), ours.dist[mine]]).astype(np.float64)
    return Things(boxes, np.stack(features, 1), seen, dist / np.maximum(dist.sum(1, keepdims=True), 1e-12))


def chances(found: Things, weights: Mapping[str, Sequence[float]]) -> NDArray[np.float64]:
    """The chance of each thing, (N,)."""
    table = np.array([weights[name] for name in SEEN])
    logits = (found.features * table[found.seen]).sum(1)
    return 1 / (1 + np.exp(-np.clip(logits, -30, 30)))


class Combined:
    """Finds and names what either of two detectors finds.

    Args:
        finder: ours; its configuration says what is reported.
        other: any detector. If it has a `floor`, that is lowered, as the combined chance decides.
        name: the detector's, for which there may be specific weights.
    """

    def __init__(self, finder: Finder, other: Detector, name: str = ANY) -> None:
        self.config, self.other, self.vision = finder.config, other, finder.vision
        low = replace(finder.config, floor=LOWEST, named_floor=0.0, same_label=1.0, most=CONSIDERED)
        self.finder = Finder(finder.vision, low)
        if isinstance(getattr(other, "floor", None), float):
            other.floor = LOWEST  # type: ignore[attr-defined]
        self.vocabulary = finder.vision.vocabulary
        self.names: Sequence[str] = self.vocabulary.objects
        self.weights = shipped_weights(name)
        self._sets: dict[str, NDArray[np.bool_]] = {}

    def detect(self, photo: Photo) -> Detections:
        """Boxes in pixels of the photo, (H, W, 3) bytes, with `label_dist`; best first."""
        return self.detect_encoded(EncodedPhoto(photo))

    def detect_encoded(self, encoded: EncodedPhoto) -> Detections:
        """The same for a photo whose maps may have been computed before."""
        height, width = encoded.pixels.shape[:2]
        found = things(*self.candidates(encoded), (width, height), float(self.weights["leak"][0]))
        chance = chances(found, self.weights)
        kept = suppress(found.boxes, chance, np.zeros(len(chance), dtype=np.int64), APART)[: self.config.most]
        boxes, dist, sure = found.boxes[kept], found.dist[kept].astype(np.float32), chance[kept]
        at, chances_at, said = (torch.from_numpy(each) for each in (boxes, sure, dist))
        kept = np.zeros(0, dtype=np.int64)
        if len(dist):
            kept = np.sort(reported(at, chances_at, said, self.config, self.vocabulary).numpy())
        kept = kept[sure[kept] >= self.config.floor]
        label = dist.argmax(1) if len(dist) else np.zeros(0, dtype=np.int64)
        score = sure * dist[np.arange(len(dist)), label]
        return Detections(boxes[kept], label[kept], score[kept], self.names, (width, height), dist[kept], sure[kept])

    def candidates(self, encoded: EncodedPhoto) -> tuple[Candidates, Candidates, NDArray[np.bool_], NDArray[np.bool_]]:
        """Our boxes, theirs, the labels that each of theirs may have, and those that the other knows at all."""
        mine = self.finder.detect_encoded(encoded)
        assert mine.sure is not None
        assert mine.label_dist is not None
        best = np.argsort(-mine.sure, kind="stable")[:CONSIDERED]
        ours = Candidates(mine.boxes[best], mine.sure[best], mine.label_dist[best])
        more = self.other.detect(encoded.pixels)
        boxes, labels = more.boxes[:CONSIDERED], more.labels[:CONSIDERED]
        sets = np.array([self._set(more.names[k]) for k in labels]).reshape(len(labels), len(self.names))
        width, height = more.size
        graph = SceneGraph(boxes, np.zeros(len(boxes), np.int64), self.vocabulary, width=width, height=height)
        dist = self.vision.label_dist(encoded, graph) if len(boxes) else np.zeros((0, len(self.names)), np.float32)
        knows = np.any([self._set(name) for name in more.names], axis=0)
        return ours, Candidates(boxes, more.scores[:CONSIDERED], dist), sets, knows

    def _set(self, name: str) -> NDArray[np.bool_]:
        if name not in self._sets:
            wanted = set(labels_for(name, self.vocabulary))
            self._sets[name] = np.array([label in wanted for label in self.names], dtype=bool)
        return self._sets[name]


@cache
def shipped_weights(detector: str = ANY) -> Mapping[str, Sequence[float]]:
    """The fitted weights in the package, of each of SEEN, and `leak`: those of a detector, or those for any other."""
    data: dict[str, Mapping[str, Sequence[float]]] = json.loads((files("scenegpi.vision") / "combine.json").read_text())
    return data.get(detector, data[ANY])


def _partners(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """For each of theirs, best first, the row of ours that is the same thing, or -1; and their overlap."""
    partner, overlap = np.full(len(theirs), -1), np.zeros(len(theirs))
    if len(ours) and len(theirs):
        iou = box_iou(theirs, ours)
        for k in range(len(theirs)):
            best = int(iou[k].argmax())
            if iou[k, best] >= SAME:
                partner[k], overlap[k] = best, iou[k, best]
                iou[:, best] = -1
    return partner, overlap


def _logit(chance: NDArray[np.float64]) -> NDArray[np.float64]:
    p = np.clip(chance, 1e-3, 1 - 1e-3)
    return np.asarray(np.log(p / (1 - p)))
