"""The proof of Theorem 1 as a picture: three nodes, a hash of size 5, and what phi, alpha and their sums hold.

The numbers are those of `scenegpi.gpi.proof.HashConstruction`, run on the graph that is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from scenegpi.gpi.proof import HashConstruction
from scenegpi.gpi.segments import segment_sum
from scenegpi.viz.palette import FAINT, INK, MUTED, text_on
from scenegpi.viz.picture import picture_file
from scenegpi.viz.sheet import Sheet

NODES, BUCKETS = 3, 5
HASH = (0, 3, 1)
"""Buckets of nodes 1, 2 and 3, counted from 0: H(1) = 1, H(2) = 4, H(3) = 2 as in the paper."""
PURPLE, YELLOW, BLUE, GREEN = "#7B5EA7", "#E69F00", "#0072B2", "#009E73"
_CELL = 0.27
_WIDTH, _HEIGHT = 13.3, 5.2


class Construction(NamedTuple):
    """z (3, 3); phi (3, 3, 5) of each i and j; s (3, 5); alpha (3, 5, 5); m (5, 5), their sum."""

    z: NDArray[np.float64]
    phi: NDArray[np.float64]
    s: NDArray[np.float64]
    alpha: NDArray[np.float64]
    m: NDArray[np.float64]


def construct() -> Construction:
    """Runs the construction on a complete graph of three nodes with the features 11, 12, ... 33."""
    nodes = torch.arange(1.0, NODES + 1, dtype=torch.double)[:, None]
    i, j = (each.flatten() for each in torch.meshgrid(torch.arange(NODES), torch.arange(NODES), indexing="ij"))
    z = (10 * (i + 1) + j + 1).double()[:, None]
    bucket = torch.tensor(HASH)
    proof = HashConstruction(lambda nodes, pairs, edges: pairs, BUCKETS, lambda z, size: bucket)
    stored = proof.phi(z, bucket[j], BUCKETS)
    s = segment_sum(stored, i, NODES)
    rows = proof.alpha(nodes, s, bucket, BUCKETS)
    # Beside z_ij the construction stores a mark for "there is an edge", and the nodes' own features.
    alpha = rows[:, :, : 2 * BUCKETS].unflatten(2, (BUCKETS, 2))[..., 1]
    parts = z.view(NODES, NODES), stored[..., 1].view(NODES, NODES, BUCKETS), s[..., 1], alpha, alpha.sum(0)
    return Construction(*(each.numpy() for each in parts))


def draw_proof(target: str | Path) -> Path:
    """Writes the picture, PNG or SVG."""
    target = picture_file(target)
    found, sheet = construct(), Sheet(_WIDTH, _HEIGHT)
    sheet.text((0.2, 0.25), "Theorem 1, the construction of the proof", 12, INK, bold=True)
    sheet.text((0.2, 0.5), "a hash of size 5 with H(1) = 1, H(3) = 2, H(2) = 4", 9.5, MUTED)
    size = _CELL * BUCKETS
    _matrix(sheet, (0.45, 2.3), found.z, PURPLE, "pairs z_ij", {k: str(k + 1) for k in range(NODES)})
    left = 1.85
    sheet.text((left, 0.85), "(a) phi puts z_ij in the bucket of j;", 9.5, INK, bold=True)
    sheet.text((left, 1.04), "their sum over j is s_i", 9.5, INK, bold=True)
    for i in range(NODES):
        top = 1.35 + i * 1.28
        for j in range(NODES):
            column = found.phi[i, j][:, None]
            _matrix(sheet, (left + 0.55 * j + 0.28, top), column, YELLOW, f"phi {i + 1}{j + 1}", scale=0.7)
            sheet.text((left + 0.55 * j + 0.6, top + 0.47), "+" if j < 2 else "=", 10, MUTED, anchor="middle")
        _matrix(sheet, (left + 2.05, top), found.s[i][:, None], GREEN, f"s {i + 1}", scale=0.7)
    left = 4.85
    sheet.text((left, 0.85), "(b) alpha puts s_i", 9.5, INK, bold=True)
    sheet.text((left, 1.04), "in row H(i)", 9.5, INK, bold=True)
    for i in range(NODES):
        top = 1.35 + i * 1.28
        sheet.arrow((left - 0.5, top + 0.47), (left - 0.08, top + 0.47), FAINT, 1.4)
        _matrix(sheet, (left, top), found.alpha[i], BLUE, f"alpha {i + 1}", scale=0.7)
    left = 7.0
    sheet.text((left, 0.85), "(c) their sum M holds every pair in", 9.5, INK, bold=True)
    sheet.text((left, 1.04), "row H(i), column H(j)", 9.5, INK, bold=True)
    sheet.arrow((left - 0.7, 2.75), (left - 0.05, 2.75), FAINT, 1.4)
    names = {bucket: f"H({node + 1})" for node, bucket in enumerate(HASH)}
    _matrix(sheet, (left + 0.5, 2.75 - size / 2), found.m, BLUE, "M", names)
    left = 10.1
    sheet.text((left, 0.85), "without empty buckets: the graph,", 9.5, INK, bold=True)
    sheet.text((left, 1.04), "its nodes listed by bucket", 9.5, INK, bold=True)
    used = sorted(HASH)
    kept = {k: str(HASH.index(bucket) + 1) for k, bucket in enumerate(used)}
    sheet.arrow((left - 0.9, 2.75), (left - 0.05, 2.75), FAINT, 1.4)
    top = 2.75 - _CELL * NODES / 2
    _matrix(sheet, (left + 0.35, top), found.m[np.ix_(used, used)], PURPLE, "", kept)
    sheet.text((left, top + 1.15), "rho labels this with the black box, and reads", 9, MUTED)
    sheet.text((left, top + 1.33), "the label of node k in row H(k)", 9, MUTED)
    sheet.save(target)
    return target


def _matrix(
    sheet: Sheet,
    at: tuple[float, float],
    values: NDArray[np.float64],
    colour: str,
    title: str,
    names: dict[int, str] | None = None,
    scale: float = 1.0,
) -> None:
    """Cells with their values, those that are not 0 in colour; `names` of rows and columns by number."""
    (left, top), cell = at, _CELL * scale
    for r, row in enumerate(values):
        for c, value in enumerate(row):
            box = (left + c * cell, top + r * cell, left + (c + 1) * cell, top + (r + 1) * cell)
            sheet.rect(box, colour if value else "#F6F6F3", FAINT, 0.6)
            middle = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
            ink = text_on(colour) if value else MUTED
            sheet.text(middle, f"{value:g}", 8.5 * scale**0.6, ink, anchor="middle")
    for number, name in (names or {}).items():
        sheet.text((left - 0.06, top + (number + 0.5) * cell), name, 7.5, MUTED, anchor="right")
        sheet.text((left + (number + 0.5) * cell, top - 0.09), name, 7.5, MUTED, anchor="middle")
    where = top - (0.27 if names else 0.1)
    sheet.text((left + values.shape[1] * cell / 2, where), title, 8.5 if scale == 1 else 7.5, INK, anchor="middle")
