"""Pair geometry: brute force by plain Python, permutation, flat batch = loop, chunks, scale."""

import math

import numpy as np
import pytest
import torch

from scenegpi.features.batch import SceneBatch
from scenegpi.features.geometry import (
    PAIR_NAMES,
    PAIR_WIDTH,
    pair_geometry,
)


def geometry(batch, **options):
    return pair_geometry(batch.boxes, batch.sizes, batch.edge_index, batch.batch, **options)


def squash(x):
    return math.copysign(math.log1p(abs(x)), x)


def by_hand(s, o, width, height):
    """The table of the module, column by column, for two boxes with area."""
    (ax, ay, bx, by), (cx, cy, dx, dy) = s, o
    w, h, v, u = bx - ax, by - ay, dx - cx, dy - cy
    step_x, step_y = (cx + dx - ax - bx) / 2, (cy + dy - ay - by) / 2
    ox, oy = min(bx, dx) - max(ax, cx), min(by, dy) - max(ay, cy)
    lx, ly, hx, hy = min(ax, cx), min(ay, cy), max(bx, dx), max(by, dy)
    uw, uh, common = hx - lx, hy - ly, max(ox, 0) * max(oy, 0)
    far, diagonal = math.hypot(step_x, step_y), math.hypot(width, height)
    inset = [squash(x) for x in ((ax - cx) / v, (dx - bx) / v, (ay - cy) / u, (dy - by) / u)]
    outset = [squash(x) for x in ((cx - ax) / w, (bx - dx) / w, (cy - ay) / h, (by - dy) / h)]
    return [
        *(step_x / width, step_y / height),
        *(squash(step_x / w), squash(step_y / h), squash(step_x / v), squash(step_y / u)),
        *(math.log(v / w), math.log(u / h)),
        *(common / (w * h + v * u - common), common / (w * h), common / (v * u)),
        *(max(ox, 0) / w, max(oy, 0) / h, max(ox, 0) / v, max(oy, 0) / u),
        *(ox / uw, oy / uh),
        *inset,
        *outset,
        *((ax - lx) / uw, (hx - bx) / uw, (ay - ly) / uh, (hy - by) / uh),
        *((cx - lx) / uw, (hx - dx) / uw, (cy - ly) / uh, (hy - dy) / uh),
        *(lx / width, 1 - hx / width, ly / height, 1 - hy / height),
        *(far / diagonal, math.hypot(max(-ox, 0), max(-oy, 0)) / diagonal),
        squash(2 * far / (math.hypot(w, h) + math.hypot(v, u))),
        *((step_x / far, step_y / far) if far else (0, 0)),
        *(math.sqrt(w * h / width / height), math.sqrt(v * u / width / height), math.log(w / h), math.log(v / u)),
        float(ax >= cx and ay >= cy and bx <= dx and by <= dy),
        float(cx >= ax and cy >= ay and dx <= bx and dy <= by),
        float(ox <= 0 or oy <= 0),
    ]


def test_every_column_against_plain_python(vocabulary, make_graph):
    rng = np.random.default_rng(3)
    graph = make_graph(rng, 9, vocabulary)
    graph = graph.replace(boxes=graph.boxes + np.array([0, 0, 8, 8]))
    batch = SceneBatch.of([graph])
    found = geometry(batch)
    boxes = graph.boxes.tolist()
    for row, (i, j) in zip(found.tolist(), batch.edge_index.T.tolist(), strict=True):
        want = dict(zip(PAIR_NAMES, by_hand(boxes[i], boxes[j], 200, 160), strict=True))
        assert dict(zip(PAIR_NAMES, row, strict=True)) == pytest.approx(want, abs=1e-6)


def test_listing_the_entities_in_another_order_moves_the_pairs_exactly(graphs):
    rng = np.random.default_rng(1)
    for graph in graphs:
        order = rng.permutation(len(graph))
        here, there = SceneBatch.of([graph]), SceneBatch.of([graph.permute(order)])
        place = {pair: k for k, pair in enumerate(map(tuple, here.edge_index.T.tolist()))}
        rows = [place[int(order[i]), int(order[j])] for i, j in there.edge_index.T.tolist()]
        assert torch.equal(geometry(there), geometry(here)[rows])


def test_flat_batch_equals_loop_over_images_and_chunks_equal_the_whole(graphs):
    batch = SceneBatch.of(graphs)
    flat = geometry(batch)
    assert torch.equal(flat, torch.cat([geometry(SceneBatch.of([graph])) for graph in graphs]))
    assert torch.equal(flat, geometry(batch, chunk=7))


def test_scaling_image_and_boxes_together_changes_nothing(graphs):
    scaled = [g.replace(boxes=g.boxes * 4, width=800, height=640) for g in graphs]
    torch.testing.assert_close(geometry(SceneBatch.of(graphs)), geometry(SceneBatch.of(scaled)), atol=0, rtol=0)


def test_boxes_without_area_stay_finite(vocabulary, make_graph):
    graph = make_graph(np.random.default_rng(0), 3, vocabulary)
    graph = graph.replace(boxes=[[5, 5, 5, 5], [5, 5, 5, 5], [0, 0, 200, 160]])
    found = geometry(SceneBatch.of([graph]))
    assert torch.isfinite(found).all()
    assert float(found.abs().max()) < 10


def test_the_largest_image_of_the_field_goes_through_in_pieces(vocabulary, make_graph):
    graph = make_graph(np.random.default_rng(0), 466, vocabulary, relations=())
    found = geometry(SceneBatch.of([graph]))
    assert found.shape == (216_690, PAIR_WIDTH)
    assert found.dtype == torch.float32
