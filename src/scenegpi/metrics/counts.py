"""What is counted, as one flat vector of sums per image: adding vectors adds data sets.

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

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scenegpi.metrics.matching import ImageMatch, rankings
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.zero_shot import ZeroShot

TOTALS = ("images", "rows", "z_images", "z_rows")


@dataclass(frozen=True)
class Layout:
    """Where each block is in the vector. The first `replicated` columns are those that intervals need."""

    protocol: Protocol
    predicates: int
    blocks: dict[str, slice] = field(init=False)
    replicated: int = field(init=False)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        p, ks = self.predicates, self.protocol.ks
        sizes: dict[str, int] = {}
        for name, _ in rankings(self.protocol):
            for k in ks:
                if name in ("", "ng"):
                    sizes |= dict.fromkeys((f"{name}{part}@{k}" for part in ("R", "rows", "zR", "zrows")), 1)
                    sizes[f"{name}predicate@{k}"] = p
                else:
                    sizes[f"{name}@{k}"] = 1
        if "" in self.protocol.prefixes:
            sizes |= {f"weighted@{k}": 1 for k in ks} | {"relative": 1, "relative_predicate": p}
        if self.protocol.match == "sgbench":
            sizes |= {f"PR@{k}": 1 for k in ks if "" in self.protocol.prefixes} | {"InstR": 1}
        sizes["pair"] = 1
        for name in TOTALS:
            sizes |= {name: 1, f"{name}_empty": 1}
        sizes |= {"predicate_images": p, "predicate_images_empty": p}
        object.__setattr__(self, "replicated", sum(sizes.values()))
        sizes |= {f"{prefix}predicate_rows@{k}": p for prefix in self.protocol.prefixes for k in ks}
        sizes |= {"predicate_rows": p, "predicate_rows_empty": p, "predicate_pair": p}
        sizes |= {"unrelated": 1, "only_true_pairs": 1}
        ends = np.cumsum(list(sizes.values())).tolist()
        object.__setattr__(self, "size", ends[-1])
        object.__setattr__(self, "blocks", {n: slice(e - w, e) for (n, w), e in zip(sizes.items(), ends, strict=True)})


def count(matches: Sequence[ImageMatch], layout: Layout, zero_shot: ZeroShot | None) -> NDArray[np.float64]:
    """(n, layout.size) the counts of n images."""
    protocol, p, n = layout.protocol, layout.predicates, len(matches)
    sizes = np.array([len(match.predicate) for match in matches])
    empty = np.array([match.empty for match in matches])
    image = np.repeat(np.arange(n), sizes)
    cell = image * p + np.concatenate([match.predicate for match in matches])
    ranks = np.concatenate([match.ranks for match in matches], axis=1)
    pair_rank = np.concatenate([match.pair_rank for match in matches])
    code = np.concatenate([match.code for match in matches])
    unseen = np.zeros(len(code), dtype=bool) if zero_shot is None else zero_shot.holds(code)

    out = np.zeros((n, layout.size))

    def put(name: str, values: NDArray[np.generic]) -> None:
        out[:, layout.blocks[name]] = values.reshape(n, -1)

    def put_total(name: str, values: NDArray[np.generic]) -> None:
        put(name, values)
        put(f"{name}_empty", values * (empty if values.ndim == 1 else empty[:, None]))

    present = np.bincount(cell, minlength=n * p).reshape(n, p)
    z_rows = np.bincount(image[unseen], minlength=n)
    row_total, z_total, cell_total = (np.maximum(total, 1) for total in (sizes, z_rows, present))
    for number, (name, _) in enumerate(rankings(protocol)):
        for k in protocol.ks:
            hit = ranks[number] < k
            matched = np.bincount(cell[hit], minlength=n * p).reshape(n, p)
            rows = matched.sum(axis=1)
            if name not in ("", "ng"):
                put(f"{name}@{k}", rows)
                continue
            z_matched = np.bincount(image[hit & unseen], minlength=n)
            put(f"{name}R@{k}", rows / row_total)
            put(f"{name}rows@{k}", rows)
            put(f"{name}zR@{k}", z_matched / z_total)
            put(f"{name}zrows@{k}", z_matched)
            put(f"{name}predicate@{k}", matched / cell_total)
            put(f"{name}predicate_rows@{k}", matched)
    if "" in protocol.prefixes:
        hit = ranks[0] < sizes[image]
        matched = np.bincount(cell[hit], minlength=n * p).reshape(n, p)
        put("relative", matched.sum(axis=1) / row_total)
        put("relative_predicate", matched / cell_total)
        owner, place = _flat([match.hits for match in matches])
        before = np.arange(len(place)) - np.searchsorted(owner, owner)  # matches of this image that are ranked earlier
        for k in protocol.ks:
            weight = np.where(place < k, (k - (place - before)) / k, 0.0)
            put(f"weighted@{k}", np.bincount(owner, weight, minlength=n) / row_total)
    if protocol.match == "sgbench":
        put("InstR", np.array([match.instances for match in matches]) * (sizes > 0))
        owner, place = _flat([match.pair_ranks for match in matches])
        pairs = np.maximum(np.bincount(owner, minlength=n), 1)
        for k in protocol.ks if "" in protocol.prefixes else ():
            put(f"PR@{k}", np.bincount(owner[place < k], minlength=n) / pairs)
    if protocol.task == "predcls":
        in_pair = np.bincount(cell[pair_rank < protocol.pair_k], minlength=n * p).reshape(n, p)
        put("pair", in_pair.sum(axis=1))
        put("predicate_pair", in_pair)
    put_total("images", sizes > 0)
    put_total("rows", sizes)
    put_total("z_images", z_rows > 0)
    put_total("z_rows", z_rows)
    put_total("predicate_images", present > 0)
    put_total("predicate_rows", present)
    put("unrelated", sizes == 0)
    put("only_true_pairs", np.array([match.only_true_pairs for match in matches]))
    return out


def _flat(parts: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The values of all images one after the other: whose each is, and what it is."""
    return np.repeat(np.arange(len(parts)), [len(part) for part in parts]), np.concatenate(parts)
