r"""A GPI layer run several times, its labels fed back: still GPI, because GPI functions are closed under composition.

.. math:: y^{(t+1)} = \rho(z^{(t)}, \dots) + f \cdot y^{(t)}, \qquad z^{(t)} = [\text{feedback}(y^{(t)}), \text{static}]

The weights are shared by all steps; :math:`f \in (0, 1)` is the forget gate, one number for each node and each edge.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from scenegpi.gpi.layer import GPILayer, GPIOutput

__all__ = ["Recurrent", "RecurrentOutput"]

Feedback = Literal["log_softmax", "softmax", "none"]
# Rows read at a time where no gradient is wanted: the features of a large graph are written straight into their place.
_ROWS = 1 << 16


class RecurrentOutput(NamedTuple):
    """Logits after every step, first to last: ``nodes[t] (N, C)``, ``edges[t] (E, R)``; and the last layer call."""

    nodes: list[Tensor]
    edges: list[Tensor]
    last: GPIOutput


class Recurrent(nn.Module):
    """Runs ``layer`` for ``steps`` steps on labels that it corrects itself.

    ``layer`` has ``gate=True``, ``node_out = C``, ``edge_out = R``, ``node_dim = C + node_static`` and ``edge_dim = R
    + edge_static``. ``feedback`` turns logits into the features that the next step reads: log-probabilities
    (default), probabilities, the logits themselves, or any function of rows ``(M, C) -> (M, C)`` given instead. If
    the layer has word tables, each step looks up the word of the label that is then the most probable.
    """

    def __init__(
        self, layer: GPILayer, steps: int = 2, feedback: Feedback | Callable[[Tensor], Tensor] = "log_softmax"
    ) -> None:
        super().__init__()
        if layer.node_gate is None:
            raise ValueError("Recurrent needs a layer with gate=True")
        if steps < 1:
            raise ValueError(f"steps must be at least 1, not {steps}")
        if isinstance(feedback, str) and feedback not in ("log_softmax", "softmax", "none"):
            raise ValueError(f"feedback must be 'log_softmax', 'softmax', 'none' or a function, not {feedback!r}")
        self.layer, self.steps, self.feedback = layer, steps, feedback

    def forward(
        self,
        node_logits: Tensor,
        edge_index: Tensor,
        edge_logits: Tensor,
        batch: Tensor | None = None,
        *,
        node_static: Tensor | None = None,
        edge_static: Tensor | None = None,
        num_graphs: int | None = None,
        return_attention: bool = False,
    ) -> RecurrentOutput:
        """node_logits ``(N, C)``, edge_index ``(2, E)``, edge_logits ``(E, R)``, static ``(N, a)`` and ``(E, b)``."""
        layer, nodes, edges = self.layer, [node_logits], [edge_logits]
        for _ in range(self.steps):
            out = layer(
                self._features(nodes[-1], node_static),
                edge_index,
                self._features(edges[-1], edge_static),
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
        if static is None:
            return self._read(logits)
        if torch.compiler.is_compiling() or torch.is_grad_enabled() or len(logits) <= _ROWS:
            return torch.cat([self._read(logits), static], 1)
        features = logits.new_empty(len(logits), logits.shape[1] + static.shape[1])
        features[:, logits.shape[1] :] = static
        for into, rows in zip(features.split(_ROWS), logits.split(_ROWS), strict=True):
            into[:, : logits.shape[1]] = self._read(rows)
        return features

    def _read(self, logits: Tensor) -> Tensor:
        if callable(self.feedback):
            return self.feedback(logits)
        return logits if self.feedback == "none" else getattr(torch, self.feedback)(logits, 1)
