r"""A second choice: what a bigger duplicate already says need not be said again.

.. math::
    y'_{ijr} = y_{ijr} - \kappa\, \text{softplus}(u_{ij})\, P_{ij}(r \mid \text{related}), \qquad
    u_{ij} = w^\top \text{relu}(A s_i + B s_j + C z_{ij})

u lowers the predicates that are likely now, so the next ones come to the front. It reads s, what a layer has gathered
from the neighbours, and is invariant as s is. At first u is low everywhere and nothing changes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, softplus

from scenegpi.gpi.networks import Dense
from scenegpi.models.dropout import drop

KAPPA = 5.0
CHUNK = 1 << 15
_CLOSED = -3.0


class SecondChoice(nn.Module):
    """s (N, d) and z_ij (E, e) -> corrected logits (E, 1 + P)."""

    def __init__(self, near: int, pair: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.first = Dense([near, near, pair], hidden)
        self.out = nn.Linear(hidden, 1)
        self.dropout = dropout
        nn.init.zeros_(self.out.weight)
        nn.init.constant_(self.out.bias, _CLOSED)

    def forward(self, logits: Tensor, edge_index: Tensor, near: Tensor, pair: Tensor) -> Tensor:
        """logits (E, 1 + P), near (N, d), pair (E, e) -> (E, 1 + P)."""
        own, other, edge = self.first.columns()
        by_subject, by_object = linear(near, own, self.first.bias), linear(near, other)
        i, j = edge_index
        step = max(len(i), 1) if torch.is_grad_enabled() else CHUNK
        found = []
        for start in range(0, max(len(i), 1), step):
            rows = slice(start, start + step)
            x = (by_subject[i[rows]] + by_object[j[rows]] + linear(pair[rows], edge)).relu()
            push = KAPPA * softplus(self.out(drop(self, x, self.dropout)))
            none, predicate = logits[rows].split([1, logits.shape[1] - 1], 1)
            # The odds of a relation stay what they were: only the choice among predicates changes.
            chosen = (predicate - push * predicate.softmax(1)).log_softmax(1)
            found.append(torch.cat([none, predicate.logsumexp(1, keepdim=True) + chosen], 1))
        return found[0] if len(found) == 1 else torch.cat(found)
