"""The order of walking: every edge once, neighbourhoods whole, blocks regular, chunks bounded."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpi.gpi_graphs import flat_graphs
from scenegpi.gpi import complete_edges
from scenegpi.gpi.plan import EdgePlan


@settings(max_examples=60, deadline=None)
@given(graph=flat_graphs(max_graphs=6, max_nodes=9), limit=st.integers(1, 40))
def test_plan_covers_every_edge_once(graph, limit):
    j, i = graph.edge_index
    count = len(graph.x)
    plan = EdgePlan.build(i, j, count, limit)
    numbers = torch.cat([*plan.edge_numbers(), torch.zeros(0, dtype=torch.long)])
    assert sorted(numbers.tolist()) == list(range(len(i)))
    assert torch.equal(plan.j, j[numbers])
    node_order = torch.arange(count) if plan.node_order is None else plan.node_order
    for chunk, edges in zip(plan.chunks, plan.edge_numbers(), strict=True):
        size = chunk.stop - chunk.start
        assert size <= limit or (len(chunk.runs) == 1 and chunk.runs[0].count == 1)
        covered = 0
        for run in chunk.runs:
            block = run.edges(i[edges].unsqueeze(1))
            expected = node_order[run.first : run.first + run.count].reshape(-1, 1, 1).expand_as(block)
            assert torch.equal(block, expected)
            covered += block.numel()
        assert covered == size
    rows, values = torch.randn(count, 2), torch.randn(len(i), 2)
    assert torch.equal(plan.nodes_out(plan.nodes_in(rows)), rows)
    assert torch.equal(plan.edges_out(plan.edges_in(values)), values)


def test_sorted_complete_graphs_are_not_moved():
    edges = complete_edges([12] * 5 + [30] + [7])
    plan = EdgePlan.build(edges[0], edges[1], 97, 10_000)
    assert plan.edge_order is None
    assert plan.node_order is None
    assert [(run.count, run.degree) for run in plan.chunks[0].runs] == [(60, 11), (30, 29), (7, 6)]


def test_few_blocks_whatever_the_graph():
    generator = torch.Generator().manual_seed(0)
    i, j = torch.randint(1000, (2, 20_000), generator=generator)
    plan = EdgePlan.build(i, j, 1000, 4096)
    blocks = sum(len(chunk.runs) for chunk in plan.chunks)
    assert blocks <= len(torch.bincount(i, minlength=1000).unique()) + len(plan.chunks)
