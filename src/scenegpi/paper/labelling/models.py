r"""The networks of the comparison. Each maps :class:`Graphs` to label scores ``(B, n, labels)``.

.. math::
    \text{gpi} &: \rho(z_k, s_k, g), \quad s_i = \textstyle\sum_j \phi(z_i, z_{ij}, z_j),
                  \quad g = \sum_i \alpha(z_i, s_i) \\
    \text{gpi-strict} &: \rho(z_k, g), \text{ exactly Theorem 1} \\
    \text{lstm} &: \text{as gpi, both sums replaced by LSTMs that read their terms in random order} \\
    \text{fc} &: \text{fully-connected, from all } z_i \text{ and } z_{ij} \text{ at once to the labels of all nodes}

Beyond the paper, for graphs of other sizes: *gpi-edges* is gpi on the graph itself instead of the complete one,
:math:`s_i = \sum_{j \in N(i)} \phi(z_i, z_j)`, with g a mean, so that neither grows with n.

The paper gives the LSTM 200 state units and the fully-connected network 2 x 1000. With its sizes for the rest (phi and
alpha 500 wide, rho 3 x 500) and K = 5 the networks have 1.21 to 1.27 million parameters, "the same number of
parameters" as in the paper. Only the strict form needs wider layers (550) for that.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from scenegpi.gpi import MLP, GPILayer, complete_edges
from scenegpi.paper.labelling.graphs import Graphs, Task

ModelName = Literal["gpi", "gpi-strict", "lstm", "fc", "gpi-edges"]
# The four of the paper's comparison, in the order of tables and legends.
COMPARED: tuple[ModelName, ...] = ("gpi", "gpi-strict", "lstm", "fc")

# The parameters every network is to have, within 5%: those of the paper's fully-connected network at n = 10.
PARAMETERS = 1_242_100


class GPI(nn.Module):
    """One :class:`scenegpi.gpi.GPILayer`: over the complete graph with sums, or with ``edges_only`` over the edges."""

    def __init__(
        self, num_sets: int, labels: int, hidden: int = 500, strict: bool = False, edges_only: bool = False
    ) -> None:
        super().__init__()
        self.num_sets, self.edges_only = num_sets, edges_only
        self.layer = GPILayer(
            num_sets,
            0 if edges_only else 1,
            labels,
            hidden=hidden,
            strict=strict,
            flow="target_to_source",
            node_aggregation="mean" if edges_only else "sum",
        )

    def forward(self, graphs: Graphs) -> Tensor:
        """B graphs of n nodes -> ``(B, n, labels)``."""
        count, n = len(graphs), graphs.nodes
        x = graphs.node_features(self.num_sets, _dtype(self)).flatten(0, 1)
        batch = torch.arange(count).repeat_interleave(n)
        if self.edges_only:
            graph, i, j = graphs.adjacency.nonzero().T
            edge_index, z_ij = torch.stack([graph * n + i, graph * n + j]), None
        else:
            edge_index, z_ij = complete_edges([n] * count), graphs.pair_features(_dtype(self)).reshape(-1, 1)
        return self.layer(x, edge_index, z_ij, batch, num_graphs=count).nodes.view(count, n, -1)


class LSTMs(nn.Module):
    """s_i is the last state of an LSTM over the pairs of i, g that of an LSTM over the nodes; both in random order.

    The orders are drawn anew in every call, from torch's global generator.
    """

    def __init__(self, num_sets: int, labels: int, state: int = 200, hidden: Sequence[int] = (500, 500, 500)) -> None:
        super().__init__()
        self.num_sets = num_sets
        self.neighbours = nn.LSTM(2 * num_sets + 1, state)
        self.nodes = nn.LSTM(num_sets + state, state)
        self.rho = MLP((num_sets, state, state), hidden, labels)

    def forward(self, graphs: Graphs) -> Tensor:
        """B graphs of n nodes -> ``(B, n, labels)``."""
        count, n = len(graphs), graphs.nodes
        z = graphs.node_features(self.num_sets, _dtype(self))
        partners = torch.rand(count, n, n).masked_fill_(torch.eye(n, dtype=torch.bool), 2.0).argsort(2)[:, :, : n - 1]
        z_i = z[:, :, None].expand(-1, -1, n - 1, -1)
        z_j = z[torch.arange(count)[:, None, None], partners]
        z_ij = graphs.adjacency.gather(2, partners)[..., None].to(z.dtype)
        s = self._read(self.neighbours, torch.cat([z_i, z_ij, z_j], 3).flatten(0, 1)).view(count, n, -1)

        near = torch.cat([z, s], 2)
        order = torch.rand(count, n).argsort(1)
        g = self._read(self.nodes, near[torch.arange(count)[:, None], order])
        return self.rho(torch.cat([near, g[:, None].expand(-1, n, -1)], 2))

    @staticmethod
    def _read(lstm: nn.LSTM, sequences: Tensor) -> Tensor:
        # (M, length, d) -> last state (M, state); a node without partners keeps the initial state.
        if sequences.shape[1] == 0:
            return sequences.new_zeros(sequences.shape[0], lstm.hidden_size)
        last: Tensor = lstm(sequences.transpose(0, 1).contiguous())[1][0][0]
        return last


class FullyConnected(nn.Module):
    """Reads n K node and n (n - 1) pair features in the order in which nodes are listed; works only for one n."""

    def __init__(self, num_sets: int, labels: int, nodes: int, hidden: Sequence[int] = (1000, 1000)) -> None:
        super().__init__()
        self.num_sets, self.labels, self.size = num_sets, labels, nodes
        self.network = MLP((nodes * num_sets, nodes * (nodes - 1)), hidden, nodes * labels)

    def forward(self, graphs: Graphs) -> Tensor:
        """B graphs of n nodes -> ``(B, n, labels)``."""
        if graphs.nodes != self.size:
            raise ValueError(f"a fully-connected network for {self.size} nodes can't read graphs of {graphs.nodes}")
        dtype = _dtype(self)
        z, pairs = graphs.node_features(self.num_sets, dtype), graphs.pair_features(dtype)
        scores: Tensor = self.network(torch.cat([z.flatten(1), pairs.flatten(1)], 1))
        return scores.view(len(graphs), self.size, self.labels)


def build(name: ModelName, task: Task) -> nn.Module:
    """The network of this name for the task; labels are 0..n-1."""
    if name == "lstm":
        return LSTMs(task.sets, task.nodes)
    if name == "fc":
        return FullyConnected(task.sets, task.nodes, task.nodes, hidden=(_fc_width(task),) * 2)
    strict = name == "gpi-strict"
    return GPI(task.sets, task.nodes, 550 if strict else 500, strict, edges_only=name == "gpi-edges")


def _fc_width(task: Task) -> int:
    # Input and output grow with n squared: the width falls so that the parameters stay the same. 1000 at n = 10, K = 5.
    n, k = task.nodes, task.sets
    ends = n * k + n * (n - 1) + n * n + 2
    return int((-ends + (ends**2 + 4 * (PARAMETERS - n * n)) ** 0.5) / 2 + 1e-9)


def _dtype(model: nn.Module) -> torch.dtype:
    return next(model.parameters()).dtype


def count_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def describe(name: ModelName, task: Task) -> str:
    """The sizes of a network in words, for tables and files."""
    width = _fc_width(task)
    return {
        "gpi": "phi 500, alpha 500, rho 3 x 500 of (z_k, s_k, g); sums",
        "gpi-strict": "phi 550, alpha 550, rho 3 x 550 of (z_k, g); sums",
        "lstm": "LSTM 200 over pairs, LSTM 200 over nodes, rho 3 x 500 of (z_k, s_k, g); random orders",
        "fc": f"2 x {width} from all node and pair features",
        "gpi-edges": "as gpi, sum over neighbours only, mean over nodes",
    }[name]
