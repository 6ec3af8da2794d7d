"""How much a trained network's labels depend on the order in which nodes are listed.

:func:`scenegpi.gpi.permutation_gap` of the label probabilities, in double precision, so that what is left is not
rounding; and the fraction of labels that change.
"""

import copy

import torch
from torch import Tensor, nn

from scenegpi.gpi import FlatGraph, complete_edges, permutation_gap
from scenegpi.paper.labelling.graphs import Graphs


def order_dependence(model: nn.Module, graphs: Graphs, trials: int = 5, seed: int = 0) -> tuple[float, float]:
    """The largest change of any label's probability, and the mean fraction of labels that change.

    Compares the outputs under ``trials`` random relabellings with those under the order given.

    A network that draws random orders itself draws the same ones each time: only the listing of the nodes differs.
    """
    double = copy.deepcopy(model).double().eval()
    count, n = len(graphs), graphs.nodes

    def probabilities(graphs: Graphs) -> Tensor:
        torch.manual_seed(seed)
        return torch.softmax(double(graphs), 2)

    def flat_model(x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor) -> Tensor:
        adjacency = torch.zeros(count * n, n, dtype=torch.bool)
        adjacency[edge_index[0], edge_index[1] % n] = edge_attr[:, 0].bool()
        sets = x.view(count, n)
        return probabilities(Graphs(sets, adjacency.view(count, n, n), torch.zeros_like(sets))).flatten(0, 1)

    flat = FlatGraph(
        graphs.sets.reshape(-1, 1),
        complete_edges([n] * count),
        graphs.pair_features(torch.float64).reshape(-1, 1),
        torch.arange(count).repeat_interleave(n),
    )
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        gap = permutation_gap(flat_model, flat, trials, seed=seed)
        labels, changed = probabilities(graphs).argmax(2), 0.0
        for _ in range(trials):
            order = torch.randperm(n, generator=generator)
            moved = probabilities(graphs.relabel(order)).argmax(2)
            changed += float((moved != labels[:, order]).double().mean()) / trials
    return gap, changed
