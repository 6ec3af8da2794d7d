"""Flat batches: edges, targets, distributions, against loops over images."""

import numpy as np
import pytest
import torch

from scenegpi.data import open_dataset
from scenegpi.errors import GraphError
from scenegpi.features.arrays import image_size
from scenegpi.features.batch import SceneBatch
from scenegpi.features.entities import entity_features
from scenegpi.features.geometry import pair_geometry
from scenegpi.gpi import GPILayer, complete_edges
from scenegpi.graph import SceneGraph
from scenegpi.pairs import complete_pairs, edge_numbers
from scenegpi.vocabulary import Vocabulary


def test_edges_are_those_of_the_layers_and_sorted_for_them(graphs):
    batch = SceneBatch.of(graphs)
    sizes = [len(graph) for graph in graphs]
    assert torch.equal(batch.edge_index, complete_edges(sizes))
    assert torch.equal(batch.batch, torch.repeat_interleave(torch.tensor(sizes)))
    assert batch.edge_ptr.tolist() == np.cumsum([0] + [n * (n - 1) for n in sizes]).tolist()
    assert bool((batch.edge_index[0, 1:] >= batch.edge_index[0, :-1]).all())


def test_edge_numbers_find_the_column_of_a_pair():
    for n in (2, 3, 8):
        pairs = complete_pairs(np.array([n])).T
        assert edge_numbers(pairs, n).tolist() == list(range(n * (n - 1)))


def rows_by_loop(graphs):
    """{(first box + i, first box + j): {class: how often}}."""
    rows, first = {}, 0
    for graph in graphs:
        for i, j, p in graph.relations.tolist():
            if i != j:
                pair = rows.setdefault((first + i, first + j), {})
                pair[p + 1] = pair.get(p + 1, 0) + 1
        first += len(graph)
    return rows


def test_targets_keep_every_row_of_a_pair_with_its_count(graphs):
    batch = SceneBatch.of(graphs)
    found = {}
    rows = zip(batch.relation_edge.tolist(), batch.relation_class.tolist(), batch.relation_count.tolist(), strict=True)
    for edge, label, count in rows:
        found.setdefault(tuple(batch.edge_index[:, edge].tolist()), {})[label] = count
    assert found == rows_by_loop(graphs)
    selves = sum(int((graph.relations[:, 0] == graph.relations[:, 1]).sum()) for graph in graphs)
    assert selves > 0
    assert int(batch.relation_count.sum()) == sum(len(graph.relations) for graph in graphs) - selves


def test_soft_targets_are_the_shares(graphs):
    batch = SceneBatch.of(graphs)
    dist = batch.target_distribution()
    torch.testing.assert_close(dist.sum(1), torch.ones(batch.num_edges))
    want = rows_by_loop(graphs)
    for edge, pair in enumerate(map(tuple, batch.edge_index.T.tolist())):
        row = want.get(pair, {0: 1})
        expected = torch.zeros(4)
        for label, count in row.items():
            expected[label] = count / sum(row.values())
        torch.testing.assert_close(dist[edge], expected)


def test_given_labels_are_certain_and_others_come_from_the_baseline(graphs):
    given = SceneBatch.of(graphs)
    assert torch.equal(given.label_dist.argmax(1), given.labels)
    assert torch.equal(given.label_dist.amax(1), torch.ones(len(given.labels)))
    guessed = SceneBatch.of(graphs, given_labels=False)
    want = np.concatenate([graph.label_dist for graph in graphs if graph.label_dist is not None])
    assert np.array_equal(guessed.label_dist.numpy(), want)
    assert torch.equal(guessed.labels, given.labels)


def test_a_detectors_score_spreads_the_rest_evenly(vocabulary):
    graph = SceneGraph([[0, 0, 5, 5]], [1], vocabulary, scores=[0.7])
    found = SceneBatch.of([graph], given_labels=False).label_dist
    torch.testing.assert_close(found, torch.tensor([[0.1, 0.7, 0.1, 0.1]]))


def test_pair_distributions_are_put_at_their_edges(graphs):
    rng = np.random.default_rng(0)
    shuffled = []
    for graph in graphs:
        if graph.pairs is not None and graph.pair_dist is not None:
            order = rng.permutation(len(graph.pairs))
            graph = graph.replace(pairs=graph.pairs[order], pair_dist=graph.pair_dist[order])
        shuffled.append(graph)
    assert torch.equal(SceneBatch.of(shuffled).pair_dist, SceneBatch.of(graphs).pair_dist)
    fewer = graphs[3].replace(pairs=graphs[3].pairs[:1], pair_dist=graphs[3].pair_dist[:1])
    found = SceneBatch.of([fewer]).pair_dist
    assert np.array_equal(found[0].numpy(), graphs[3].pair_dist[0])
    assert torch.equal(found[1:], torch.eye(4)[:1].expand(len(found) - 1, 4))
    assert SceneBatch.of([graphs[2]]).pair_dist is None


def test_flat_batch_equals_loop_over_images(graphs):
    flat = SceneBatch.of(graphs)
    single = [SceneBatch.of([graph]) for graph in graphs]
    assert torch.equal(flat.boxes, torch.cat([one.boxes for one in single]))
    assert torch.equal(flat.target_distribution(), torch.cat([one.target_distribution() for one in single]))
    assert torch.equal(flat.sizes, torch.cat([one.sizes for one in single]))
    assert flat.ids == (3, 1, 0, 7, 12, 2)


def test_an_image_without_a_size_ends_where_its_boxes_do(vocabulary):
    graph = SceneGraph([[0, 0, 30, 5], [1, 1, 4, 40]], [0, 0], vocabulary)
    assert image_size(graph) == (30, 40)
    assert image_size(SceneGraph(np.zeros((0, 4)), [], vocabulary)) == (1, 1)


def test_moving_keeps_everything(graphs):
    batch = SceneBatch.of(graphs)
    moved = batch.to("cpu")
    assert torch.equal(moved.edge_index, batch.edge_index)
    assert moved.ids == batch.ids
    assert batch.to("meta").boxes.device.type == "meta"


def test_a_layer_on_these_features_moves_with_the_entities(graphs):
    torch.manual_seed(0)
    layer = GPILayer(13, 49, 4, 4, hidden=16, aggregation="neighbour", flow="target_to_source")

    def labels(graph):
        batch = SceneBatch.of([graph], given_labels=False)
        nodes = entity_features(batch.boxes, batch.sizes, batch.label_dist, batch.batch, batch.ptr)
        edges = pair_geometry(batch.boxes, batch.sizes, batch.edge_index, batch.batch)
        return layer(nodes, batch.edge_index, edges, batch.batch).nodes

    graph = graphs[4]
    order = np.random.default_rng(0).permutation(len(graph))
    torch.testing.assert_close(labels(graph.permute(order)), labels(graph)[order], atol=1e-5, rtol=0)


def test_what_makes_no_batch_is_refused(graphs):
    with pytest.raises(GraphError, match="at least one"):
        SceneBatch.of([])
    other = SceneGraph([[0, 0, 1, 1]], [0], Vocabulary(["x"], ["y"]))
    with pytest.raises(GraphError, match="vocabulary"):
        SceneBatch.of([graphs[0], other])


@pytest.mark.shared
def test_the_self_relations_of_vrd_are_left_out(shared_data):
    batch = SceneBatch.of(list(open_dataset(shared_data / "vrd")))
    assert int(batch.relation_count.sum()) == 30_355 + 7_638 - 109
