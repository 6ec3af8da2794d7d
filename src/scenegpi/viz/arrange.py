"""A scene graph as a drawing: entities and relations are nodes, each with a position, a size and a text.

Nodes are placed by stress, then rectangles are pushed apart; no `dot` program is needed. The same arrangement is drawn
in pictures and in the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scenegpi.graph import SceneGraph
from scenegpi.viz.text import shortened, text_sizes

Array = NDArray[np.float64]
Links = Mapping[tuple[int, int], Sequence[str]]
CROWD = 40
"""With more boxes than this, only those in a relation are nodes."""
TRIES, STEPS = 6, 150
"""Number of layouts, and the maximum steps of each."""
GAP = 0.12
WEAK = 0.05
"""Relations with a lower score are drawn as guesses."""
STILL = 1e-3
"""The layout stops when no node moves further than this; links are about 1 long."""


@dataclass(frozen=True)
class Arrangement:
    """M entity nodes, then L relation nodes, in a panel of `panel` inches.

    `shown` are the boxes of the entity nodes, `linked` those in a relation; `links` the ordered pairs of the relation
    nodes; all nodes have `texts`, centres `at` (M + L, 2) and `sizes` (M + L, 2); `left_out` boxes have no node.
    """

    panel: tuple[float, float]
    shown: tuple[int, ...]
    linked: frozenset[int]
    links: tuple[tuple[int, int], ...]
    texts: tuple[str, ...]
    at: Array
    sizes: Array
    points: float
    left_out: int

    @property
    def place(self) -> dict[int, int]:
        """Box -> its node."""
        return {box: k for k, box in enumerate(self.shown)}

    def arrow(self, k: int) -> tuple[Array, Array, Array, Array]:
        """The lines of link k: from the subject's border to the relation node, and on to the object's border."""
        subject, object_ = (self.place[end] for end in self.links[k])
        node = len(self.shown) + k
        middle = self.at[node]
        return (
            border(middle, self.at[subject], self.sizes[subject]),
            border(self.at[subject], middle, self.sizes[node]),
            border(self.at[object_], middle, self.sizes[node]),
            border(middle, self.at[object_], self.sizes[object_]),
        )


def best_links(graph: SceneGraph, top: int) -> tuple[dict[tuple[int, int], list[str]], set[tuple[int, int]]]:
    """Ordered pair -> its predicates, with scores if the graph has any, of the best `top` distinct relations.

    And the pairs whose best relation scores less than WEAK.
    """
    scored = graph.scores is not None or graph.relation_scores is not None
    distinct: dict[tuple[int, int, str], float] = {}
    for t in graph.triplets():
        distinct.setdefault((t.subject_index, t.object_index, t.predicate), t.score)
    links: dict[tuple[int, int], list[str]] = {}
    weak = set()
    for (s, o, predicate), score in list(distinct.items())[:top]:
        if (s, o) not in links and score < WEAK:
            weak.add((s, o))
        text = f"{predicate} {score:.2f}" if score >= 0.01 else f"{predicate} <0.01"
        links.setdefault((s, o), []).append(text if scored else predicate)
    return links, weak


def arrange(
    names: Sequence[str],
    centres: Array,
    links: Links,
    panel: tuple[float, float],
    points: float | None = None,
    everyone: bool = False,
) -> Arrangement:
    """Arranges the nodes of a graph.

    Args:
        names: the N names to show for the boxes.
        centres: (N, 2) of the boxes, in 0..1 of the image: nodes are placed like boxes, as far as possible.
        links: ordered pair -> texts of its relation node.
        panel: width and height in inches.
        points: size of the text; by default it depends on the number of nodes.
        everyone: boxes without a relation are nodes even if there are many boxes.
    """
    linked = frozenset(end for pair in links for end in pair)
    shown = tuple(range(len(names))) if everyone or len(names) <= CROWD else tuple(sorted(linked))
    count = len(shown) + len(links)
    size = points or (10.5 if count <= 20 else 9.0 if count <= 36 else 7.5 if count <= 60 else 6.5)
    texts = (*(names[i] for i in shown), *(shortened(" / ".join(words)) for words in links.values()))
    sizes = np.concatenate([
        text_sizes(texts[: len(shown)], size, bold=True) + np.array([0.08, 0.05]),
        text_sizes(texts[len(shown) :], size * 0.94) + np.array([0.06, 0.0]),
    ])  # fmt: skip
    place = {box: k for k, box in enumerate(shown)}
    lonely = [k for k, box in enumerate(shown) if box not in linked]
    joined = [k for k in range(len(texts)) if k >= len(shown) or shown[k] in linked]
    at = np.zeros((len(texts), 2))
    at[lonely], shelf = _shelf(sizes[lonely], panel)
    row = {k: i for i, k in enumerate(joined)}
    pairs = [(row[place[s]], row[place[o]]) for s, o in links]
    edges = [(row[place[end]], row[len(shown) + k]) for k, pair in enumerate(links) for end in pair]
    home = centres[[box for box in shown if box in linked]].reshape(-1, 2)
    at[joined] = _place(home, pairs, edges, sizes[joined], (panel[0], panel[1] - shelf))
    return Arrangement(panel, shown, linked, tuple(links), texts, at, sizes, size, len(names) - len(shown))


def border(start: Array, end: Array, size: Array) -> Array:
    """Where the line from `start` to the centre `end` of a rectangle meets its border."""
    way = start - end
    reach = np.abs(way) / np.maximum(size / 2, 1e-9)
    return np.asarray(end + way / max(float(reach.max()), 1.0))


def _shelf(sizes: Array, panel: tuple[float, float]) -> tuple[Array, float]:
    """Rows at the foot of the panel for entities without a relation: centres (K, 2), and the height of the rows."""
    if not len(sizes):
        return np.zeros((0, 2)), 0.0
    rows: list[list[int]] = [[]]
    used = 0.0
    for k, wide in enumerate((sizes[:, 0] + GAP).tolist()):
        if rows[-1] and used + wide > panel[0]:
            rows.append([])
            used = 0.0
        rows[-1].append(k)
        used += wide
    step = float(sizes[:, 1].max()) + GAP
    at = np.zeros((len(sizes), 2))
    for r, row in enumerate(rows):
        widths = sizes[row, 0] + GAP
        left = (panel[0] - widths.sum()) / 2
        at[row, 0] = left + np.cumsum(widths) - widths / 2
        at[row, 1] = panel[1] - step * (len(rows) - r) + step / 2
    return at, min(step * len(rows) + 0.1, 0.7 * panel[1])


def _place(
    home: Array, pairs: list[tuple[int, int]], edges: list[tuple[int, int]], sizes: Array, panel: tuple[float, float]
) -> Array:
    """(M + L, 2) centres: the least tangled of several layouts, the first of which starts from the boxes' places."""
    room = np.array(panel)
    middles = np.array([(home[s] + home[o]) / 2 for s, o in pairs]).reshape(-1, 2)
    start = np.concatenate([home, middles])
    if not len(start):
        return start
    air = np.array([0.25, 0.3]) * min(1.0, 0.35 * float(room.prod()) / float(np.prod(sizes, axis=1).sum()))
    best, least = start, np.inf
    rng = np.random.default_rng(0)
    for attempt in range(TRIES if len(start) <= 90 else 2):
        noise = rng.normal(size=start.shape) * 0.12 * attempt
        at = _fit(stress_layout(start + noise, edges), room, sizes)
        at = separate(at, sizes + air, (0, 0, *panel))
        cost = tangle(at, sizes, edges) + 0.25 * (attempt > 0)
        if cost < least:
            best, least = at, cost
        if least == 0:
            break
    return best


def _fit(points: Array, room: Array, sizes: Array) -> Array:
    """The points centred and scaled to the panel, with room for the nodes' sizes."""
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    reach = np.maximum(np.ptp(points, axis=0), 1e-6)
    free = np.maximum(room - sizes.mean(axis=0) - 0.1, 0.2 * room)
    return np.asarray(room / 2 + (points - middle) * np.minimum(free / reach, 1.3))


def separate(centres: Array, sizes: Array, bounds: tuple[float, float, float, float]) -> Array:
    """Moves (N, 2) centres of rectangles of (N, 2) `sizes` until they are clear of each other, inside `bounds`.

    Each step pushes overlapping rectangles apart along the direction that needs less movement, and pulls every
    rectangle a little towards its start. Deterministic.
    """
    if not len(centres):
        return centres.copy()
    low = (np.array(bounds[:2]) + sizes / 2).T
    high = np.maximum((np.array(bounds[2:]) - sizes / 2).T, low)
    home = centres.T
    at = home + (_jitter(len(centres)) * sizes.mean()).T
    need = (sizes.T[:, :, None] + sizes.T[:, None, :]) / 2
    need[:, np.arange(len(centres)), np.arange(len(centres))] = -np.inf  # nothing pushes itself
    for step in range(STEPS):
        at += (home - at) * (0.04 * (1 - step / STEPS))
        gap = at[:, :, None] - at[:, None, :]
        overlap = need - np.abs(gap)
        reach = np.minimum(overlap[0], overlap[1])
        if reach.max() > 0:
            push = np.sign(gap) * (np.maximum(reach, 0) * (overlap == reach))
            at += 0.3 * push.sum(axis=2)
        np.minimum(np.maximum(at, low, out=at), high, out=at)
    return at.T


def stress_layout(start: Array, links: list[tuple[int, int]]) -> Array:
    """(N, 2) positions whose distances follow the number of links between nodes, starting from `start`.

    Stress majorisation: minimises sum_ij (|x_i - x_j| - d_ij)^2 / d_ij^2 by the Guttman transform; d_ij is the length
    of the shortest path, and for unconnected nodes a little more than the side of a square of all nodes.
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
    for _ in range(STEPS):
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
    """How hard a drawing is to read: counts links that cross, and links that run through another node."""
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
