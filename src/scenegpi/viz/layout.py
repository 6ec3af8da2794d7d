"""Where the nodes of a graph go, without the `dot` program: by stress, then rectangles pushed apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
STILL = 1e-3
"""A sweep that moves no node further than this is the last one; links are about 1 long."""


def separate(centres: Array, sizes: Array, bounds: tuple[float, float, float, float], steps: int = 150) -> Array:
    """Moves (N, 2) centres of rectangles of (N, 2) `sizes` until they are clear of each other, inside `bounds`.

    Each step pushes overlapping rectangles apart along the direction that needs less movement, and lets every
    rectangle lean a little towards where it started. Deterministic.
    """
    if not len(centres):
        return centres.copy()
    low = (np.array(bounds[:2]) + sizes / 2).T
    high = np.maximum((np.array(bounds[2:]) - sizes / 2).T, low)
    home = centres.T
    at = home + (_jitter(len(centres)) * sizes.mean()).T
    need = (sizes.T[:, :, None] + sizes.T[:, None, :]) / 2
    need[:, np.arange(len(centres)), np.arange(len(centres))] = -np.inf  # nothing pushes itself
    for step in range(steps):
        at += (home - at) * (0.04 * (1 - step / steps))
        gap = at[:, :, None] - at[:, None, :]
        overlap = need - np.abs(gap)
        reach = np.minimum(overlap[0], overlap[1])
        if reach.max() > 0:
            push = np.sign(gap) * (np.maximum(reach, 0) * (overlap == reach))
            at += 0.3 * push.sum(axis=2)
        np.minimum(np.maximum(at, low, out=at), high, out=at)
    return at.T


def stress_layout(start: Array, links: list[tuple[int, int]], sweeps: int = 150) -> Array:
    """(N, 2) positions whose distances follow the number of links between nodes, starting from `start`.

    Stress majorisation: minimises sum_ij (|x_i - x_j| - d_ij)^2 / d_ij^2 by the Guttman transform; d_ij is the length
    of the shortest path, and for nodes that no path joins a little more than the side of a square of all nodes.
    """
    n = len(start)
    if n < 2:
        return start.copy()
    hops = np.full((n, n), np.inf)
    np.fill_diagonal(hops, 0)
    for a, b in links:
        hops[a, b] = hops[b, a] = 1
    for k in range(n):
        hops = np.minimum(hops, hops[:, k : k + 1] + hops[k : k + 1])
    far = 0.9 * np.sqrt(n) + 1.5
    ideal = np.where(np.isinf(hops), far, hops)
    weight = np.where(np.eye(n, dtype=bool), 0, 1 / np.maximum(ideal, 1) ** 2)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.pinv(laplacian)
    spread = np.maximum(start.std(axis=0), 1e-6)
    at = (start - start.mean(axis=0)) / spread * np.sqrt(n) / 2 + _jitter(n) * 4
    pull = weight * ideal
    for _ in range(sweeps):
        gap = at[:, None] - at[None, :]
        ratio = pull / np.maximum(np.sqrt((gap * gap).sum(axis=2)), 1e-9)
        new = inverse @ (ratio.sum(axis=1)[:, None] * at - ratio @ at)
        moved, at = float(np.abs(new - at).max()), new
        if moved < STILL:
            break
    return at


def _jitter(n: int) -> Array:
    """(N, 2) small fixed offsets that tell coinciding rectangles apart."""
    turn = np.arange(n) * 2.399963  # the golden angle: no two directions repeat
    return 0.05 * np.column_stack([np.cos(turn), np.sin(turn)])


def tangle(at: Array, sizes: Array, links: list[tuple[int, int]]) -> float:
    """How hard a drawing is to read: links that cross, and links that run through a node that is not theirs."""
    if not links:
        return 0.0
    ends = np.array(links)
    a, b = at[ends[:, 0]], at[ends[:, 1]]
    shared = (ends[:, None, :, None] == ends[None, :, None, :]).any(axis=(2, 3))
    crossing = _sides(a, b, a, b) & _sides(a, b, a, b).T & ~shared
    low, high = at - 0.46 * sizes, at + 0.46 * sizes
    way = np.where(np.abs(b - a) < 1e-9, 1e-9, b - a)
    first, second = ((edge[None] - a[:, None]) / way[:, None] for edge in (low, high))
    enter = np.minimum(first, second).max(axis=2)
    leave = np.maximum(first, second).min(axis=2)
    through = (enter < leave) & (leave > 0) & (enter < 1)
    through[np.arange(len(ends))[:, None], ends] = False
    return float(np.triu(crossing, 1).sum() + 1.5 * through.sum())


def _sides(a: Array, b: Array, c: Array, d: Array) -> NDArray[np.bool_]:
    """(E, F) whether segment c d has its ends on different sides of the line a b."""
    along = b - a
    left, right = (
        along[:, None, 0] * (p[None, :, 1] - a[:, None, 1]) - along[:, None, 1] * (p[None, :, 0] - a[:, None, 0])
        for p in (c, d)
    )
    return np.asarray(left * right < 0)
