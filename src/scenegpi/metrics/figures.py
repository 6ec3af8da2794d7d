"""Sums -> figures, keyed by their usual names.

    R@K, ngR@K        mean over images of matched rows / rows
    mR@K, ngmR@K      mean over the images that contain a predicate, then over all P predicates, absent ones counting 0
    zR@K, ngzR@K      R@K over zero-shot rows only
    A@K               pooled, triplets of ground-truth pairs only (PredCls, SGCls)
    occurring-mR@K    mR@K over the predicates that occur;  head-mR@K, ...: over the predicates of a group
    pooled-R@K        matched rows / rows of the whole data set; pooled-zR@K, and with ng
    detection-R@K,k=1 pooled, with the k best predicates of each pair: predicate detection as on VRD
    pair-R@5          pooled: is the true predicate among the 5 best of its own pair (PredCls)
    F1@K              harmonic mean of R@K and mR@K
    weighted-R@K      as R@K, but a match counts less for each wrong triplet before it: (K - their number) / K
    relative-R, -mR   R and mR where K is the number of the image's own rows, so that recall is precision too
    PR@K, InstR       as SGBench counts them: pairs found, whatever the predicate; objects found

A figure with nothing to count is NaN. Arrays may have leading axes, as bootstrap replicates do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from scenegpi.metrics.counts import Layout
from scenegpi.metrics.protocol import Empty, Protocol

Groups = Mapping[str, Sequence[int]]
Array = NDArray[np.float64]


class Sums:
    """Named access to the counts, with the denominators of one convention for images without predictions."""

    def __init__(self, sums: Array, layout: Layout, empty: Empty) -> None:
        self.sums, self.layout, self.empty = sums, layout, empty

    def __getitem__(self, name: str) -> Array:
        """The block of this name: (...,), or (..., P)."""
        block = self.sums[..., self.layout.blocks[name]]
        return block if "predicate" in name else block[..., 0]

    def total(self, name: str, recall: bool = False) -> Array:
        """The denominator; `recall` marks the figures, R and its pooled form, that "field" counts as 0."""
        skip = self.empty == "skip" or (self.empty == "field" and not recall)
        return self[name] - self[f"{name}_empty"] if skip else self[name]


def figures(
    sums: Array,
    layout: Layout,
    empty: Empty,
    zero_shot: bool,
    groups: Groups | None = None,
    reference: Array | None = None,
) -> dict[str, Array]:
    """Every figure of the protocol.

    Args:
        sums: (..., layout.size), or the first `layout.replicated` columns of it.
        empty: the convention for images without predictions, in place of the protocol's own.
        zero_shot: whether zero-shot triplets are known; without them there is no zR@K.
        groups: predicates of each named group.
        reference: (layout.size,) for replicates, the sums of the whole data set. If a replicate has no
            image with a predicate, that predicate keeps its recall on the whole data set. (Counting it as 0, or leaving
            it out, would bias the interval of mR@K.)
    """
    protocol, counted = layout.protocol, Sums(sums, layout, empty)
    whole = counted if reference is None else Sums(reference, layout, empty)
    images = counted.total("predicate_images")
    occurring = whole.total("predicate_images") > 0
    everything = np.arange(layout.predicates)
    cells = [(x, k) for x in protocol.prefixes for k in protocol.ks]

    def mean_recall(block: str, members: NDArray[np.integer]) -> tuple[Array, float]:
        """Mean over the predicates among `members` that occur, and their share of `members`."""
        there = members[occurring[members]]
        if not len(there):
            return np.full(sums.shape[:-1], np.nan), 0.0
        recall = _ratio(counted[block], images)[..., there]
        of_all = _ratio(whole[block], whole.total("predicate_images"))[there]
        return np.where(np.isnan(recall), of_all, recall).mean(axis=-1), len(there) / len(members)

    mean = {(x, k): mean_recall(f"{x}predicate@{k}", everything) for x, k in cells}
    rows = counted.total("rows", recall=True)
    found = {f"{x}R@{k}": _ratio(counted[f"{x}R@{k}"], counted.total("images", recall=True)) for x, k in cells}
    found |= {f"{x}mR@{k}": value * share for (x, k), (value, share) in mean.items()}
    if zero_shot:
        found |= {f"{x}zR@{k}": _ratio(counted[f"{x}zR@{k}"], counted.total("z_images")) for x, k in cells}
    if protocol.given_boxes and "" in protocol.prefixes:
        found |= {f"A@{k}": _ratio(counted[f"A@{k}"], counted.total("rows")) for k in protocol.ks}
    found |= {f"occurring-{x}mR@{k}": value for (x, k), (value, _) in mean.items()}
    for name, group in (groups or {}).items():
        for x, k in cells:
            value, share = mean_recall(f"{x}predicate@{k}", np.asarray(group, dtype=np.intp))
            found[f"{name}-{x}mR@{k}"] = value * share
    found |= {f"pooled-{x}R@{k}": _ratio(counted[f"{x}rows@{k}"], rows) for x, k in cells}
    if zero_shot:
        found |= {f"pooled-{x}zR@{k}": _ratio(counted[f"{x}zrows@{k}"], counted.total("z_rows")) for x, k in cells}
    if "" in protocol.prefixes:
        found |= {f"F1@{k}": _harmonic(found[f"R@{k}"], found[f"mR@{k}"]) for k in protocol.ks}
        found |= {f"weighted-R@{k}": _ratio(counted[f"weighted@{k}"], counted.total("images")) for k in protocol.ks}
        found["relative-R"] = _ratio(counted["relative"], counted.total("images"))
        value, share = mean_recall("relative_predicate", everything)
        found["relative-mR"] = value * share
    return found | _of_some_protocols(counted, protocol, rows)


def _of_some_protocols(counted: Sums, protocol: Protocol, rows: Array) -> dict[str, Array]:
    """Figures that only VRD's predicate detection, PredCls, or SGBench's way to match has."""
    found = {
        f"detection-R@{k},k={per}": _ratio(counted[f"k={per}@{k}"], rows)
        for per in protocol.per_pair
        for k in protocol.ks
    }
    if protocol.task == "predcls":
        found[f"pair-R@{protocol.pair_k}"] = _ratio(counted["pair"], rows)
    if protocol.match == "sgbench":
        images = counted.total("images", recall=True)
        names = [*(f"PR@{k}" for k in protocol.ks if "" in protocol.prefixes), "InstR"]
        found |= {name: _ratio(counted[name], images) for name in names}
    return found


def per_predicate(sums: Array, layout: Layout, empty: Empty) -> dict[str, Array]:
    """(P,) for each predicate: recall as averaged in mR@K, pooled recall, recall@5 in its own pair, and the count."""
    protocol, counted = layout.protocol, Sums(sums, layout, empty)
    images, rows = counted.total("predicate_images"), counted.total("predicate_rows")
    found = {"images": counted["predicate_images"], "relations": counted["predicate_rows"]}
    for x in protocol.prefixes:
        for k in protocol.ks:
            found[f"{x}R@{k}"] = _ratio(counted[f"{x}predicate@{k}"], images)
            found[f"pooled-{x}R@{k}"] = _ratio(counted[f"{x}predicate_rows@{k}"], rows)
    if protocol.task == "predcls":
        all_rows = counted.total("predicate_rows", recall=True)
        found[f"pair-R@{protocol.pair_k}"] = _ratio(counted["predicate_pair"], all_rows)
    return found


def _harmonic(a: Array, b: Array) -> Array:
    return np.where(a + b == 0, 0.0, 2 * a * b / np.where(a + b == 0, 1.0, a + b))


def _ratio(numerator: Array, denominator: Array) -> Array:
    return np.divide(
        numerator, denominator, out=np.full(np.shape(numerator), np.nan), where=np.asarray(denominator) > 0
    )
