"""Random flat graphs for property tests: complete or not, isolated nodes, one-node graphs, shuffled edges, none."""

from collections.abc import Sequence

import torch
from hypothesis import strategies as st
from torch import Tensor

from scenegpi.gpi import FlatGraph, GPILayer, complete_edges

NODE_DIM, EDGE_DIM, CLASSES = 3, 2, 4
KINDS = ("sum", "mean", "max", "neighbour", "feature")


def random_graph(sizes: list[int], density: float, shuffled: bool, seed: int, words: bool = True) -> FlatGraph:
    generator = torch.Generator().manual_seed(seed)
    edges = complete_edges(sizes)
    edges = edges[:, torch.rand(edges.shape[1], generator=generator) < density]
    if shuffled:
        edges = edges[:, torch.randperm(edges.shape[1], generator=generator)]
    nodes, count = sum(sizes), edges.shape[1]
    return FlatGraph(
        torch.randn(nodes, NODE_DIM, generator=generator, dtype=torch.double),
        edges,
        torch.randn(count, EDGE_DIM, generator=generator, dtype=torch.double),
        torch.repeat_interleave(torch.tensor(sizes, dtype=torch.long)),
        torch.randint(CLASSES, (nodes,), generator=generator) if words else None,
        torch.randint(CLASSES, (count,), generator=generator) if words else None,
    )


def collate(graphs: Sequence[FlatGraph]) -> FlatGraph:
    """Graphs without words as one flat graph, nodes renumbered."""
    sizes = torch.tensor([len(graph.x) for graph in graphs])
    starts = torch.cumsum(sizes, 0) - sizes
    return FlatGraph(
        torch.cat([graph.x for graph in graphs]),
        torch.cat([graph.edge_index + start for graph, start in zip(graphs, starts, strict=True)], 1),
        torch.cat([graph.edge_attr for graph in graphs]),
        torch.repeat_interleave(sizes),
    )


@st.composite
def flat_graphs(draw: st.DrawFn, max_graphs: int = 4, max_nodes: int = 6, min_graphs: int = 0) -> FlatGraph:
    sizes = draw(st.lists(st.integers(1, max_nodes), min_size=min_graphs, max_size=max_graphs))
    density = draw(st.sampled_from([0.0, 0.4, 1.0]))
    return random_graph(sizes, density, draw(st.booleans()), draw(st.integers(0, 2**31)))


def make_layer(words: bool = True, **options: object) -> GPILayer:
    """A small double-precision layer with every part in use, random tables included."""
    torch.manual_seed(0)
    settings: dict[str, object] = {"edge_out": 3, "hidden": 5, "gate": True, **options}
    if words:
        settings |= {"x_table": torch.randn(CLASSES, 2), "edge_table": torch.randn(CLASSES, 3)}
    return GPILayer(NODE_DIM, EDGE_DIM, 4, **settings).double()


def outputs(layer: GPILayer, graph: FlatGraph, **options: object) -> dict[str, Tensor]:
    out = layer(graph, **options)
    return {name: value for name, value in out._asdict().items() if value is not None}


def gradients(layer: GPILayer, graph: FlatGraph) -> dict[str, Tensor]:
    """Gradients of a fixed random projection of all outputs, by every parameter and by both inputs."""
    x, edge_attr = graph.x.clone().requires_grad_(), graph.edge_attr.clone().requires_grad_()
    layer.zero_grad()
    out = layer(x, graph.edge_index, edge_attr, graph.batch, x_class=graph.x_class, edge_class=graph.edge_class)
    generator = torch.Generator().manual_seed(5)
    values = [value for value in out if value is not None]
    sum((value * torch.randn(value.shape, generator=generator)).sum() for value in values).backward()
    inputs = {"x": x, "edge_attr": edge_attr, **dict(layer.named_parameters())}
    assert all(value.grad is not None for value in inputs.values())
    return {name: value.grad for name, value in inputs.items()}
