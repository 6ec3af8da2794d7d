r"""How much a trained network's labels depend on the order in which nodes are listed.

.. math:: \max_{\sigma} \max_{k, y} | p_{\sigma(z)}(y_k) - p_z(y_{\sigma(k)}) |

over random relabellings :math:`\sigma`, in double precision, so that what is left is not rounding.
"""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from scenegpi.labelling.graphs import Graphs

__all__ = ["OrderDependence", "order_dependence"]


@dataclass(frozen=True)
class OrderDependence:
    """``gap``: the largest change of any label's probability; ``changed``: the mean fraction of labels that change."""

    gap: float
    changed: float


def order_dependence(model: nn.Module, graphs: Graphs, trials: int = 5, seed: int = 0) -> OrderDependence:
    """Compares the outputs under ``trials`` random relabellings with those under the order given.

    A network that draws random orders itself draws the same ones each time: only the listing of the nodes differs.
    """
    double = copy.deepcopy(model).double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        reference = _probabilities(double, graphs, seed)
        gap, changed = 0.0, 0.0
        for _ in range(trials):
            order = torch.randperm(graphs.nodes, generator=generator)
            moved, expected = _probabilities(double, graphs.relabel(order), seed), reference[:, order]
            gap = max(gap, float((moved - expected).abs().max()))
            changed += float((moved.argmax(2) != expected.argmax(2)).double().mean()) / trials
    return OrderDependence(gap, changed)


def _probabilities(model: nn.Module, graphs: Graphs, seed: int) -> Tensor:
    torch.manual_seed(seed)
    return torch.softmax(model(graphs), 2)
