r"""A GPI layer run several times, its labels fed back: still GPI, because GPI functions are closed under composition.

.. math:: y^{(t+1)} = \rho(z^{(t)}, \dots) + f \cdot y^{(t)}, \qquad z^{(t)} = [\text{feedback}(y^{(t)}), \text{static}]

The weights are shared by all steps; :math:`f \in (0, 1)` is the forget gate, one number for each node and each edge.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from scenegpi.gpi.features import LazyFeatures
from scenegpi.gpi.layer import GPILayer, GPIOutput

LOG_PROBABILITIES = partial(torch.log_softmax, dim=1)
EdgeStatic = Tensor | Callable[[Tensor | None], Tensor]
# If no gradient is needed, features of more edges than this are computed as they are read.
_ROWS = 1 << 16


class RecurrentOutput(NamedTuple):
    """Logits after every step, first to last: ``nodes[t] (N, C)``, ``edges[t] (E, R)``; and the last layer call."""

    nodes: list[Tensor]
    edges: list[Tensor]
    last: GPIOutput


class Recurrent(nn.Module):
    """Runs ``layer`` for ``steps`` steps on labels that it corrects itself.

    ``layer`` has ``gate=True``, ``node_out = C``, ``edge_out = R``, ``node_dim = C + node_static`` and ``edge_dim = R
    + edge_static``. ``feedback (M, C) -> (M, C)`` turns logits into the features that the next step reads, by default
    log-probabilities. If the layer has word tables, each step looks up the word of the label that is then the most
    probable.
    """

    def __init__(
        self, layer: GPILayer, steps: int = 2, feedback: Callable[[Tensor], Tensor] = LOG_PROBABILITIES
    ) -> None:
        super().__init__()
        if layer.node_gate is None:
            raise ValueError("Recurrent needs a layer with gate=True")
        if steps < 1:
            raise ValueError(f"steps must be at least 1, not {steps}")
        if not callable(feedback):
            raise ValueError(f"feedback must be a function of logits, not {feedback!r}")
        self.layer, self.steps, self.feedback = layer, steps, feedback

    def forward(
        self,
        node_logits: Tensor,
        edge_index: Tensor,
        edge_logits: Tensor,
        batch: Tensor | None = None,
        *,
        node_static: Tensor | None = None,
        edge_static: EdgeStatic | None = None,
        num_graphs: int | None = None,
        return_attention: bool = False,
    ) -> RecurrentOutput:
        """node_logits ``(N, C)``, edge_index ``(2, E)``, edge_logits ``(E, R)``, static ``(N, a)`` and ``(E, b)``.

        ``edge_static`` may be a function of row numbers ``(m,) -> (m, b)``, or of None for all rows: if no gradient is
        needed, those of a large graph then never all exist at once.
        """
        layer, nodes, edges = self.layer, [node_logits], [edge_logits]
        lazy = not torch.is_grad_enabled() and len(edge_logits) > _ROWS
        if callable(edge_static) and not lazy:
            edge_static = edge_static(None)
        for _ in range(self.steps):
            out = layer(
                self._features(nodes[-1], node_static),
                edge_index,
                self._edge_features(edges[-1], edge_static, lazy),
                batch,
                x_class=None if layer.x_table is None else nodes[-1].argmax(1),
                edge_class=None if layer.edge_table is None else edges[-1].argmax(1),
                num_graphs=num_graphs,
                return_attention=return_attention,
            )
            nodes.append(torch.addcmul(out.nodes, out.node_gate, nodes[-1]))
            edges.append(edges[-1] if out.edges is None else torch.addcmul(out.edges, out.edge_gate, edges[-1]))
        return RecurrentOutput(nodes[1:], edges[1:], out)

    def _features(self, logits: Tensor, static: Tensor | None) -> Tensor:
        read = self.feedback(logits)
        return read if static is None else torch.cat([read, static], 1)

    def _edge_features(self, logits: Tensor, static: EdgeStatic | None, lazy: bool) -> Tensor | LazyFeatures:
        if not lazy and not callable(static):
            return self._features(logits, static)

        def make(rows: Tensor) -> Tensor:
            part = None if static is None else static(rows) if callable(static) else static.index_select(0, rows)
            return self._features(logits.index_select(0, rows), part)

        return LazyFeatures(torch.arange(len(logits), device=logits.device), make=make)
