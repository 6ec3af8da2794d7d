"""One image: at which rank is each ground-truth row found? All figures follow from these ranks.

A triplet matches every ground-truth row of the same (subject class, predicate, object class) whose two boxes both
overlap the triplet's with IoU >= 0.5. Box identity is not required, even with given boxes, unless the protocol asks
for it. A row counts as found by the first K triplets when the rank of its first match is below K; duplicate rows
count separately (under "sgbench" they count once).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenegpi.boxes import box_iou, paired_iou
from scenegpi.graph import SceneGraph
from scenegpi.metrics.inputs import LABEL_LIMIT, Prediction, Truth, read_prediction, read_truth
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.ranking import NEVER, Triplets, candidates

ImageInput = SceneGraph | Mapping[str, Any]


class ImageMatch(NamedTuple):
    """The ranks of one image.

    `ranks` (n, G) holds a row for each ranking of `rankings(protocol)`: the rank, from 0, of the first triplet that
    matches the ground-truth row, or NEVER. `pair_rank` (G,) is the place of the true predicate among those of its own
    pair (PredCls only, else NEVER). `only_true_pairs`: only pairs of the ground truth were predicted.
    `hits` are the ranks of the triplets that match a row, `pair_ranks` (G',) those of the first triplet on each
    different pair of the ground truth, both under the graph constraint; `instances` is the fraction of its objects that
    some box matches. The last two only under "sgbench".
    """

    predicate: NDArray[np.integer]
    code: NDArray[np.int64]
    ranks: NDArray[np.int64]
    pair_rank: NDArray[np.int64]
    empty: bool
    only_true_pairs: bool
    key: int
    hits: NDArray[np.int64]
    pair_ranks: NDArray[np.int64]
    instances: float


def rankings(protocol: Protocol) -> list[tuple[str, int | None]]:
    """Name and predicates per pair of each ranking: "" (1), "ng" (None: all), "A" (true pairs only), "k=..."."""
    found: list[tuple[str, int | None]] = [(prefix, None if prefix else 1) for prefix in protocol.prefixes]
    if protocol.given_boxes and "" in protocol.prefixes:
        found.append(("A", 1))
    return found + [(f"k={k}", k) for k in protocol.per_pair]


def match_image(prediction: ImageInput, target: ImageInput, predicates: int, protocol: Protocol) -> ImageMatch:
    """Match one image's prediction to its ground truth; `predicates` is P."""
    truth = read_truth(target, predicates)
    found = read_prediction(prediction, truth, predicates, protocol)
    key, instances, pairs = truth.key(), 0.0, np.empty((0, 3), np.int64)
    if protocol.match == "sgbench":
        truth = truth._replace(relations=np.unique(truth.relations, axis=0))
        pairs = np.unique(truth.relations * [1, 1, 0], axis=0)
        counted = counted_as(found, truth, protocol)
        instances = len(np.unique(counted[counted >= 0])) / max(len(truth.boxes), 1)
    rows, labels = truth.relations, truth.labels
    code = triplet_code(labels[rows[:, 0]], labels[rows[:, 1]], rows[:, 2])
    wanted, limit = rankings(protocol), max(protocol.ks[-1], len(rows))
    ranks = np.full((len(wanted), len(rows)), NEVER)
    place, pair_ranks = np.full(len(rows), NEVER), np.full(len(pairs), NEVER)
    hits, only_true = place[:0], False
    # An image without rows is checked too, though nothing is counted.
    offered = None if found.empty else candidates(found, rows, limit, protocol)
    if offered is not None and len(rows):
        ranked = [offered.ranked_on_true() if name == "A" else offered.ranked(k) for name, k in wanted]
        ranks, hits = first_matches(ranked, found, truth, code, protocol)
        if len(pairs) and wanted[0] == ("", 1):
            first, truth_pairs = ranked[0], truth._replace(relations=pairs)
            any_predicate = first._replace(predicate=np.zeros_like(first.predicate))
            pair_code = triplet_code(labels[pairs[:, 0]], labels[pairs[:, 1]], pairs[:, 2])
            ((pair_ranks,), _) = first_matches([any_predicate], found, truth_pairs, pair_code, protocol)
        only_true = protocol.given_boxes and offered.only_true()
        if protocol.task == "predcls":
            place = offered.place_in_pair()
    return ImageMatch(rows[:, 2], code, ranks, place, found.empty, only_true, key, hits, pair_ranks, instances)


def triplet_code(subject: NDArray[Any], object_: NDArray[Any], predicate: NDArray[Any]) -> NDArray[np.int64]:
    """(n,) one number for each (subject class, object class, predicate), all below LABEL_LIMIT."""
    code: NDArray[np.int64] = (subject.astype(np.int64) * LABEL_LIMIT + object_) * LABEL_LIMIT + predicate
    return code


def first_matches(
    ranked: list[Triplets], found: Prediction, truth: Truth, code: NDArray[np.int64], protocol: Protocol
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n, G) rank of the first triplet of each of the n rankings that matches each ground-truth row, and the ranks of
    all triplets of the first ranking that match some row.

    All rankings go through at once: classes first, then boxes only where the classes agree.
    """
    sizes = [len(triplets.subject) for triplets in ranked]
    subject = np.concatenate([triplets.subject for triplets in ranked])
    object_ = np.concatenate([triplets.object for triplets in ranked])
    predicate = np.concatenate([triplets.predicate for triplets in ranked])
    mine = triplet_code(found.labels[subject], found.labels[object_], predicate)
    triplet, row = np.nonzero(mine[:, None] == code[None, :])
    ends = np.concatenate([subject[triplet], object_[triplet]])
    same = same_object(found, truth, protocol, ends, truth.relations[row, :2].T.ravel())
    both = same[: len(row)] & same[len(row) :]
    triplet, row = triplet[both][::-1], row[both][::-1]
    start = np.concatenate([[0], np.cumsum(sizes)])
    ranking = np.searchsorted(start, triplet, side="right") - 1
    ranks = np.full((len(ranked), len(code)), NEVER)
    ranks[ranking, row] = triplet - start[ranking]  # from the last to the first, so the first stays
    return ranks, np.unique(triplet[ranking == 0])


def same_object(
    found: Prediction, truth: Truth, protocol: Protocol, ends: NDArray[Any], true_ends: NDArray[Any]
) -> NDArray[np.bool_]:
    """(n,) whether each predicted box matches the true box in its row; their labels are equal."""
    if protocol.match == "overlap":
        return paired_iou(found.boxes[ends], truth.boxes[true_ends]) >= protocol.iou
    stands = counted_as(found, truth, protocol)[ends] if protocol.match == "sgbench" else ends
    return np.asarray(stands == true_ends)


def counted_as(found: Prediction, truth: Truth, protocol: Protocol) -> NDArray[np.int64]:
    """(N,) the true box of the same label that each box overlaps most, not counting pixels inclusively; -1 for none."""
    if not len(truth.boxes):
        return np.full(len(found.boxes), -1)
    last = np.array([0, 0, 1, 1])  # the overlap of boxes that count pixels inclusively, one pixel shorter
    iou = np.nan_to_num(box_iou(found.boxes - last, truth.boxes - last))
    iou[found.labels[:, None] != truth.labels[None, :]] = 0
    return np.where(iou.max(axis=1) >= protocol.iou, iou.argmax(axis=1), -1)
