"""One image: at which rank is each ground-truth row found? All figures follow from these ranks.

A triplet matches every ground-truth row of the same (subject class, predicate, object class) whose two boxes both
overlap the triplet's with IoU >= 0.5. Box identity is not required, also with given boxes, unless the protocol asks
for it. A row counts as found by the first K triplets when the rank of its first match is below K; duplicate rows are
rows of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenegpi.boxes import paired_iou
from scenegpi.graph import SceneGraph
from scenegpi.metrics.inputs import LABEL_LIMIT, Prediction, Truth, read_prediction, read_truth
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.ranking import NEVER, Triplets, candidates

ImageInput = SceneGraph | Mapping[str, Any]


class ImageMatch(NamedTuple):
    """What one image says.

    `ranks` (n, G) holds a row for each ranking of `rankings(protocol)`: the rank, from 0, of the first triplet that
    matches the ground-truth row, or NEVER. `pair_rank` (G,) is the place of the true predicate among those of its own
    pair (PredCls only, else NEVER). `only_true_pairs`: no other pair than those of the ground truth was offered.
    """

    predicate: NDArray[np.integer]
    code: NDArray[np.int64]
    ranks: NDArray[np.int64]
    pair_rank: NDArray[np.int64]
    empty: bool
    only_true_pairs: bool
    key: int


def rankings(protocol: Protocol) -> list[tuple[str, int | None]]:
    """Name and predicates a pair of each ranking: "" (1), "ng" (None: all), "A" (true pairs only), "k=..."."""
    found: list[tuple[str, int | None]] = [(prefix, None if prefix else 1) for prefix in protocol.prefixes]
    if protocol.given_boxes and "" in protocol.prefixes:
        found.append(("A", 1))
    return found + [(f"k={k}", k) for k in protocol.per_pair]


def match_image(prediction: ImageInput, target: ImageInput, predicates: int, protocol: Protocol) -> ImageMatch:
    """Match one image's prediction to its ground truth; `predicates` is P."""
    truth = read_truth(target, predicates)
    found = read_prediction(prediction, truth, predicates, protocol)
    rows, labels = truth.relations, truth.labels
    code = triplet_code(labels[rows[:, 0]], labels[rows[:, 1]], rows[:, 2])
    never = np.full(len(rows), NEVER)
    wanted = rankings(protocol)
    if found.empty:
        ranks = np.full((len(wanted), len(rows)), NEVER)
        return ImageMatch(rows[:, 2], code, ranks, never, True, False, truth.key())
    offered = candidates(found, rows, protocol.ks[-1], protocol)
    if not len(rows):  # checked like every image, though nothing is counted
        return ImageMatch(rows[:, 2], code, np.zeros((len(wanted), 0), np.int64), never, False, False, truth.key())
    ranked = [offered.ranked_on_true() if name == "A" else offered.ranked(k) for name, k in wanted]
    ranks = first_matches(ranked, found, truth, code, protocol)
    place, only = never, False
    if protocol.given_boxes:
        only = offered.only_true()
        if protocol.task == "predcls":
            place = offered.place_in_pair()
    return ImageMatch(rows[:, 2], code, ranks, place, False, only, truth.key())


def triplet_code(subject: NDArray[Any], object_: NDArray[Any], predicate: NDArray[Any]) -> NDArray[np.int64]:
    """(n,) one number for each (subject class, object class, predicate), all below LABEL_LIMIT."""
    code: NDArray[np.int64] = (subject.astype(np.int64) * LABEL_LIMIT + object_) * LABEL_LIMIT + predicate
    return code


def first_matches(
    ranked: list[Triplets], found: Prediction, truth: Truth, code: NDArray[np.int64], protocol: Protocol
) -> NDArray[np.int64]:
    """(n, G) rank of the first triplet of each of the n rankings that matches each ground-truth row.

    All rankings go through at once: classes first, then boxes only where the classes agree.
    """
    sizes = [len(triplets.subject) for triplets in ranked]
    subject = np.concatenate([triplets.subject for triplets in ranked])
    object_ = np.concatenate([triplets.object for triplets in ranked])
    predicate = np.concatenate([triplets.predicate for triplets in ranked])
    mine = triplet_code(found.labels[subject], found.labels[object_], predicate)
    triplet, row = np.nonzero(mine[:, None] == code[None, :])
    ends = np.concatenate([subject[triplet], object_[triplet]])
    true_ends = truth.relations[row, :2].T.ravel()
    if protocol.match == "identity":
        overlaps = ends == true_ends
    else:
        overlaps = paired_iou(found.boxes[ends], truth.boxes[true_ends]) >= protocol.iou
    both = overlaps[: len(row)] & overlaps[len(row) :]
    triplet, row = triplet[both][::-1], row[both][::-1]
    start = np.concatenate([[0], np.cumsum(sizes)])
    ranking = np.searchsorted(start, triplet, side="right") - 1
    ranks = np.full((len(ranked), len(code)), NEVER)
    ranks[ranking, row] = triplet - start[ranking]  # from the last to the first, so the first stays
    return ranks
