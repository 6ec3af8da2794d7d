r"""Which pairs of an image are worth a look (the relation proposals of Graph R-CNN).

.. math:: s_{ij} = \sigma(\Phi(z_i)^\top \Psi(z_j)), \qquad z_i = [\log p_i, \text{box}_i]

The best K pairs of each image are kept; none is suppressed for overlapping a better one, as in the released code: of
given boxes, pairs that share a large box overlap too. Pairs with equal scores are taken as they are listed: the one
place where the listing can matter.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi.networks import MLP
from scenegpi.models.inputs import BOX_WIDTH, ENTITY_WIDTH
from scenegpi.models.sgp import scaled_log
from scenegpi.paper.systems.reader import Reading


class RelationProposals(nn.Module):
    """Log-odds (E,) that a pair is related, from what is known of each of its boxes."""

    def __init__(self, labels: int, width: int) -> None:
        super().__init__()
        parts = [labels, BOX_WIDTH]
        self.phi, self.psi = MLP(parts, [width], width), MLP(parts, [width], width)

    def forward(self, reading: Reading) -> Tensor:
        box = reading.nodes[:, -ENTITY_WIDTH:][:, :BOX_WIDTH]
        z = torch.cat([scaled_log(reading.node_logits), box], 1)
        phi, psi = self.phi(z), self.psi(z)

        def scores(rows: slice) -> Tensor:
            i, j = reading.batch.edge_index[:, rows]
            return (phi.index_select(0, i) * psi.index_select(0, j)).sum(1)

        return reading.over_pairs(scores)


def kept_pairs(scores: Tensor, batch: SceneBatch, keep: int) -> Tensor:
    """scores (E,) -> (E,) whether each pair is among the best of its image."""
    image = batch.batch[batch.edge_index[0]]
    by_score = torch.argsort(scores, descending=True, stable=True)
    order = by_score[torch.argsort(image[by_score], stable=True)]
    rank = torch.arange(order.shape[0], device=order.device) - batch.edge_ptr[image[order]]
    return torch.zeros_like(order).scatter(0, order, (rank < keep).long()).bool()
