"""Duplicates against plain loops; the second choice changes the choice and nothing else."""

from __future__ import annotations

import numpy as np

from models.model_cases import VOCABULARY, random_graphs
from scenegpi.features.batch import SceneBatch
from scenegpi.graph import SceneGraph
from scenegpi.metrics import box_iou
from scenegpi.models.layout_inputs import DUPLICATE_SCALE, duplicate_columns


def doubled(seed, n=5, extra=4):
    """A graph in which some boxes stand again, a little larger or smaller, under the same label or another."""
    rng = np.random.default_rng(seed)
    graph = random_graphs((n,), seed, dist=False)[0]
    again = rng.integers(0, n, extra)
    boxes = np.concatenate([graph.boxes, graph.boxes[again] + rng.uniform(0, 6, (extra, 4)) * [-1, -1, 1, 1]])
    labels = np.concatenate([graph.labels, np.where(rng.random(extra) < 0.8, graph.labels[again], 0)])
    size = n + extra
    ends = np.array([(a, b) for a, b in rng.integers(0, size, (20, 2)) if a != b])
    relations = np.column_stack([ends, rng.integers(0, 3, len(ends))])
    return SceneGraph(boxes, labels, VOCABULARY, relations, width=200, height=160, image_id=seed)


def loops(graph):
    """(n, n) duplicates, a box of itself too, and (n,) their areas."""
    iou, n = box_iou(graph.boxes, graph.boxes), len(graph)
    area = (graph.boxes[:, 2:] - graph.boxes[:, :2] + 1).prod(1)
    same = [[i == j or (graph.labels[i] == graph.labels[j] and iou[i, j] >= 0.5) for j in range(n)] for i in range(n)]
    return np.array(same), area


def test_against_loops():
    graphs = [doubled(seed) for seed in range(6)]
    batch = SceneBatch.of(graphs)
    columns = duplicate_columns(batch, batch.labels)
    seen = 0
    for g, graph in enumerate(graphs):
        same, area = loops(graph)
        start = int(batch.ptr[g])
        for e in range(int(batch.edge_ptr[g]), int(batch.edge_ptr[g + 1])):
            i, j = (batch.edge_index[:, e] - start).tolist()
            assert columns[e, 0] == float(graph.labels[i] == graph.labels[j])
            assert columns[e, 2] == DUPLICATE_SCALE * float(same[i, j])
            assert columns[e, 3] == DUPLICATE_SCALE * float(same[i, j]) * np.sign(area[j] - area[i])
            seen += int(same[i, j])
    assert seen > 10


def test_boxes_of_one_size_do_not_cover_each_other():
    graph = SceneGraph([[0, 0, 10, 10], [0, 0, 10, 10]], [0, 0], VOCABULARY)
    batch = SceneBatch.of([graph])
    assert duplicate_columns(batch, batch.labels).tolist() == [[1, 1, DUPLICATE_SCALE, 0], [1, 1, DUPLICATE_SCALE, 0]]
