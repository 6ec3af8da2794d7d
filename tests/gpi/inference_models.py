"""Random graphical models as flat graphs, and the invariant black boxes that label them."""

from functools import partial

import torch

from gpi.black_boxes import belief_propagation, exact_marginals, mean_field, same_set_neighbours
from scenegpi.gpi import FlatGraph, complete_edges, dense_graph
from scenegpi.gpi.proof import shortest_paths

CLASSES = 2
INVARIANT = {
    "exact": exact_marginals,
    "belief propagation": belief_propagation,
    "mean field": mean_field,
    "shortest paths": lambda nodes, pairs, edges: shortest_paths(nodes, pairs.abs(), edges),
    "same set": partial(same_set_neighbours, sets=2),
}


def model(n: int, density: float, seed: int, scale: float = 1.0) -> FlatGraph:
    """Random scores on a random graph: n nodes of 2 classes, a 2 x 2 table on every edge."""
    generator = torch.Generator().manual_seed(seed)
    edges = complete_edges([n])
    edges = edges[:, torch.rand(edges.shape[1], generator=generator) < density]
    scores = torch.randn(n, CLASSES, generator=generator).double()
    return FlatGraph(scores, edges, scale * torch.randn(edges.shape[1], CLASSES**2, generator=generator).double())


def tree(n: int, seed: int) -> FlatGraph:
    generator = torch.Generator().manual_seed(seed)
    parents = torch.tensor([int(torch.randint(k, (), generator=generator)) for k in range(1, n)], dtype=torch.long)
    edges = torch.stack([parents, torch.arange(1, n)])
    scores = torch.randn(n, CLASSES, generator=generator).double()
    return FlatGraph(scores, edges, 2 * torch.randn(n - 1, CLASSES**2, generator=generator).double())


def dense(graph: FlatGraph) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return dense_graph(graph.x, graph.edge_index, graph.edge_attr)
