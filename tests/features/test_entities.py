"""Entity features: brute force, permutation, flat batch = loop, mirror, scale."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scenegpi.features.batch import SceneBatch
from scenegpi.features.entities import (
    BOX_NAMES,
    COUNT_NAMES,
    entity_counts,
    entity_features,
    relative_boxes,
    strict_counts,
)


def features(batch):
    return entity_features(batch.boxes, batch.sizes, batch.label_dist, batch.batch, batch.ptr)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 5), max_size=9), min_size=1, max_size=5))
def test_strict_counts_are_what_comparing_all_pairs_gives(images):
    values = torch.tensor([v for image in images for v in image], dtype=torch.float64)
    sizes = torch.tensor([len(image) for image in images])
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), sizes.cumsum(0)])
    below, above = strict_counts(torch.stack([values, -values]), torch.repeat_interleave(sizes), ptr)
    fewer = [sum(u < v for u in image) for image in images for v in image]
    more = [sum(u > v for u in image) for image in images for v in image]
    assert below.tolist() == [fewer, more]
    assert above.tolist() == [more, fewer]


def test_counts_against_a_loop_over_boxes(graphs):
    for graph in graphs:
        batch = SceneBatch.of([graph], given_labels=False)
        found = entity_counts(batch.boxes, batch.label_dist.amax(1), batch.batch, batch.ptr)
        area = (graph.boxes[:, 2] - graph.boxes[:, 0]) * (graph.boxes[:, 3] - graph.boxes[:, 1])
        x, y = graph.boxes[:, 0] + graph.boxes[:, 2], graph.boxes[:, 1] + graph.boxes[:, 3]
        sure = np.zeros(0) if graph.label_dist is None else graph.label_dist.max(1)
        for i in range(len(graph)):
            want = [
                *((area < area[i]).sum(), (area > area[i]).sum()),
                *((x < x[i]).sum(), (x > x[i]).sum(), (y < y[i]).sum(), (y > y[i]).sum()),
                *((sure > sure[i]).sum(), (sure < sure[i]).sum()),
            ]
            assert found[i].tolist() == want


def test_listing_the_entities_in_another_order_moves_the_rows_exactly(graphs):
    rng = np.random.default_rng(1)
    for graph in graphs:
        order = rng.permutation(len(graph))
        here = features(SceneBatch.of([graph], given_labels=False))
        there = features(SceneBatch.of([graph.permute(order)], given_labels=False))
        assert torch.equal(there, here[order])


def test_flat_batch_equals_loop_over_images(graphs):
    flat = features(SceneBatch.of(graphs, given_labels=False))
    loop = torch.cat([features(SceneBatch.of([graph], given_labels=False)) for graph in graphs])
    assert torch.equal(flat, loop)


def test_mirror_swaps_left_and_right(graphs):
    batch = SceneBatch.of(graphs)
    turned = [g.replace(boxes=(g.boxes * [-1, 1, -1, 1] + [g.width, 0, g.width, 0])[:, [2, 1, 0, 3]]) for g in graphs]
    here, there = features(batch), features(SceneBatch.of(turned))
    place = {name: k for k, name in enumerate(BOX_NAMES + COUNT_NAMES)}
    assert torch.equal(there[:, place["to the left"]], here[:, place["to the right"]])
    assert torch.equal(there[:, place["to the right"]], here[:, place["to the left"]])
    left = 1 - here[:, place["left"]] - here[:, place["width"]]
    torch.testing.assert_close(there[:, place["left"]], left, atol=1e-6, rtol=0)
    same = [k for name, k in place.items() if name not in ("left", "to the left", "to the right")]
    torch.testing.assert_close(there[:, same], here[:, same], atol=1e-6, rtol=0)


def test_scaling_image_and_boxes_together_changes_nothing(graphs):
    scaled = [g.replace(boxes=g.boxes * 4, width=800, height=640) for g in graphs]
    assert torch.equal(features(SceneBatch.of(graphs)), features(SceneBatch.of(scaled)))


def test_box_columns():
    box = relative_boxes(torch.tensor([[20.0, 10.0, 60.0, 90.0]]), torch.tensor([[200.0, 100.0]]))
    torch.testing.assert_close(box, torch.tensor([[0.1, 0.1, 0.2, 0.8, 0.16]]))


def test_fractions_lie_between_none_and_all(graphs):
    counts = features(SceneBatch.of(graphs, given_labels=False))[:, len(BOX_NAMES) :]
    assert counts.shape[1] == len(COUNT_NAMES)
    assert float(counts.min()) >= 0
    assert float(counts.max()) == 1
