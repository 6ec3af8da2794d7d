"""Counts, as one flat vector of sums per image: adding vectors adds data sets.

Every figure is a ratio of such sums (or a mean of ratios), so that the state of an evaluation has a fixed size, merges
by addition, and a bootstrap replicate is the same sums with weights. Blocks, G rows and P predicates per image:

    <prefix>R@K           matched rows / rows                     <prefix>rows@K      matched rows
    <prefix>zR@K          the same over zero-shot rows            <prefix>zrows@K
    <prefix>predicate@K   (P,) matched / present, each predicate  <prefix>predicate_rows@K  (P,) matched rows
    A@K, k=..@K, pair     matched rows of the other rankings
    weighted@K, relative, relative_predicate (P,), PR@K, InstR: see `figures`
    images, rows, z_images, z_rows, predicate_images (P,), predicate_rows (P,): what they are divided by;
    the same with _empty: the part of it from images without predictions
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from scenegpi.metrics.matching import ImageMatch, rankings
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.zero_shot import ZeroShot

Blocks = dict[str, NDArray[np.generic]]
"""Counts of n images by name, each (n,) or (n, P)."""


class Layout:
    """The position of each block in the vector. The first `replicated` columns are those that intervals need."""

    def __init__(self, protocol: Protocol, predicates: int) -> None:
        self.protocol, self.predicates = protocol, predicates
        replicated, others = _blocks([], protocol, predicates, None)
        widths = {name: 1 if values.ndim == 1 else predicates for name, values in (replicated | others).items()}
        ends: list[int] = np.cumsum(list(widths.values())).tolist()
        self.blocks = {name: slice(end - width, end) for (name, width), end in zip(widths.items(), ends, strict=True)}
        self.replicated, self.size = ends[len(replicated) - 1], ends[-1]


def count(matches: Sequence[ImageMatch], layout: Layout, zero_shot: ZeroShot | None) -> NDArray[np.float64]:
    """(n, layout.size) the counts of n images."""
    replicated, others = _blocks(matches, layout.protocol, layout.predicates, zero_shot)
    return np.column_stack([*replicated.values(), *others.values()]).astype(np.float64)


def _blocks(
    matches: Sequence[ImageMatch], protocol: Protocol, p: int, zero_shot: ZeroShot | None
) -> tuple[Blocks, Blocks]:
    """The blocks of n images that intervals need, and the others."""
    n, wanted = len(matches), rankings(protocol)
    sizes = np.array([len(match.predicate) for match in matches], dtype=np.int64)
    empty = np.array([match.empty for match in matches], dtype=bool)
    image = np.repeat(np.arange(n), sizes)
    cell = image * p + _joined(match.predicate for match in matches)
    ranks = np.concatenate([np.empty((len(wanted), 0), np.int64), *(match.ranks for match in matches)], axis=1)
    code = _joined(match.code for match in matches)
    unseen = np.zeros(len(code), dtype=bool) if zero_shot is None else zero_shot.holds(code)

    def of_images(rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(image[rows], minlength=n)

    def of_predicates(rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(cell[rows], minlength=n * p).reshape(n, p)

    every = np.ones(len(cell), dtype=bool)
    present, z_rows = of_predicates(every), of_images(unseen)
    row_total, z_total, cell_total = (np.maximum(total, 1) for total in (sizes, z_rows, present))
    found: Blocks = {}
    others: Blocks = {}
    for number, (name, _) in enumerate(wanted):
        for k in protocol.ks:
            hit = ranks[number] < k
            rows = of_images(hit)
            if name not in ("", "ng"):
                found[f"{name}@{k}"] = rows
                continue
            matched, z_matched = of_predicates(hit), of_images(hit & unseen)
            found[f"{name}R@{k}"], found[f"{name}rows@{k}"] = rows / row_total, rows
            found[f"{name}zR@{k}"], found[f"{name}zrows@{k}"] = z_matched / z_total, z_matched
            found[f"{name}predicate@{k}"], others[f"{name}predicate_rows@{k}"] = matched / cell_total, matched
    if "" in protocol.prefixes:
        hit = ranks[0] < sizes[image]
        found["relative"], found["relative_predicate"] = of_images(hit) / row_total, of_predicates(hit) / cell_total
        owner, place = _flat([match.hits for match in matches])
        before = np.arange(len(place)) - np.searchsorted(owner, owner)  # matches of this image that are ranked earlier
        for k in protocol.ks:
            weight = np.where(place < k, (k - (place - before)) / k, 0.0)
            found[f"weighted@{k}"] = np.bincount(owner, weight, minlength=n) / row_total
    if protocol.match == "sgbench":
        found["InstR"] = np.array([match.instances for match in matches]) * (sizes > 0)
        owner, place = _flat([match.pair_ranks for match in matches])
        pairs = np.maximum(np.bincount(owner, minlength=n), 1)
        for k in protocol.ks if "" in protocol.prefixes else ():
            found[f"PR@{k}"] = np.bincount(owner[place < k], minlength=n) / pairs
    if protocol.task == "predcls":
        in_pair = _joined(match.pair_rank for match in matches) < protocol.pair_k
        found["pair"], others["predicate_pair"] = of_images(in_pair), of_predicates(in_pair)
    totals: Blocks = {"images": sizes > 0, "rows": sizes, "z_images": z_rows > 0, "z_rows": z_rows}
    for name, values in (totals | {"predicate_images": present > 0, "predicate_rows": present}).items():
        group = others if name == "predicate_rows" else found
        group[name], group[f"{name}_empty"] = values, (values.T * empty).T
    others["unrelated"] = sizes == 0
    others["only_true_pairs"] = np.array([match.only_true_pairs for match in matches], dtype=bool)
    return found, others


def _joined(parts: Iterable[NDArray[np.integer]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _flat(parts: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The values of all images, concatenated: the image of each, and the values."""
    return np.repeat(np.arange(len(parts)), [len(part) for part in parts]), _joined(parts)
